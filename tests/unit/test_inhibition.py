"""Alerts that another one explains."""

import pytest

from tests.support.records import make_alert
from wtwin_watch.alerting.inhibition import inhibitor
from wtwin_watch.model import AlertState, Family, Run, RunKey

SOURCE = Run(RunKey("logs", ""), "logs")


def down(kind="source_down", **changes):
    return make_alert("down", run=SOURCE, family=Family.SOURCE, kind=kind, **changes)


def failed(kind="failed", **changes):
    return make_alert("failed", family=Family.STATE, kind=kind, **changes)


def hidden_by(other):
    return [f for f in Family if inhibitor(make_alert(family=f), [other]) is other]


def test_a_source_that_is_down_explains_stalls_and_states_of_its_runs():
    # What is wrong with a loss was read before, and stays wrong.
    assert hidden_by(down()) == [Family.PROGRESS, Family.STATE]


def test_a_source_of_which_some_runs_cannot_be_read_explains_nothing():
    assert hidden_by(down(kind="source_partly_down")) == []


@pytest.mark.parametrize("kind", ["failed", "crashed", "killed", "preempted"])
def test_a_run_that_has_ended_explains_its_loss_and_its_progress(kind):
    assert hidden_by(failed(kind)) == [Family.LOSS, Family.NONFINITE, Family.PROGRESS]


@pytest.mark.parametrize(
    "changes",
    [{"state": AlertState.PENDING}, {"state": AlertState.RESOLVED}, {"quiet": True}],
    ids=["pending", "resolved", "in the history"],
)
def test_what_nobody_is_told_of_now_explains_nothing(changes):
    assert hidden_by(down(**changes)) == []
    assert hidden_by(failed(**changes)) == []


def test_a_loss_explains_no_other_alert():
    assert hidden_by(make_alert(kind="divergence")) == []


def test_the_first_that_explains_an_alert_is_named():
    others = [make_alert(), down(), failed()]

    assert inhibitor(make_alert(family=Family.PROGRESS), others) is others[1]
    assert inhibitor(make_alert(family=Family.LOSS), others) is others[2]
    assert inhibitor(make_alert(family=Family.SOURCE), others) is None
    assert inhibitor(make_alert(family=Family.PROGRESS), []) is None
