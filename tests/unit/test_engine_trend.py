"""The whole way from a loss to the outbox with the detector that nobody chose: the default."""

import pytest

from tests.support.curves import healthy, with_rise
from tests.support.memory import World
from wtwin_watch.model import Family, RunKey
from wtwin_watch.settings import Flags, load_settings


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.engine.close()
    world.store.close()
    detector = load_settings(Flags(), {}, needs_sources=False).detector.options()
    assert detector.name == "trend"
    world.start(detector=detector)
    yield world, detector
    world.store.close()


def test_a_jump_is_told_as_information_and_as_a_warning_when_it_stays(world):
    world, _ = world
    losses = with_rise(healthy(1600), 1500, [0.3])
    world.source.log("a", losses[:1500])
    world.settle()
    world.source.log("a", losses[1500:1510])
    world.settle(5)
    assert world.outbox() == [("firing", "a", "spike")]

    world.source.log("a", losses[1510:])
    world.settle(5)

    assert world.outbox() == [("firing", "a", "spike"), ("changed", "a", "level_shift")]


def test_a_restart_of_the_daemon_in_between_changes_nothing(world):
    world, detector = world
    losses = with_rise(healthy(1600), 1500, [0.3])
    world.source.log("a", losses[:1510])
    world.settle()
    world.engine.close()
    world.store.close()
    world.start(detector=detector)
    world.source.log("a", losses[1510:])
    world.settle(5)
    # The jump lay in the backlog of the first start and was still there at its end.
    assert world.outbox() == [("firing", "a", "spike"), ("changed", "a", "level_shift")]


def test_history_before_the_first_sight_is_told_to_nobody(world):
    world, _ = world
    spiked = with_rise(healthy(2500), 1500, [0.5] * 20 + [0.0])
    world.source.log("a", spiked)
    world.settle()
    assert world.outbox() == []


def test_a_jump_is_as_strong_as_it_was_though_it_is_over_when_it_is_seen(world):
    world, _ = world
    # 60 points up, 20 below what they led to: less than it takes until the alert ends.
    losses = with_rise(healthy(1580), 1500, [0.3] * 60 + [-0.6])
    world.source.log("a", losses[:1500])
    world.settle()
    world.source.log("a", losses[1500:])
    world.settle(5)

    alert = world.store.latest_alerts("memory")[RunKey("memory", "a")][Family.LOSS]
    assert alert.open
    assert alert.detection.strength == 40.0
