"""Runs whose steps stop coming: told once, by the run's own cadence, and never for a wrong reason."""

from dataclasses import replace

import pytest

from tests.support.memory import PLAN, World
from wtwin_watch.ingest.plan import Patience
from wtwin_watch.model import Point, Restart, RunStatus, Severity

RUNNING = {"status": RunStatus.RUNNING}


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.source.facts["a"] = RUNNING
    yield world
    world.store.close()


def training(world, seconds=20.0, run="a"):
    """Let a run be found, and log for a while."""
    world.source.log(run, [2.0] * 10)
    world.settle()
    world.pass_time(seconds, log=run)


def test_a_run_that_hangs_is_told_within_five_minutes_and_again_when_it_goes_on(world):
    training(world)

    world.pass_time(290.0)
    assert world.outbox() == []
    world.pass_time(10.0)
    assert world.outbox() == [("firing", "a", "stalled")]
    alert = world.store.next_notification("oncall").alert
    assert alert.severity is Severity.CRITICAL
    assert "No new step since step 20" in alert.detection.summary
    assert "its tracker says that it is running" in alert.detection.summary
    world.source.log("a", [2.0])
    world.settle(2.0)

    assert world.outbox() == [("firing", "a", "stalled"), ("resolved", "a", "stalled")]


@pytest.fixture
def slow(tmp_path):
    """A world that looks every ten minutes, in which days pass quickly."""
    world = World(tmp_path, plan=replace(PLAN, interval_s=600.0))
    world.source.log("a", [2.0] * 10)
    world.settle()
    world.pass_time(6_000.0, log="a", every=600.0)
    yield world
    world.store.close()


def test_a_log_that_cannot_say_whether_its_run_has_ended_is_a_warning_for_a_day(slow):
    slow.pass_time(18_000.0, every=600.0)
    assert slow.outbox() == [("firing", "a", "stalled")]
    assert slow.store.next_notification("oncall").alert.severity is Severity.WARNING

    slow.pass_time(86_400.0, every=600.0)

    assert slow.outbox() == [("firing", "a", "stalled"), ("resolved", "a", "stalled")]
    alert = slow.store.latest_alerts("memory").popitem()[1].popitem()[1]
    assert alert.outcome == "No step came for 24 h, so the run is taken for ended."


def test_a_run_that_its_tracker_calls_running_stays_stalled(slow):
    slow.source.facts["a"] = RUNNING
    slow.pass_time(2 * 86_400.0, every=600.0)

    assert slow.outbox() == [("firing", "a", "stalled")]


def test_a_pause_as_long_as_those_before_is_none(world):
    training(world)
    for _ in range(3):
        world.pass_time(250.0)
        world.source.log("a", [2.0])
        world.settle(2.0)
    world.pass_time(900.0)

    assert world.outbox() == []


def test_a_run_already_old_at_first_sight_never_stalls(world):
    world.source.log("a", [2.0] * 50)
    world.source.last_activity["a"] = world.clock.now - 4_000.0
    world.settle()
    world.pass_time(2_000.0, every=60.0)

    assert world.outbox() == []


def test_a_source_that_is_down_stalls_none_of_its_runs(world):
    training(world)
    world.source.down = "no route to host"
    world.pass_time(900.0)
    assert world.outbox() == [("firing", "", "source_down")]
    world.source.down = None
    world.pass_time(120.0)

    assert world.outbox() == [("firing", "", "source_down"), ("resolved", "", "source_down")]


def test_a_restart_of_the_daemon_is_no_pause_of_the_run(world):
    training(world)
    world.pass_time(200.0)
    world.clock.now += 50_000.0
    world.restart()
    world.settle()
    world.pass_time(60.0)
    assert world.outbox() == []
    world.pass_time(300.0)

    assert world.outbox() == [("firing", "a", "stalled")]


def test_a_stall_that_is_open_at_a_restart_ends_with_the_next_step(world):
    training(world)
    world.pass_time(300.0)
    world.restart()
    world.settle()
    assert world.outbox() == [("firing", "a", "stalled")]
    world.source.log("a", [2.0])
    world.settle(2.0)

    assert world.outbox()[1:] == [("resolved", "a", "stalled")]


def test_rows_that_repeat_a_step_are_no_progress(world):
    training(world)
    step = len(world.source.logs["a"])
    for _ in range(150):
        world.source.logs["a"].append(Point("grad_norm", float(step), 1.0))
        world.settle(1.4)

    assert world.outbox() == [("firing", "a", "stalled")]


def test_a_run_that_was_begun_again_at_an_earlier_step_goes_on(world):
    training(world)
    world.pass_time(300.0)
    world.source.log("a", [2.0], start=5)
    world.settle(2.0)

    assert world.outbox() == [("firing", "a", "stalled"), ("resolved", "a", "stalled")]


def test_a_log_that_starts_anew_ends_a_stall(world):
    training(world)
    world.pass_time(300.0)
    world.source.logs["a"].clear()
    world.source.log("a", [2.0] * 3)
    world.source.restarts["a"] = Restart("the file was replaced")
    world.settle(2.0)

    assert world.outbox() == [("firing", "a", "stalled"), ("resolved", "a", "stalled")]


def test_a_source_can_be_told_not_to_look_for_stalls(tmp_path):
    world = World(tmp_path, plan=replace(PLAN, stalls=False))
    training(world)
    world.pass_time(900.0)

    assert world.outbox() == []
    world.store.close()


def test_how_long_is_waited_at_least_can_be_set(tmp_path):
    world = World(tmp_path, patience=Patience(stall_after_s=60.0))
    training(world)
    world.pass_time(64.0)

    assert world.outbox() == [("firing", "a", "stalled")]
    world.store.close()


def test_settings_of_the_detector_that_change_leave_a_stall_as_it_is(world):
    from wtwin_watch.monitor.run import ClassicOptions

    training(world)
    world.pass_time(300.0)
    world.restart(detector=ClassicOptions(alpha=3.0))
    world.settle()
    world.pass_time(20.0)
    assert world.outbox() == [("firing", "a", "stalled")]
    world.source.log("a", [2.0])
    world.settle(2.0)

    assert world.outbox()[1:] == [("resolved", "a", "stalled")]
