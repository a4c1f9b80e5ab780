"""Alerts that somebody has seen, or that are silenced, are marked so wherever they are shown."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.records import make_alert, make_checkpoint
from wtwin_watch.model import Acknowledgement, AlertState
from wtwin_watch.store import Store


@pytest.fixture
def marked(wtwin_watch: CommandLine, state_path: Path, store: Store) -> Store:
    """An alert that is seen and silenced, and one that is neither, for it is over."""
    seen = Acknowledgement("ada", 2e9, comment="the loader is slow")
    alert = make_alert("alert-1", acknowledged=seen)
    over = replace(
        alert, id="over-1", state=AlertState.RESOLVED, started_at=1.0, outcome="it is back"
    )
    store.save([make_checkpoint(alert=alert), make_checkpoint(alert=over)], 2e9)
    wtwin_watch(
        "silence", "run=a", "--for", "2h", "--by", "grace", "--comment", "cluster move",
        "--state", state_path,
    )  # fmt: skip
    return store


def test_the_list_of_alerts_marks_them(wtwin_watch: CommandLine, state_path: Path, marked: Store):
    first, second = wtwin_watch("alerts", "--state", state_path).out.splitlines()

    assert first.startswith("alert-1  firing, seen by ada, silenced until 2")
    assert second.startswith("over-1   resolved   ")


def test_the_story_of_an_alert_says_who_and_why(
    wtwin_watch: CommandLine, state_path: Path, marked: Store
):
    out = wtwin_watch("alerts", "show", "alert-1", "--state", state_path).out

    assert "said of it         ada: the loader is slow" in out
    assert "silenced by        grace: cluster move (" in out
    [plain] = wtwin_watch("alerts", "show", "alert-1", "--state", state_path, "--json").json
    assert plain["acknowledged"]["by"] == "ada"
    assert (plain["silenced"]["author"], plain["silenced"]["comment"]) == ("grace", "cluster move")
    [over] = wtwin_watch("alerts", "show", "over-1", "--state", state_path, "--json").json
    assert over["silenced"] is None


def test_the_status_marks_them(wtwin_watch: CommandLine, state_path: Path, marked: Store):
    out = wtwin_watch("status", "--state", state_path).out

    assert "  firing, seen by ada, silenced until 2" in out
    [plain] = wtwin_watch("status", "--state", state_path, "--json").json["alerts"]
    assert plain["acknowledged"] == {
        "by": "ada",
        "at": 2e9,
        "until": None,
        "comment": "the loader is slow",
    }
    assert plain["silenced"]["author"] == "grace"


@pytest.mark.parametrize(("ends_in_s", "shown"), [(60.0, True), (-60.0, False)])
def test_an_acknowledgement_is_shown_as_long_as_it_holds(
    wtwin_watch: CommandLine, state_path: Path, store: Store, ends_in_s: float, shown: bool
):
    seen = Acknowledgement("ada", 1.0, until=time.time() + ends_in_s)
    store.save([make_checkpoint(alert=make_alert("alert-1", acknowledged=seen))], 2e9)

    out = wtwin_watch("alerts", "--state", state_path).out

    assert ("seen by ada (until 2" in out) is shown
