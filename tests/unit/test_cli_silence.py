"""Silences from the command line, whether a daemon runs or not."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.records import make_alert, make_checkpoint
from wtwin_watch.alerting.lifecycle import Reason, Transition
from wtwin_watch.model import AlertState, Family, Run, RunKey
from wtwin_watch.store import Checkpoint, Store

SWEEP = Run(RunKey("logs", "s1"), "sweep-1", project="myteam/llm")


@pytest.fixture
def alerts(store: Store) -> Store:
    """Open alerts of the runs ``a`` and ``sweep-1`` and of the source, one that is over, one of history."""
    store.save(
        [
            make_checkpoint(alert=make_alert("alert-a")),
            make_checkpoint(run=SWEEP, alert=make_alert("alert-s", run=SWEEP)),
            make_checkpoint(
                run=SWEEP, alert=make_alert("over", run=SWEEP, state=AlertState.RESOLVED)
            ),
            make_checkpoint(run=SWEEP, alert=make_alert("history", run=SWEEP, quiet=True)),
        ],
        2e9,
    )
    down = make_alert("down", run=Run(RunKey("logs", ""), "logs"), family=Family.SOURCE)
    store.save([Checkpoint(None, (Transition(down, Reason.LASTED, 1.0),))], 2e9)
    return store


def when(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat()


SAID = ("--by", "ada", "--comment", "moving the cluster")


@pytest.mark.parametrize("word", [["add"], []], ids=["add", "no word"])
def test_a_silence_covers_the_alerts_that_its_matchers_mean(
    wtwin_watch: CommandLine, state_path: Path, alerts: Store, word: list[str]
):
    done = wtwin_watch(
        "silence", *word, 'project=myteam/llm run=~"sweep-.*"', "--for", "2h", *SAID,
        "--state", state_path,
    )  # fmt: skip

    assert (done.code, done.err) == (0, "")
    [line] = done.out.splitlines()
    assert "  active  project=myteam/llm run=~'sweep-.*'  until " in line
    assert "(2h)  1 open alert  ada: moving the cluster" in line
    [silence] = alerts.silences(time.time())
    assert silence.ends_at - silence.starts_at == pytest.approx(7200.0, abs=1e-3)
    assert (silence.author, silence.comment) == ("ada", "moving the cluster")
    [plain] = wtwin_watch("silence", "list", "--state", state_path, "--json").json
    assert (plain["id"], plain["alerts"]) == (silence.id, ["alert-s"])


def test_matchers_may_be_given_one_by_one_with_spaces_quoted_again(
    wtwin_watch: CommandLine, state_path: Path, alerts: Store
):
    done = wtwin_watch(
        "silence", "severity>=warning", 'run="my run"', "--for", "1d", *SAID,
        "--state", state_path, "--json",
    )  # fmt: skip

    assert done.json[0]["matchers"] == "severity>=warning run='my run'"
    [silence] = alerts.silences(time.time())
    assert [(m.label, m.value) for m in silence.matchers] == [
        ("severity", "warning"),
        ("run", "my run"),
    ]


def test_everything_is_silenced_only_when_it_is_said(
    wtwin_watch: CommandLine, state_path: Path, alerts: Store
):
    refused = wtwin_watch("silence", "add", "--for", "2h", *SAID, "--state", state_path)
    assert refused.code == 2
    assert "say --everything" in refused.err

    done = wtwin_watch(
        "silence", "add", "--everything", "--for", "2h", *SAID, "--state", state_path
    )

    assert "  everything  until " in done.out
    assert "  3 open alerts  " in done.out


def test_a_silence_may_begin_later(wtwin_watch: CommandLine, state_path: Path, alerts: Store):
    begins = time.time() + 3600.0
    done = wtwin_watch(
        "silence", "run=a", "--start", when(begins), "--for", "30m", *SAID,
        "--state", state_path, "--json",
    )  # fmt: skip

    [plain] = done.json
    assert plain["state"] == "pending"
    assert plain["starts_at"] == pytest.approx(begins, abs=1e-3)
    assert plain["ends_at"] == pytest.approx(begins + 1800.0, abs=1e-3)
    [silence] = alerts.silences(time.time())
    assert not silence.active(time.time())
    assert silence.active(begins + 1.0)


def test_an_end_is_a_time_with_its_zone(wtwin_watch: CommandLine, state_path: Path, alerts: Store):
    ends = float(round(time.time())) + 5400.0
    done = wtwin_watch(
        "silence", "run=a", "--until", when(ends), *SAID, "--state", state_path, "--json"
    )

    assert done.json[0]["ends_at"] == ends


def test_a_silence_that_was_ended_is_listed_only_with_all(
    wtwin_watch: CommandLine, state_path: Path, alerts: Store
):
    [plain] = wtwin_watch(
        "silence", "run=a", "--for", "2h", *SAID, "--state", state_path, "--json"
    ).json

    done = wtwin_watch("silence", "end", plain["id"][:6], "--state", state_path)

    assert done.code == 0
    assert "  ended  run=a  until " in done.out
    assert alerts.silences(time.time()) == []
    assert wtwin_watch("silence", "--state", state_path).out == "nothing is silenced\n"
    [again] = wtwin_watch("silence", "list", "--all", "--state", state_path, "--json").json
    assert (again["id"], again["state"]) == (plain["id"], "ended")
    refused = wtwin_watch("silence", "end", plain["id"], "--state", state_path)
    assert (refused.code, "has ended already" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["ad", "run=a"], "'ad' is neither a matcher nor one of add, list, end"),
        (["run=a", *SAID], "a silence has an end"),
        (["run=a", "--for", "2h"], "--comment is missing or empty"),
        (["run=a", "--for", "400d", *SAID], "between 0 and 366 days"),
        (["run=a", "--until", "2999-01-01T00:00Z", *SAID], "within 366 days"),
        (["run=a", "--until", "2020-01-01T00:00Z", *SAID], "would have ended before it begins"),
        (["run=a", "--until", "2027-01-01", *SAID], "with its time zone"),
        (["run=a", "--for", "1h", "--until", "2027-01-01T00:00Z", *SAID], "say the same thing"),
        (["rum=a", "--for", "2h", *SAID], "the matchers: 'rum' is no label"),
        (["run=~[", "--for", "2h", *SAID], "is no regular expression"),
        (["run=" + "a" * 300, "run!=" + "b" * 300, "--for", "2h", *SAID], "at most 500 characters"),
        (["run=a", "--everything", "--for", "2h", *SAID], "--everything takes no matchers"),
        (["run=a", "--all", "--for", "2h", *SAID], "--all belongs to list"),
        (["list", "x"], "list takes no 'x'"),
        (["list", "--for", "2h"], "list takes no option of a new silence"),
        (["end"], "end wants the ID"),
        (["end", "ffff"], "ffff: no such silence"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_what_is_asked_wrongly_is_exit_code_2_and_changes_nothing(
    wtwin_watch: CommandLine, state_path: Path, alerts: Store, arguments: list[str], why: str
):
    done = wtwin_watch("silence", *arguments, "--state", state_path)

    assert done.code == 2
    assert why in done.err
    assert alerts.silences(time.time()) == []


def test_a_silence_that_ended_long_ago_is_forgotten(
    wtwin_watch: CommandLine, state_path: Path, alerts: Store
):
    wtwin_watch("silence", "run=a", "--for", "1s", *SAID, "--state", state_path)
    wtwin_watch("silence", "run=b", "--for", "2h", *SAID, "--state", state_path)

    alerts.prune(before=time.time() + 60.0, gone_before=0.0)

    left = wtwin_watch("silence", "list", "--all", "--state", state_path, "--json").json
    assert [one["matchers"] for one in left] == ["run=b"]


def test_there_is_nothing_to_silence_without_a_state(wtwin_watch: CommandLine, state_path: Path):
    assert wtwin_watch("silence", "run=a", "--for", "2h", *SAID, "--state", state_path).code == 69


@pytest.fixture
def windows(tmp_path: Path) -> Path:
    """Windows of which one of two always holds, one that is far ahead, and one that is over."""
    path = tmp_path / "config.toml"
    path.write_text(
        """
        [[maintenance]]
        match = "run=a"
        start = "00:00"
        end = "23:59"
        comment = "by day"
        [[maintenance]]
        match = "run=a"
        start = "23:59"
        end = "00:00"
        comment = "by night"
        [[maintenance]]
        match = "everything"
        days = ["2999-12-24"]
        start = "01:00"
        end = "02:00"
        comment = "Christmas"
        [[maintenance]]
        match = "run=a"
        days = ["2020-12-24"]
        start = "01:00"
        end = "02:00"
        comment = "over"
        """
    )
    return path


def test_maintenance_windows_are_listed_with_the_time_that_holds_or_comes_next(
    wtwin_watch: CommandLine, state_path: Path, alerts: Store, windows: Path
):
    place = ("--state", state_path, "--config", windows)

    first, *others = wtwin_watch("silence", "list", *place, "--json").json

    assert (first["matchers"], first["author"], first["comment"]) == ("", "settings", "Christmas")
    assert (first["state"], len(first["alerts"])) == ("pending", 3)
    assert (
        datetime.fromtimestamp(first["starts_at"], UTC).isoformat() == "2999-12-24T01:00:00+00:00"
    )
    assert {one["comment"] for one in others} == {"by day", "by night"}
    assert sorted(one["state"] for one in others) == ["active", "pending"]
    assert all(one["alerts"] == ["alert-a"] for one in others)
    shown = wtwin_watch("silence", "list", *place).out.splitlines()
    assert "  pending  everything  from 2999-12-24 " in shown[0]
    refused = wtwin_watch("silence", "end", first["id"][:8], *place)
    assert (refused.code, "is a [[maintenance]] window of the settings" in refused.err) == (2, True)


def test_an_alert_in_a_maintenance_window_is_marked_as_silenced(
    wtwin_watch: CommandLine, state_path: Path, alerts: Store, windows: Path
):
    place = ("--state", state_path, "--config", windows)

    listed = wtwin_watch("alerts", *place, "--json").json
    [shown] = wtwin_watch("alerts", "show", "alert-a", *place, "--json").json
    status = wtwin_watch("status", *place, "--json").json

    assert {one["id"] for one in listed if one["silenced"]} == {"alert-a"}
    assert shown["silenced"]["author"] == "settings"
    assert {one["id"] for one in status["alerts"] if one["silenced"]} == {"alert-a"}
