"""Who is told what, and when: waiting, grouping, silences, inhibition, repeats, and what a restart keeps."""

import pytest

from tests.support.telling import NOW, TIMING, Telling
from wtwin_watch.alerting.lifecycle import Reason
from wtwin_watch.alerting.matching import parse
from wtwin_watch.alerting.routing import Recipient, Route, Routing
from wtwin_watch.alerting.silences import Silence
from wtwin_watch.alerting.telling import AT_ONCE, Timing, everybody
from wtwin_watch.alerting.telling import Telling as To
from wtwin_watch.model import AlertState, Family, Severity


@pytest.fixture
def telling():
    return Telling()


def silence(matchers, lasts_s=3600.0):
    return Silence("s1", parse(matchers), NOW, NOW + lasts_s, "sam", "maintenance", NOW)


# -- waiting -------------------------------------------------------------------------------------


def test_a_warning_waits_five_seconds_for_others(telling):
    telling.fire("a")
    telling.wait(4.5)
    assert telling.told == []
    telling.wait(0.5)

    assert telling.told == [("team", "firing", "a", 1)]


def test_what_is_critical_is_told_at_once(telling):
    telling.fire("a", severity=Severity.CRITICAL)

    assert telling.told == [("team", "firing", "a", 1)]


def test_what_gets_critical_while_it_waits_is_told_at_once(telling):
    id_ = telling.fire("a")
    telling.change(id_, severity=Severity.CRITICAL, kind="divergence")

    assert telling.told == [("team", "firing", "a", 1)]


def test_what_ends_while_it_waits_is_told_to_nobody_and_the_reason_is_kept(telling):
    id_ = telling.fire("a")
    telling.end(id_)
    telling.wait(600.0)

    assert telling.told == []
    assert telling.choices(id_) == [("team", "BRIEF")]
    assert telling.kept == {}


def test_the_orderly_end_tells_what_waits(telling):
    telling.fire("a")
    telling.wait(0.5, at_once=True)

    assert telling.told == [("team", "firing", "a", 1)]


def test_a_clock_that_is_set_back_makes_nobody_wait_longer(telling):
    telling.fire("a")
    telling.now -= 86_400.0
    telling.wait(0.5)
    telling.wait(5.0)

    assert telling.told == [("team", "firing", "a", 1)]


def test_an_alert_goes_through_its_life_in_one_thread(telling):
    id_ = telling.fire("a")
    telling.wait(5.0)
    telling.change(id_, severity=Severity.CRITICAL, kind="divergence")
    telling.end(id_)

    assert [event for _, event, _, _ in telling.told] == ["firing", "changed", "resolved"]
    assert {message.alert.id for message in telling.messages} == {id_}
    assert telling.kept == {}


# -- groups --------------------------------------------------------------------------------------


def test_forty_runs_that_stall_together_are_one_message(telling):
    ids = [telling.fire(f"run {n}", Family.PROGRESS, kind="stalled") for n in range(40)]
    telling.wait(5.0)

    assert telling.told == [("team", "firing", "run 0", 40)]
    assert len(telling.messages[0].others) == 39
    assert telling.choices(ids[7]) == [("team", "GROUPED")]


def test_forty_runs_that_diverge_together_are_two_messages(telling):
    for n in range(40):
        telling.fire(f"run {n}", severity=Severity.CRITICAL, kind="divergence")
    telling.wait(60.0)

    assert telling.told == [("team", "firing", "run 0", 1), ("team", "changed", "run 0", 40)]


def test_a_group_is_over_when_all_of_it_is(telling):
    ids = [telling.fire(f"run {n}", Family.PROGRESS) for n in range(3)]
    telling.wait(5.0)
    for id_ in ids[1:]:
        telling.end(id_)
    telling.wait(10.0)
    assert len(telling.told) == 1
    telling.end(ids[0])

    assert telling.told[1:] == [("team", "resolved", "run 0", 3)]
    assert telling.messages[-1].alert.state is AlertState.RESOLVED
    assert telling.kept == {}


