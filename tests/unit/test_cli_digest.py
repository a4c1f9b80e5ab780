"""The command that prints a digest."""

import time

from tests.support.records import make_alert, make_checkpoint
from wtwin_watch.model import AlertState, Severity


def test_the_last_day_is_shown(wtwin_watch, state_path, store):
    now = time.time()
    begun = {"started_at": now - 7200, "fired_at": now - 7200}
    store.save([make_checkpoint(alert=make_alert("alert-1", **begun))], now)

    done = wtwin_watch("digest", "--state", state_path)

    assert (done.code, done.err) == (0, "")
    title, _, alert, _, period, runs = done.out.splitlines()
    assert title == "Digest: 1 alert in 1 run"
    assert alert == "warning: loss drifts up (a), 2h, fires still"
    assert period.startswith("Period        20")
    assert runs == "Runs watched  1, 0 of them new"


def test_a_week_reaches_further_back_than_a_day(wtwin_watch, state_path, store):
    at = time.time() - 3 * 86_400
    spike = {"kind": "spike", "severity": Severity.INFO, "started_at": at, "fired_at": at}
    over = {"resolved_at": at + 60, "state": AlertState.RESOLVED}
    store.save([make_checkpoint(alert=make_alert("alert-1", **spike, **over))], at)

    assert "loss spiked" not in wtwin_watch("digest", "--state", state_path).out
    assert "Information   loss spiked once" in (
        wtwin_watch("digest", "--period", "week", "--state", state_path).out
    )


def test_a_digest_for_a_program_has_the_facts(wtwin_watch, state_path, store):
    now = time.time()
    store.save([make_checkpoint(alert=make_alert("alert-1", started_at=now, fired_at=now))], now)

    told = wtwin_watch("digest", "--json", "--state", state_path).json

    assert told["to"] - told["from"] == 86_400
    assert [(alert["id"], alert["name"], alert["untold"]) for alert in told["alerts"]] == [
        ("alert-1", "a", None)
    ]
    assert told["false_alarms_expected"] is None
    assert (told["runs"], told["new_runs"], told["not_told"], told["sources_down"]) == (
        1,
        0,
        {},
        [],
    )


def test_without_a_state_there_is_no_digest(wtwin_watch, state_path):
    assert wtwin_watch("digest", "--state", state_path).code == 69
