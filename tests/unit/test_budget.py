"""A budget of false alarms: what it comes to, and that what is too weak for it is told to nobody."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.support.memory import PLAN, World
from tests.support.telling import TIMING, Telling
from wtwin_watch.alerting.budget import WEEK_S, Budget, parse_budget
from wtwin_watch.alerting.telling import everybody
from wtwin_watch.model import Family, Severity
from wtwin_watch.monitor.options import TrendOptions

# 300 runs with a point in ten seconds: 30 a second, 18,144,000 a week.
CLUSTER = Budget(allowed=1.0 / WEEK_S, points=30.0, runs=300, far=1e5)


def test_three_hundred_runs_find_26_false_alarms_a_day_and_tell_one_a_week():
    assert CLUSTER.found_a_week / 7 == pytest.approx(25.92)
    assert CLUSTER.told_a_week == pytest.approx(1.0)
    assert CLUSTER.far_to_tell == pytest.approx(18_144_000)
    assert CLUSTER.bar == pytest.approx(math.log(18_144_000) - 1.5)


def test_what_it_comes_to_says_where_no_benchmark_has_measured():
    assert not CLUSTER.verified
    assert "300 runs, 1.8e+03 losses a minute" in str(CLUSTER)
    assert "told from far = 1.8e+07 on, which is more than the 1e+05" in str(CLUSTER)


def test_few_runs_leave_the_detector_as_it_is():
    few = Budget(allowed=1.0 / WEEK_S, points=0.1, runs=1, far=1e5)

    assert few.far_to_tell == 1e5
    assert few.verified
    assert few.told_a_week == pytest.approx(0.6048)
    assert "told from" not in str(few)


@pytest.mark.parametrize(
    ("text", "a_week"),
    [
        ("1 per week", 1.0),
        ("one a week", 1.0),
        ("2 per day", 14.0),
        ("0.5 per month", 0.5 * 7 / 30),
        ("1 An Hour", 168.0),
    ],
)
def test_a_budget_is_read_as_people_write_it(text, a_week):
    assert parse_budget(text) * WEEK_S == pytest.approx(a_week)


@pytest.mark.parametrize("text", ["", "never", "1", "0 per week", "-1 per week", "1 per fortnight"])
def test_what_is_no_budget_is_refused(text):
    with pytest.raises(ValueError, match=r"1 per week|no room for 0"):
        parse_budget(text)


# -- what it does to alerts ----------------------------------------------------------------------


@pytest.fixture
def telling():
    telling = Telling(everybody("team", timing=TIMING))
    telling.dispatcher.spend(CLUSTER)
    return telling


def strengthen(telling, id_, strength):
    detection = replace(telling.alerts[id_].detection, strength=strength)
    telling.change(id_, detection=detection)


def test_what_is_too_weak_for_the_budget_is_told_once_it_is_strong_enough(telling):
    id_ = telling.fire("a", severity=Severity.CRITICAL, strength=10.1)
    telling.wait(60.0)
    assert telling.told == []
    strengthen(telling, id_, CLUSTER.bar - 0.01)
    telling.wait(60.0)
    assert telling.told == []
    strengthen(telling, id_, CLUSTER.bar)
    telling.wait(2.0)

    assert telling.told == [("team", "firing", "a", 1)]
    assert telling.choices(id_) == [("", "WEAK"), ("", "RELEASED"), ("team", "TOLD")]


def test_what_no_chance_brings_is_not_held_back(telling):
    telling.fire("a", Family.NONFINITE, Severity.CRITICAL, "nonfinite")

    assert telling.told == [("team", "firing", "a", 1)]


def test_what_was_told_is_not_taken_back_when_the_budget_shrinks(telling):
    telling.dispatcher.spend(None)
    id_ = telling.fire("a", severity=Severity.WARNING, strength=10.1)
    telling.wait(5.0)
    telling.dispatcher.spend(CLUSTER)
    telling.change(id_, severity=Severity.CRITICAL, kind="divergence")
    telling.end(id_)

    assert [event for _, event, _, _ in telling.told] == ["firing", "changed", "resolved"]


# -- in the engine -------------------------------------------------------------------------------


def noisy(rng, mean, count):
    return [mean + float(x) for x in rng.normal(0.0, 0.01, count)]


def test_a_rise_is_found_at_once_and_told_once_it_is_strong_enough(tmp_path):
    rng = np.random.default_rng(7)
    world = World(
        tmp_path, detector=TrendOptions(), allowed=1e-12, telling=everybody("oncall"), plan=PLAN
    )
    world.source.log("a", noisy(rng, 2.0, 1_500))
    world.settle()
    for _ in range(60):
        world.source.log("a", noisy(rng, 2.0, 1))
        world.settle(1.4)
    told_at = found_at = None
    for n in range(200):
        world.source.log("a", noisy(rng, 2.015, 1))
        world.settle(1.4)
        alerts = world.store.latest_alerts("memory")
        if found_at is None and alerts:
            found_at = n
        if told_at is None and world.outbox():
            told_at = n
            break
    world.store.close()

    assert found_at is not None
    assert told_at is not None
    assert found_at < told_at


def test_before_a_run_shows_its_pace_nothing_is_claimed():
    text = str(replace(CLUSTER, runs=0, points=0.0))

    assert text == "false alarms to expect a week: known once a run shows how fast it logs"