def test_a_group_whose_lead_is_over_fires_on_under_its_name(telling):
    first = telling.fire("a")
    telling.fire("b")
    telling.wait(5.0)
    telling.end(first)
    telling.wait(300.0)

    assert telling.told[1:] == [("team", "changed", "a", 2)]
    assert telling.messages[-1].alert.state is AlertState.FIRING
    assert telling.messages[-1].alert.id == first


def test_what_joins_later_is_told_at_the_interval(telling):
    telling.fire("a")
    telling.wait(5.0)
    telling.fire("b")
    telling.wait(299.0)
    assert len(telling.told) == 1
    telling.wait(1.5)

    assert telling.told[1:] == [("team", "changed", "a", 2)]


def test_a_group_that_gets_graver_is_told_at_once(telling):
    telling.fire("a")
    telling.wait(5.0)
    telling.fire("b", severity=Severity.CRITICAL)

    assert telling.told[1:] == [("team", "changed", "a", 2)]
    assert telling.messages[-1].alert.severity is Severity.CRITICAL


def test_alerts_far_apart_in_time_are_told_each_by_itself(telling):
    telling.fire("a")
    telling.wait(601.0, every=10.0)
    telling.fire("b")
    telling.wait(5.0)

    assert telling.told == [("team", "firing", "a", 1), ("team", "firing", "b", 1)]


def test_alerts_of_other_families_and_sources_are_told_each_by_itself(telling):
    telling.fire("a")
    telling.fire("b", Family.PROGRESS)
    telling.fire("c", source="elsewhere")
    telling.wait(5.0)

    assert [size for *_, size in telling.told] == [1, 1, 1]


def test_a_sweep_is_one_group_however_far_apart_its_runs_fail(telling):
    telling.fire("a", group="sweep-7")
    telling.wait(3600.0, every=10.0)
    telling.fire("b", group="sweep-7")
    telling.fire("c", group="sweep-8")
    telling.wait(10.0)

    assert telling.told == [
        ("team", "firing", "a", 1),
        ("team", "changed", "a", 2),
        ("team", "firing", "c", 1),
    ]


def test_a_receiver_that_groups_by_itself_is_told_of_each():
    recipients = (Recipient("team"), Recipient("pages", grouped=False))
    telling = Telling(To(recipients, Routing((), ("team", "pages")), TIMING))
    for name in "abc":
        telling.fire(name)
    telling.wait(5.0)

    assert sorted(telling.told) == [
        ("pages", "firing", "a", 1),
        ("pages", "firing", "b", 1),
        ("pages", "firing", "c", 1),
        ("team", "firing", "a", 3),
    ]


def test_without_a_window_each_alert_is_told_by_itself():
    telling = Telling(everybody("team", timing=AT_ONCE))
    for name in "abc":
        telling.fire(name, group="sweep")

    assert [size for *_, size in telling.told] == [1, 1, 1]


# -- who hears -----------------------------------------------------------------------------------


def test_a_receiver_hears_from_its_severity_on_and_of_what_gets_that_grave():
    recipients = (Recipient("team"), Recipient("pager", least=Severity.CRITICAL))
    telling = Telling(To(recipients, Routing((), ("team", "pager")), AT_ONCE))
    id_ = telling.fire("a")
    assert telling.told == [("team", "firing", "a", 1)]
    assert ("pager", "BELOW") in telling.choices(id_)
    telling.change(id_, severity=Severity.CRITICAL, kind="divergence")
    telling.end(id_)

    assert telling.told[1:] == [
        ("pager", "firing", "a", 1),
        ("team", "changed", "a", 1),
        ("pager", "resolved", "a", 1),
        ("team", "resolved", "a", 1),
    ]


def test_a_route_says_who_hears_of_what():
    recipients = (Recipient("llm"), Recipient("rest"))
    routes = (Route(parse("project=llm"), ("llm",)), Route(parse("run=quiet"), ()))
    telling = Telling(To(recipients, Routing(routes, ("rest",)), AT_ONCE))
    telling.fire("a", project="llm")
    telling.fire("b")
    silent = telling.fire("quiet")

    assert telling.told == [("llm", "firing", "a", 1), ("rest", "firing", "b", 1)]
    assert telling.choices(silent) == [("", "NOBODY")]


# -- silences and inhibition ---------------------------------------------------------------------


