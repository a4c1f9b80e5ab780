"""Many sources, slow ones and poisonous runs: none of them holds up another."""

from dataclasses import replace

import pytest

from tests.support.memory import PLAN, MemorySource, World, hang
from wtwin_watch.errors import SourceError
from wtwin_watch.ingest import poller as poller_module
from wtwin_watch.ingest.schedule import Budget, Looks
from wtwin_watch.ingest.trouble import ASIDE_S, MOST_HUNG, SET_ASIDE_AFTER
from wtwin_watch.store import read_status

NAN = [float("nan")]
LOSSES = [2.0] * 20


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.store.close()


def turn_until(world, condition, step_s=0.0):
    """Let the engine turn until ``condition`` holds, each time a little later."""
    for _ in range(2_000):
        if condition():
            return
        world.clock.now += step_s
        world.engine.turn(0.01)
    raise AssertionError("it doesn't come to that")


def status(world):
    return read_status(world.url.database, world.clock.now)


def test_a_source_whose_every_call_hangs_delays_no_other(world):
    slow, release = MemorySource("slow"), hang()
    slow.runs = lambda: release.wait(60) and []
    world.engine.add("slow", slow, PLAN)
    world.source.log("a", LOSSES)
    turn_until(world, lambda: world.source.fetches)
    world.source.log("a", NAN)

    turn_until(world, lambda: world.outbox() == [("firing", "a", "nonfinite")], step_s=2.0)
    release.set()


def test_each_source_has_its_own_alert_and_its_own_back_off(world):
    other = MemorySource("other")
    world.engine.add("other", other, replace(PLAN, adapter="other"))
    other.down = "no route to host"
    world.source.log("a", LOSSES)
    world.pass_time(200.0)

    assert world.outbox() == [("firing", "", "source_down")]
    assert world.engine.blind == ["other"]
    assert other.looks < world.source.looks


def fail_again_and_again(world, times=SET_ASIDE_AFTER):
    for _ in range(times):
        world.settle(400.0)


def test_a_run_that_fails_again_and_again_is_set_aside_and_the_others_go_on(world):
    world.source.log("a", LOSSES)
    world.source.log("poisoned", LOSSES)
    world.source.broken["poisoned"] = SourceError("the record is broken")
    world.settle()
    fail_again_and_again(world, SET_ASIDE_AFTER - 1)
    tried = len(world.source.tried)
    world.pass_time(600.0)  # chance takes up to half of ASIDE_S away

    assert world.source.tried[tried:].count("poisoned") == 0
    error = status(world).sources[0].error
    assert "1 of 2 runs can't be read: set aside after" in error
    assert "tried again within 30 minutes: the record is broken" in error
    world.source.log("a", NAN)
    world.settle(2.0)
    assert ("firing", "a", "nonfinite") in world.outbox()


def test_a_run_that_was_set_aside_is_tried_again_and_taken_back(world):
    world.source.log("a", LOSSES)
    world.source.log("poisoned", LOSSES)
    world.source.broken["poisoned"] = SourceError("the record is broken")
    world.settle()
    fail_again_and_again(world)
    world.source.broken.clear()
    world.settle(ASIDE_S)

    assert world.engine.blind == []
    world.engine.close()
    points = {r.run.key.run: (r.points, r.error) for r in world.store.run_records("memory")}
    assert points["poisoned"] == (20, None)


def test_where_every_run_fails_none_is_set_aside_since_it_is_the_source(world):
    for run in ("a", "b"):
        world.source.log(run, LOSSES)
        world.source.broken[run] = SourceError("502")
    world.settle()
    fail_again_and_again(world)

    assert "set aside" not in status(world).sources[0].error
    world.source.broken.clear()
    world.settle(301.0)
    assert world.engine.blind == []


def test_a_run_of_which_two_fetches_hang_is_left_alone_until_one_returns(world):
    world.source.log("a", LOSSES)
    world.source.log("stuck", LOSSES)
    release = world.source.hanging["stuck"] = hang()
    for _ in range(20):
        turn_until(world, lambda: "stuck" in world.source.tried)
        world.clock.now += poller_module.DEADLINE_S + 1.0
        for _ in range(5):
            world.engine.turn(0.01)
        world.clock.now += ASIDE_S + 1.0

    assert world.source.tried.count("stuck") == MOST_HUNG
    assert not world.engine.hopeless
    release.set()
    turn_until(
        world, lambda: any(name == "stuck" for name, _ in world.source.fetches), step_s=ASIDE_S
    )


def test_a_source_is_asked_no_more_often_than_it_may_be(tmp_path):
    world = World(tmp_path, plan=replace(PLAN, rate=1.0))
    for n in range(30):
        world.source.log(f"run {n}", LOSSES)
    begun = world.clock.now
    turn_until(world, lambda: len(world.source.fetches) == 30, step_s=0.1)

    # 30 fetches and a look at least, of which a handful may go at once.
    assert world.clock.now - begun >= 31 - 4 - 1
    world.store.close()


def test_a_source_that_asks_to_be_left_alone_is():
    looks = Looks(interval_s=2.0, once=False, next_at=0.0)
    looks.begin(10.0)
    looks.fail(11.0, chance=0.0, retry_after_s=45.0)
    assert looks.next_at == 56.0
    looks.begin(56.0)
    looks.fail(56.0, chance=0.0, retry_after_s=1e9)

    assert looks.next_at == 56.0 + 600.0


def test_a_look_that_fails_is_tried_again_after_delays_that_double_to_a_minute():
    looks = Looks(interval_s=2.0, once=False, next_at=0.0)
    delays = []
    for _ in range(7):
        looks.begin(0.0)
        looks.fail(0.0, chance=0.0, retry_after_s=None)
        delays.append(looks.next_at)

    assert delays == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


def test_a_budget_lets_four_through_at_once_and_then_one_at_a_time():
    budget = Budget(rate=2.0)

    assert [budget.take(100.0) for _ in range(5)] == [True, True, True, True, False]
    assert budget.wait_s() == 0.5
    assert budget.take(100.5)
    assert not budget.take(100.6)


def test_without_a_rate_everything_goes_out():
    budget = Budget(rate=None)

    assert all(budget.take(0.0) for _ in range(1_000))
    assert budget.wait_s() == 0.0
