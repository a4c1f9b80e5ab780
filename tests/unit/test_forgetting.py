"""Runs that go away, rest or move again, and sources that are watched no longer."""

from dataclasses import replace

import pytest

from tests.support.memory import PLAN, World
from wtwin_watch.errors import StoreError
from wtwin_watch.ingest.resting import REST_AFTER_S
from wtwin_watch.model import Family, RunStatus

NAN = [float("nan")]
DAY_S = 86_400.0


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.store.close()


def seen(world, *runs):
    for run in runs:
        world.source.log(run, [2.0] * 20)
    world.settle()


def known(world):
    return {record.run.key.run for record in world.store.run_records("memory")}


def poller(world):
    return world.engine._pollers["memory"]


def outcome(world, run, family):
    for key, alerts in world.store.latest_alerts("memory").items():
        if key.run == run:
            return alerts[family].outcome
    return None


def test_what_is_open_about_a_log_that_was_deleted_ends_with_that_reason(world):
    seen(world, "a", "b")
    world.source.log("a", NAN)
    world.settle(2)
    del world.source.logs["a"]
    world.pass_time(50.0)
    assert world.outbox() == [("firing", "a", "nonfinite")]
    world.pass_time(20.0)

    assert world.outbox() == [("firing", "a", "nonfinite"), ("resolved", "a", "nonfinite")]
    said = outcome(world, "a", Family.NONFINITE)
    assert said == "The run is gone: its source doesn't list it any more."


def test_a_log_that_is_away_for_a_moment_keeps_what_is_open(world):
    seen(world, "a", "b")
    world.source.log("a", NAN)
    world.settle(2)
    log = world.source.logs.pop("a")
    world.pass_time(30.0)
    world.source.logs["a"] = log
    world.pass_time(300.0)

    assert world.outbox() == [("firing", "a", "nonfinite")]


def test_a_source_that_is_down_makes_no_run_gone(world):
    seen(world, "a", "b")
    world.source.log("a", NAN)
    world.settle(2)
    world.source.down = "no such folder"
    world.pass_time(600.0)

    assert ("resolved", "a", "nonfinite") not in world.outbox()


def test_a_run_that_is_gone_is_forgotten_after_seven_days(world):
    seen(world, "a", "b")
    del world.source.logs["a"]
    world.pass_time(100.0)
    assert known(world) == {"a", "b"}
    assert set(poller(world).roster.awake) == {"b"}
    world.clock.now += 6 * DAY_S
    world.settle(2)
    assert known(world) == {"a", "b"}
    world.clock.now += 1.1 * DAY_S
    world.settle(2)

    assert known(world) == {"b"}
    assert set(poller(world).roster.awake) | set(poller(world).roster.resting) == {"b"}


def test_a_run_that_is_gone_is_forgotten_though_the_daemon_was_started_again_meanwhile(world):
    seen(world, "a", "b")
    del world.source.logs["a"]
    world.pass_time(100.0)
    world.clock.now += 5 * DAY_S
    world.restart()
    world.settle()
    world.clock.now += 2.1 * DAY_S
    world.settle(2)

    assert known(world) == {"b"}


def test_a_run_that_comes_back_goes_on_where_it_was(world):
    seen(world, "a", "b")
    log = world.source.logs.pop("a")
    world.pass_time(200.0)
    world.source.logs["a"] = log
    world.source.log("a", [2.0] * 5)
    world.settle(2)
    world.engine.close()

    points = {r.run.key.run: (r.points, r.gone_since) for r in world.store.run_records("memory")}
    assert points["a"] == (25, None)


def test_a_run_that_comes_back_and_is_still_wrong_is_told_again(world):
    seen(world, "a", "b")
    world.source.log("a", NAN)
    world.settle(2)
    log = world.source.logs.pop("a")
    world.pass_time(200.0)
    world.source.logs["a"] = log
    world.source.log("a", NAN)
    world.settle(2)

    assert [event for event, _, _ in world.outbox()] == ["firing", "resolved", "firing"]


def rested(world, *runs):
    seen(world, *runs)
    world.clock.now += REST_AFTER_S
    world.settle(2)