def test_what_is_silenced_is_told_when_the_silence_ends_and_it_fires_still(telling):
    telling.silence(silence("run=a", lasts_s=100.0))
    id_ = telling.fire("a", severity=Severity.CRITICAL)
    telling.wait(99.0)
    assert telling.told == []
    telling.wait(2.0)

    assert telling.told == [("team", "firing", "a", 1)]
    assert telling.choices(id_) == [("", "SILENCED"), ("", "RELEASED"), ("team", "TOLD")]


def test_what_ends_while_it_is_silenced_is_never_told(telling):
    telling.silence(silence("run=a"))
    id_ = telling.fire("a", severity=Severity.CRITICAL)
    telling.end(id_)
    telling.wait(7200.0, every=10.0)

    assert telling.told == []
    assert telling.choices(id_) == [("", "SILENCED"), ("", "BRIEF")]
    assert telling.kept == {}


def test_a_silence_that_begins_while_an_alert_waits_holds_it_back(telling):
    first = telling.fire("a")
    telling.fire("b")
    telling.silence(silence("run=a"))
    telling.wait(5.0)

    assert telling.told == [("team", "firing", "b", 1)]
    assert telling.choices(first) == [("", "SILENCED")]


def test_who_was_told_of_an_alert_hears_its_end_through_a_silence_and_no_changes(telling):
    id_ = telling.fire("a", severity=Severity.WARNING)
    telling.wait(5.0)
    telling.silence(silence("run=a"))
    telling.change(id_, kind="level_shift")
    telling.wait(10.0)
    assert len(telling.told) == 1
    telling.end(id_)

    assert telling.told[1:] == [("team", "resolved", "a", 1)]


def test_a_source_that_is_down_explains_the_stalls_of_its_runs(telling):
    telling.fire("", Family.SOURCE, Severity.CRITICAL, "source_down")
    stalled = telling.fire("a", Family.PROGRESS, Severity.CRITICAL, "stalled")
    elsewhere = telling.fire("b", Family.PROGRESS, Severity.CRITICAL, "stalled", source="other")

    assert telling.choices(stalled) == [("", "INHIBITED")]
    assert telling.choices(elsewhere) == [("team", "TOLD")]


def test_what_was_explained_is_told_when_the_explanation_is_over(telling):
    down = telling.fire("", Family.SOURCE, Severity.CRITICAL, "source_down")
    telling.fire("a", Family.PROGRESS, Severity.CRITICAL, "stalled")
    telling.end(down)

    assert telling.told[1:] == [("team", "resolved", "", 1), ("team", "firing", "a", 1)]


def test_a_failed_run_hides_its_drift(telling):
    telling.fire("a", Family.STATE, Severity.CRITICAL, "failed")
    drift = telling.fire("a", Family.LOSS)
    telling.wait(60.0)

    assert [run for _, _, run, _ in telling.told] == ["a"]
    assert telling.choices(drift) == [("", "INHIBITED")]


# -- repeats and acknowledgements ----------------------------------------------------------------


def test_what_fires_for_a_day_is_told_again(telling):
    telling.fire("a", severity=Severity.CRITICAL)
    telling.wait(86_400.0 * 2.5, every=60.0)

    assert [event for _, event, _, _ in telling.told] == ["firing", "repeated", "repeated"]


def test_what_somebody_has_seen_is_not_told_again(telling):
    id_ = telling.fire("a", severity=Severity.CRITICAL)
    telling.acknowledge(id_)
    telling.wait(86_400.0 * 3, every=60.0)

    assert [event for _, event, _, _ in telling.told] == ["firing", "acknowledged"]


def test_what_somebody_has_seen_until_then_is_told_again_from_then_on(telling):
    id_ = telling.fire("a", severity=Severity.CRITICAL)
    telling.acknowledge(id_, until=NOW + 3 * 86_400.0)
    telling.wait(86_400.0 * 3.5, every=60.0)

    assert [event for _, event, _, _ in telling.told] == ["firing", "acknowledged", "repeated"]


def test_a_group_is_seen_when_all_of_it_was(telling):
    first, second = telling.fire("a"), telling.fire("b")
    telling.wait(5.0)
    telling.acknowledge(first)
    assert len(telling.told) == 1
    telling.acknowledge(second)

    assert telling.told[1:] == [("team", "acknowledged", "a", 2)]


