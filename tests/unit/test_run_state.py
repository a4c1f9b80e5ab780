"""What a tracker says of its runs: failed, crashed, killed, preempted, finished; and what is made of that."""

from dataclasses import replace

import pytest

from tests.support.memory import PLAN, World
from wtwin_watch.errors import SourceError
from wtwin_watch.ingest.plan import Patience
from wtwin_watch.model import AlertState, Family, Restart, RunStatus, Severity

NAN = [float("nan")]


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.store.close()


def becomes(world, status, run="a", **facts):
    world.source.facts[run] = {"status": status, **facts}


def training(world, run="a"):
    becomes(world, RunStatus.RUNNING, run)
    world.source.log(run, [2.0] * 20)
    world.settle()
    world.pass_time(10.0, log=run)


def latest(world, family, run="a"):
    (alerts,) = (
        alerts for key, alerts in world.store.latest_alerts("memory").items() if key.run == run
    )
    return alerts[family]


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.CRASHED])
def test_a_run_that_failed_is_told_after_its_grace(world, status):
    training(world)
    becomes(world, status, exit_code=137)
    world.pass_time(290.0)
    assert world.outbox() == []
    world.pass_time(20.0)

    assert world.outbox() == [("firing", "a", status.value)]
    alert = world.store.next_notification("oncall").alert
    assert alert.severity is Severity.CRITICAL
    assert "(exit code 137)" in alert.detection.summary
    assert alert.detection.step == 25.0


def test_a_run_that_was_called_crashed_and_goes_on_within_the_grace_pages_nobody(world):
    training(world)
    becomes(world, RunStatus.CRASHED)
    world.pass_time(100.0)
    becomes(world, RunStatus.RUNNING)
    world.pass_time(400.0, log="a")

    assert world.outbox() == []
    assert latest(world, Family.STATE).outcome == "The run goes on."


def test_steps_that_go_on_for_more_than_a_minute_belie_a_crash(world):
    training(world)
    becomes(world, RunStatus.CRASHED)
    world.pass_time(400.0, log="a")
    assert world.outbox() == []
    world.source.log("a", NAN)
    world.settle(2.0)

    assert world.outbox() == [("firing", "a", "nonfinite")]


def test_the_rows_a_run_logged_last_do_not_belie_its_end(world):
    training(world)
    becomes(world, RunStatus.FAILED)
    world.pass_time(20.0, log="a")
    world.pass_time(300.0)

    assert world.outbox() == [("firing", "a", "failed")]


def test_a_failed_run_that_is_begun_again_is_well_again_and_its_alert_carries_over(world):
    training(world)
    becomes(world, RunStatus.FAILED)
    world.pass_time(310.0)
    becomes(world, RunStatus.RUNNING)
    world.source.log("a", [2.0] * 3, start=10)
    world.settle(2.0)

    assert world.outbox() == [("firing", "a", "failed"), ("resolved", "a", "failed")]


@pytest.mark.parametrize("status", [RunStatus.KILLED, RunStatus.PREEMPTED])
def test_being_killed_or_preempted_is_information_that_needs_no_end(world, status):
    training(world)
    becomes(world, status)
    world.pass_time(10.0)
    assert world.outbox() == [("firing", "a", status.value)]
    assert world.store.next_notification("oncall").alert.severity is Severity.INFO
    assert latest(world, Family.STATE).state is AlertState.RESOLVED
    becomes(world, RunStatus.RUNNING)
    world.pass_time(10.0, log="a")

    assert world.outbox() == [("firing", "a", status.value)]
    assert world.engine.firing == 0


def test_a_run_that_finishes_is_told_to_nobody(world):
    training(world)
    becomes(world, RunStatus.FINISHED)
    world.pass_time(900.0)

    assert world.outbox() == []


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (RunStatus.FINISHED, "The run has finished, so this is no longer observed."),
        (RunStatus.FAILED, "The run failed, so this is no longer observed."),
        (RunStatus.CRASHED, "The run crashed, so this is no longer observed."),
        (RunStatus.KILLED, "The run was killed, so this is no longer observed."),
    ],
)
def test_what_was_open_about_a_run_that_is_over_ends_with_that_reason(world, status, said):
    training(world)
    world.source.log("a", NAN)
    world.settle(2.0)
    becomes(world, status)
    world.pass_time(310.0)

    assert ("resolved", "a", "nonfinite") in world.outbox()
    assert latest(world, Family.NONFINITE).outcome == said


def test_what_is_open_about_a_run_that_may_have_crashed_stays_open(world):
    training(world)
    world.source.log("a", NAN)
    world.settle(2.0)
    becomes(world, RunStatus.CRASHED)
    world.pass_time(100.0)

    assert latest(world, Family.NONFINITE).state is AlertState.FIRING