def test_a_run_that_brings_nothing_for_an_hour_is_not_kept_in_memory(world):
    rested(world, "a", "b")

    assert poller(world).roster.awake == {}
    assert "watching 2 runs" in world.engine.status()


def test_a_run_at_rest_that_moves_goes_on_where_it_was(world):
    rested(world, "a", "b")
    fetches = len(world.source.fetches)
    world.source.log("a", [2.0] * 5 + NAN)
    world.settle(2)

    assert world.outbox() == [("firing", "a", "nonfinite")]
    assert world.source.fetches[fetches:] == [("a", {"n": 20, "restart": None})]
    assert set(poller(world).roster.awake) == {"a"}


def test_a_run_at_rest_is_not_read_again_at_a_restart(world):
    rested(world, "a", "b")
    world.restart()
    fetches = len(world.source.fetches)
    world.settle()

    assert len(world.source.fetches) == fetches
    assert poller(world).roster.awake == {}


def test_a_run_at_rest_whose_status_changes_is_taken_up(world):
    world.source.facts["a"] = {"status": RunStatus.RUNNING}
    rested(world, "a", "b")
    world.source.facts["a"] = {"status": RunStatus.FAILED}
    world.pass_time(310.0)

    assert world.outbox() == [("firing", "a", "failed")]


def test_a_run_about_which_something_is_open_does_not_rest(world):
    seen(world, "a", "b")
    world.source.log("a", NAN)
    world.settle(2)
    world.clock.now += REST_AFTER_S
    world.settle(2)

    assert set(poller(world).roster.awake) == {"a"}


def test_what_is_open_about_a_source_that_is_watched_no_longer_ends_at_the_next_start(world):
    seen(world, "a", "b")
    world.source.log("a", NAN)
    world.settle(2)
    world.source.down = "no such folder"
    world.pass_time(100.0)
    world.engine.close()
    world.store.close()
    world.source = type(world.source)("other")
    world.start(name="other")
    world.engine.leave_others()

    assert sorted(world.outbox()[2:]) == [
        ("resolved", "", "source_down"),
        ("resolved", "a", "nonfinite"),
    ]
    said = outcome(world, "a", Family.NONFINITE)
    assert said == "The source is no longer watched: the settings don't name it any more."
    assert world.store.source_names() == []
    world.store.prune(0.0, gone_before=world.clock.now + 1.0)
    assert known(world) == set()


def test_a_source_that_is_watched_again_goes_on_with_its_runs(world):
    seen(world, "a", "b")
    source = world.source
    world.engine.close()
    world.store.close()
    world.source = type(source)("other")
    world.start(name="other")
    world.engine.leave_others()
    world.engine.close()
    world.store.close()
    world.source = source
    world.start()
    world.engine.leave_others()
    world.source.log("a", [2.0])
    world.settle()
    world.engine.close()

    points = {r.run.key.run: (r.points, r.gone_since) for r in world.store.run_records("memory")}
    assert points == {"a": (21, None), "b": (20, None)}


def test_a_full_disk_stops_nobody_and_runs_at_rest_are_noted_as_gone_later(world, monkeypatch):
    rested(world, "a", "b")

    def full(*_):
        raise StoreError("the disk is full")

    monkeypatch.setattr(world.store, "mark_gone", full)
    del world.source.logs["a"]
    world.settle(2)
    world.source.log("b", NAN)
    world.settle(2)
    assert world.outbox() == [("firing", "b", "nonfinite")]
    monkeypatch.undo()
    world.settle(2)
    world.clock.now += 7.1 * DAY_S
    world.settle(2)

    assert known(world) == {"b"}


def test_excluded_runs_are_not_watched_and_excluded_metrics_not_looked_at(tmp_path):
    plan = replace(PLAN, exclude=("gan-*",), exclude_metrics=("d_*", "loss"))
    world = World(tmp_path, plan=plan)
    seen(world, "gan-7", "llm")
    world.source.log("gan-7", NAN)
    world.source.log("llm", NAN)
    world.settle(2)
    world.engine.close()

    assert world.outbox() == []
    assert {r.run.key.run: r.points for r in world.store.run_records("memory")} == {"llm": 0}
    world.store.close()
