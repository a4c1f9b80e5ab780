"""The engine and who is told: groups, what is decided and kept with them, and a process that is killed."""

import sqlite3

import pytest

from tests.support.memory import World
from wtwin_watch.alerting.telling import Timing, everybody
from wtwin_watch.model import Event
from wtwin_watch.notify import render

NAN = [float("nan")]
TIMING = Timing(wait_s=5.0, interval_s=300.0, window_s=600.0, repeat_s=86_400.0)
RUNS = [f"run {n:02}" for n in range(40)]


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, telling=everybody("oncall", timing=TIMING))
    for run in RUNS:
        world.source.log(run, [2.0] * 20)
    world.settle()
    yield world
    world.store.close()


def decided(world):
    with sqlite3.connect(world.url.database) as connection:
        rows = connection.execute("SELECT decision, count(*) FROM decisions GROUP BY decision")
        return dict(rows.fetchall())


def everything_stops(world):
    """Let a step come each two seconds for a while, then none."""
    for _ in range(30):
        for run in RUNS:
            world.source.log(run, [2.0])
        world.settle(1.4)
    world.pass_time(420.0)


def test_forty_runs_that_stall_together_are_one_message_that_says_so(world):
    everything_stops(world)

    assert world.outbox() == [("firing", RUNS[0], "stalled")]
    entry = world.store.next_notification("oncall")
    words = render.message(entry.event, entry.alert, entry.run, entry.others, entry.size)
    assert entry.size == 40
    assert words.title == "Warning: no new step (run 00 and 39 more)"
    assert "40 runs of the source memory within 1 s" in words.summary
    assert "storage, network, or the scheduler" in words.summary
    runs = dict(words.facts)["Runs"].splitlines()
    assert (runs[0], runs[1], runs[-1]) == ("run 00", "run 01", "and 20 more")
    assert decided(world) == {"told": 1, "told together with another": 39}


def test_a_group_that_is_over_is_told_once(world):
    everything_stops(world)
    for run in RUNS:
        world.source.log(run, [2.0])
    world.settle(2.0)

    assert world.outbox() == [("firing", RUNS[0], "stalled"), ("resolved", RUNS[0], "stalled")]


def test_what_waits_for_others_when_the_process_is_killed_is_told_by_the_next(world):
    patiently = everybody("oncall", timing=Timing(wait_s=1_000.0))
    world.restart(telling=patiently)
    everything_stops(world)
    assert world.outbox() == []

    world.kill()
    world.start(telling=patiently)
    world.pass_time(1_000.0)

    assert world.outbox() == [("firing", RUNS[0], "stalled")]
    assert world.store.next_notification("oncall").size == 40


def test_a_killed_process_tells_nothing_twice(world):
    everything_stops(world)
    world.kill()
    world.start()
    world.pass_time(600.0)

    assert world.outbox() == [("firing", RUNS[0], "stalled")]


def test_an_orderly_end_tells_what_waits(world):
    world.restart(telling=everybody("oncall", timing=Timing(wait_s=1_000.0)))
    everything_stops(world)
    assert world.outbox() == []
    world.engine.close()

    assert world.outbox() == [("firing", RUNS[0], "stalled")]


def test_the_words_of_a_repeat_say_that_it_goes_on(world):
    world.source.log("run 00", NAN)
    world.settle(2.0)
    entry = world.store.next_notification("oncall")

    words = render.message(Event.REPEATED, entry.alert, entry.run)
    assert words.title == "Still critical: loss is not finite (run 00)"