def test_what_was_seen_and_is_not_any_more_is_told_again(telling):
    id_ = telling.fire("a", severity=Severity.CRITICAL)
    telling.acknowledge(id_)
    telling.unacknowledge(id_)
    assert [event for _, event, _, _ in telling.told] == ["firing", "acknowledged", "acknowledged"]

    telling.wait(86_400.0, every=60.0)

    assert telling.told[-1] == ("team", "repeated", "a", 1)


def test_a_group_that_was_not_seen_as_a_whole_hears_of_no_taking_back(telling):
    first, _ = telling.fire("a"), telling.fire("b")
    telling.wait(5.0)
    telling.acknowledge(first)
    telling.unacknowledge(first)

    assert len(telling.told) == 1


def test_without_an_interval_nothing_is_told_again():
    telling = Telling(everybody("team", timing=Timing(repeat_s=0.0)))
    telling.fire("a", severity=Severity.CRITICAL)
    telling.wait(86_400.0 * 3, every=600.0)

    assert len(telling.told) == 1


# -- information without an end ------------------------------------------------------------------


def test_a_note_is_told_once_and_has_no_end(telling):
    id_ = telling.fire("a", Family.STATE, Severity.INFO, "killed")
    telling.end(id_, reason=Reason.NOTED)
    telling.wait(86_400.0, every=60.0)

    assert telling.told == [("team", "firing", "a", 1)]
    assert telling.kept == {}


def test_a_note_that_waits_survives_a_restart(telling):
    id_ = telling.fire("a", Family.STATE, Severity.INFO, "killed")
    telling.end(id_, reason=Reason.NOTED)
    telling.restart()
    telling.wait(5.0)

    assert telling.told == [("team", "firing", "a", 1)]
    assert telling.kept == {}


# -- over a restart ------------------------------------------------------------------------------


def test_what_waits_is_told_by_the_next_process(telling):
    telling.fire("a")
    telling.fire("b")
    telling.restart()
    telling.wait(5.0)

    assert telling.told == [("team", "firing", "a", 2)]


def test_the_next_process_goes_on_in_the_same_group(telling):
    first = telling.fire("a")
    telling.wait(5.0)
    telling.restart()
    second = telling.fire("b")
    telling.wait(300.0)
    telling.end(first)
    telling.end(second)

    assert telling.told == [
        ("team", "firing", "a", 1),
        ("team", "changed", "a", 2),
        ("team", "resolved", "a", 2),
    ]


def test_what_is_held_back_stays_so_over_a_restart(telling):
    telling.silence(silence("run=a", lasts_s=100.0))
    telling.fire("a", severity=Severity.CRITICAL)
    telling.restart()
    telling.silence(silence("run=a", lasts_s=100.0))
    telling.wait(99.0)
    assert telling.told == []
    telling.wait(2.0)

    assert telling.told == [("team", "firing", "a", 1)]


def test_an_alert_told_before_groups_were_kept_is_told_its_end(telling):
    id_ = telling.fire("a", severity=Severity.CRITICAL)
    telling.kept.clear()
    telling.restart()
    telling.wait(60.0)
    telling.end(id_)

    assert telling.told == [("team", "firing", "a", 1), ("team", "resolved", "a", 1)]


def test_receivers_that_take_the_place_of_all_there_were_hear_of_what_fires_still(telling):
    told, over = telling.fire("a"), telling.fire("b", family=Family.STATE)
    telling.wait(5)
    telling.restart(everybody("pager", "mail", timing=TIMING))
    telling.end(over)
    telling.told.clear()
    telling.wait(60)

    assert telling.told == [("pager", "firing", "a", 1), ("mail", "firing", "a", 1)]
    telling.end(told)
    assert telling.told[2:] == [("mail", "resolved", "a", 1), ("pager", "resolved", "a", 1)]


def test_a_new_receiver_hears_nothing_of_what_fires_already(telling):
    telling.fire("a", severity=Severity.CRITICAL)
    telling.restart(everybody("team", "new", timing=TIMING))
    telling.wait(60.0)

    assert telling.told == [("team", "firing", "a", 1)]
