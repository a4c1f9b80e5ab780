"""What is true of every text of matchers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wtwin_watch.alerting.matching import LABELS, Matcher, Operator, all_hold, parse

# `re` warns of patterns such as "[[a]" whose meaning may change one day.
pytestmark = pytest.mark.filterwarnings("ignore:Possible (nested set|set):FutureWarning")

VALUES = st.text(max_size=12)
LABELLED = st.fixed_dictionaries(
    {
        **{
            label: st.tuples(VALUES)
            for label in LABELS
            if label not in {"tag", "severity", "family"}
        },
        "tag": st.lists(VALUES, max_size=3).map(tuple),
        "family": st.sampled_from(["loss", "state"]).map(lambda value: (value,)),
        "severity": st.sampled_from(["critical", "warning", "info"]).map(lambda value: (value,)),
    }
)
PIECES = st.sampled_from(
    [*LABELS, *Operator, " ", "'", '"', "\\", "critical", "loss", ".*", "[", "(", "{9", "~", "x"]
)


@given(text=st.lists(PIECES | st.characters(), max_size=20).map("".join))
def test_a_text_is_refused_or_means_the_same_when_it_is_written_again(text):
    try:
        matchers = parse(text)
    except ValueError:
        return

    assert parse(" ".join(map(str, matchers))) == matchers


@given(
    labels=LABELLED,
    label=st.sampled_from(["source", "project", "run", "group", "tag", "kind"]),
    value=VALUES,
)
def test_a_condition_and_its_opposite_never_agree(labels, label, value):
    assert Matcher(label, Operator.IS, value).holds(labels) != Matcher(
        label, Operator.IS_NOT, value
    ).holds(labels)


@given(labels=LABELLED)
def test_an_alert_is_meant_by_its_own_labels(labels):
    own = [Matcher(label, Operator.IS, value) for label in LABELS for value in labels[label]]

    assert all_hold(own, labels)
