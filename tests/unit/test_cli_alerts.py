from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.records import make_alert, make_checkpoint, make_entry
from wtwin_watch.alerting.lifecycle import Reason, Transition
from wtwin_watch.alerting.telling import Choice, Decision
from wtwin_watch.model import AlertState, Event
from wtwin_watch.store import Checkpoint, Store


def test_the_latest_alert_comes_first(wtwin_watch: CommandLine, state_path: Path, store: Store):
    store.save([make_checkpoint(alert=make_alert("old-1", started_at=1000.0))], 2e9)
    over = make_alert("new-1", started_at=2000.0, state=AlertState.RESOLVED, outcome="well again")
    store.save([make_checkpoint(alert=over)], 2e9)

    done = wtwin_watch("alerts", "--state", state_path)

    assert (done.code, done.err) == (0, "")
    first, second = done.out.splitlines()
    assert first.startswith("new-1  resolved  warning  drift  a  ")
    assert first.endswith("well again")
    assert second.startswith("old-1  firing    warning  drift  a  ")
    [only] = wtwin_watch("alerts", "--open", "--state", state_path, "--json").json
    assert (only["id"], only["name"], only["detection"]["observed"]) == ("old-1", "a", 1.9)
    assert len(wtwin_watch("alerts", "--most", "1", "--state", state_path, "--json").json) == 1


def test_the_story_of_an_alert_says_why_it_fired_and_who_was_told(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    alert = make_alert("alert-1")
    store.save([make_checkpoint(make_entry("n1", "team", alert=alert), alert=alert)], 2e9)
    over = replace(alert, state=AlertState.RESOLVED, outcome="it is back at its trend")
    ended = Transition(over, Reason.ENDED, 1600.0, Event.RESOLVED)
    store.save([Checkpoint(None, (ended,), ())], 2e9)

    done = wtwin_watch("alerts", "show", "alert", "--state", state_path)

    assert done.code == 0
    assert "what               the loss is 0.40 above its forecast" in done.out
    assert "last healthy step  2204" in done.out
    assert "firing    started  told: firing" in done.out
    assert "resolved  ended    told: resolved  it is back at its trend" in done.out
    assert "team  firing  waiting  0 attempts" in done.out
    [story] = wtwin_watch("alerts", "show", "alert-1", "--state", state_path, "--json").json
    assert [change["reason"] for change in story["changes"]] == ["started", "ended"]
    assert [(told["receiver"], told["state"]) for told in story["told"]] == [("team", "waiting")]


def test_an_alert_nobody_was_told_of_says_so(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    alert = make_alert("alert-1", quiet=True)
    history = Transition(alert, Reason.HISTORY, 1000.0)
    store.save([Checkpoint(None, (history,), ())], 2e9)

    done = wtwin_watch("alerts", "show", "alert-1", "--state", state_path)

    assert "history before first sight  nobody told" in done.out
    assert done.out.endswith("what was sent\n  nobody\n")


def test_the_story_of_an_alert_says_why_nobody_was_told(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    alert = make_alert("alert-1")
    held = Decision("alert-1", 1000.0, "", Choice.SILENCED, "silence 3f2a of sam: maintenance")
    started = Transition(alert, Reason.STARTED, 1000.0)
    store.save([Checkpoint(transitions=[started], decisions=[held])], 2e9)

    done = wtwin_watch("alerts", "show", "alert-1", "--state", state_path)

    assert "everybody  silenced  silence 3f2a of sam: maintenance" in done.out
    [story] = wtwin_watch("alerts", "show", "alert-1", "--state", state_path, "--json").json
    assert [one["decision"] for one in story["decisions"]] == ["silenced"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["show", "x"], "no such alert"),
        (["show", "alert-"], "more than one"),
        (["show"], "wants the ID"),
        (["list", "x"], "takes no ID"),
    ],
)
def test_what_is_asked_wrongly_is_exit_code_2(
    wtwin_watch: CommandLine, state_path: Path, store: Store, arguments: list[str], why: str
):
    store.save([make_checkpoint(alert=make_alert(f"alert-{n}")) for n in (1, 2)], 2e9)

    done = wtwin_watch("alerts", *arguments, "--state", state_path)

    assert done.code == 2
    assert why in done.err


def test_there_are_no_alerts_without_a_state(wtwin_watch: CommandLine, state_path: Path):
    assert wtwin_watch("alerts", "--state", state_path).code == 69