def test_what_is_open_about_a_preempted_run_carries_over_to_its_next_attempt(world):
    training(world)
    world.source.log("a", NAN)
    world.settle(2.0)
    becomes(world, RunStatus.PREEMPTED)
    world.pass_time(900.0)
    becomes(world, RunStatus.RUNNING)
    world.source.log("a", [2.0] * 64)
    world.settle(2.0)

    assert world.outbox() == [
        ("firing", "a", "nonfinite"),
        ("firing", "a", "preempted"),
        ("resolved", "a", "nonfinite"),
    ]


def test_a_run_that_goes_on_after_its_end_and_is_still_wrong_is_told_again(world):
    training(world)
    world.source.log("a", NAN)
    world.settle(2.0)
    becomes(world, RunStatus.FAILED)
    world.pass_time(310.0)
    becomes(world, RunStatus.RUNNING)
    world.source.log("a", NAN)
    world.settle(2.0)

    assert world.outbox()[-2:] == [("resolved", "a", "failed"), ("firing", "a", "nonfinite")]


def test_a_run_that_had_ended_before_the_first_look_pages_nobody(world):
    becomes(world, RunStatus.FAILED)
    world.source.log("a", [2.0] * 20 + NAN)
    world.settle()
    world.pass_time(900.0)

    assert world.outbox() == []


def test_a_run_that_came_and_failed_between_two_looks_is_told(world):
    training(world)
    becomes(world, RunStatus.FAILED, "b")
    world.source.log("b", [2.0] * 5)
    world.pass_time(310.0, log="a")

    assert world.outbox() == [("firing", "b", "failed")]


def test_a_run_that_failed_while_the_daemon_was_down_is_told(world):
    training(world)
    world.engine.close()
    world.store.close()
    becomes(world, RunStatus.FAILED)
    world.start()
    world.settle()
    world.pass_time(310.0)

    assert world.outbox() == [("firing", "a", "failed")]


def test_a_failure_in_its_grace_survives_a_restart(world):
    training(world)
    becomes(world, RunStatus.FAILED)
    world.pass_time(200.0)
    world.restart()
    world.settle()
    world.pass_time(110.0)

    assert world.outbox() == [("firing", "a", "failed")]


def test_a_failed_run_comes_with_the_last_lines_it_printed(world):
    training(world)
    world.source.lines["a"] = [f"line {n}" for n in range(30)] + ["x" * 1_000]
    becomes(world, RunStatus.FAILED)
    world.pass_time(310.0)

    lines = world.store.next_notification("oncall").alert.detection.last_lines
    assert lines[:2] == ("line 11", "line 12")
    assert lines[-1] == "x" * 300


def test_a_failed_run_whose_last_lines_cannot_be_had_is_told_without(world):
    training(world)
    world.source.lines["a"] = SourceError("no such log")
    becomes(world, RunStatus.FAILED)
    world.pass_time(310.0)

    assert world.store.next_notification("oncall").alert.detection.last_lines == ()


def test_nothing_is_told_of_a_run_before_it_counts(tmp_path):
    world = World(tmp_path, patience=Patience(min_steps=50))
    training(world)
    world.source.log("a", NAN)
    world.settle(2.0)
    becomes(world, RunStatus.FAILED)
    world.pass_time(400.0)
    assert world.outbox() == []
    becomes(world, RunStatus.RUNNING)
    world.source.log("a", NAN + [3.0] * 30)
    world.settle(2.0)

    assert world.outbox() == [("firing", "a", "nonfinite")]
    world.store.close()


def test_a_source_can_cap_how_grave_its_runs_may_be(tmp_path):
    world = World(tmp_path, plan=replace(PLAN, max_severity=Severity.WARNING))
    training(world)
    world.source.log("a", NAN)
    world.settle(2.0)

    assert world.store.next_notification("oncall").alert.severity is Severity.WARNING
    world.store.close()


def test_a_rewind_begins_an_attempt_which_the_timeline_tells(world):
    training(world)
    world.source.log("a", NAN)
    world.settle(2.0)
    world.source.rewind("a", Restart("steps go back from 26 to 10", 10.0), [2.0] * 10)
    world.settle(2.0)
    world.engine.close()

    (record,) = world.store.run_records("memory")
    assert record.attempt == 2
    assert [(one.kind, one.step, one.text) for one in world.store.timeline()] == [
        ("attempt", 10.0, "attempt 2 from step 10: steps go back from 26 to 10")
    ]
    assert world.outbox() == [("firing", "a", "nonfinite")]
    assert latest(world, Family.NONFINITE).state is AlertState.FIRING


def test_a_change_of_status_stands_in_the_timeline(world):
    training(world)
    becomes(world, RunStatus.FINISHED)
    world.pass_time(10.0)
    world.engine.close()

    assert [one.text for one in world.store.timeline()] == ["running, now finished"]
