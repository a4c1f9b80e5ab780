"""Who is told about an alert."""

from hypothesis import given
from hypothesis import strategies as st

from wtwin_watch.alerting.matching import parse, parse_labels
from wtwin_watch.alerting.routing import Route, Routing, matching_routes, receivers_for


def route(match, *receivers, proceed=False):
    return Route(parse(match), receivers, proceed)


ROUTING = Routing(
    (
        route("severity=critical", "pager", proceed=True),
        route("project=llm", "llm", "log"),
        route("project=vision", "vision"),
        route("run=~debug-.*"),
    ),
    default=("team",),
)


def told(labels, routing=ROUTING):
    return receivers_for(routing, parse_labels(labels))


def test_the_first_route_that_matches_says_who_is_told():
    assert told("project=llm severity=warning") == ("llm", "log")
    assert told("project=vision run=debug-1") == ("vision",)


def test_a_route_that_lets_proceed_adds_to_those_after_it():
    assert told("project=llm severity=critical") == ("pager", "llm", "log")


def test_where_only_a_route_that_lets_proceed_matches_the_default_is_not_asked():
    assert told("project=other severity=critical") == ("pager",)


def test_where_no_route_matches_the_default_is_told():
    assert told("project=other severity=warning") == ("team",)
    assert told("", Routing((), ("a", "b"))) == ("a", "b")


def test_a_route_without_receivers_tells_nobody():
    assert told("run=debug-1 severity=info") == ()


def test_a_receiver_that_two_routes_name_is_told_once():
    routing = Routing((route("", "a", "b", proceed=True), route("", "b", "c")), ())

    assert told("", routing) == ("a", "b", "c")


MATCHES = st.sampled_from(["", "project=a", "project=b", "severity>=warning", "tag=x", "tag!=x"])
ROUTES = st.lists(
    st.builds(
        lambda match, names, proceed: Route(parse(match), tuple(names), proceed),
        MATCHES,
        st.lists(st.sampled_from("uvw"), max_size=2),
        st.booleans(),
    ),
    max_size=5,
).map(tuple)
ALERTS = st.sampled_from(["project=a severity=info", "project=b severity=critical tag=x", ""])


@given(ROUTES, ALERTS)
def test_routes_behind_the_one_that_ends_the_search_change_nothing(routes, text):
    labels = parse_labels(text)
    taken = matching_routes(routes, labels)

    assert all(taken_one.proceed for taken_one in taken[:-1])
    if taken and not taken[-1].proceed:
        assert matching_routes((*routes, Route((), ("x",))), labels) == taken
    else:
        assert matching_routes((*routes, Route((), ("x",))), labels) == [
            *taken,
            Route((), ("x",)),
        ]
