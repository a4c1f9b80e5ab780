import numpy as np

from benchmarks.detection.comparison import Comparison, best, detected, grouped, median_ratio
from benchmarks.detection.matching import (
    Calibration,
    CleanRun,
    Trial,
    count_alarms,
    first_alarm,
    strictness,
    tried,
)
from benchmarks.detection.ramps import Case, Ramp
from benchmarks.detection.rivals import Rival, above


def on(*points, length=5000):
    alarms = np.zeros(length, dtype=bool)
    alarms[list(points)] = True
    return alarms


def loss_itself(losses, start):
    return losses[start:]


LEVEL = Rival("level", loss_itself, above, np.array([0.5, 1.5, 2.5, 3.5]))


def run(name, origin, *peaks, length=50_000, event=(0, 0)):
    """A run of zeros with single points of these heights, 100 points apart."""
    losses = np.zeros(length)
    losses[100 : 100 + 100 * len(peaks) : 100] = peaks
    return CleanRun(name, origin, losses, event)


def test_alarms_are_counted_where_they_begin():
    assert count_alarms(on()) == 0
    assert count_alarms(on(7, 8, 9, 20, 21)) == 2


def test_an_alarm_that_stays_on_counts_again_every_thousand_points():
    assert count_alarms(on(*range(100, 2200))) == 3


def test_an_alarm_about_something_real_is_not_counted():
    assert count_alarms(on(99, 150, 200), event=(100, 200)) == 2


def test_the_laxest_threshold_within_the_allowance_is_found():
    counts = [90, 40, 12, 5, 3, 3, 1, 0]

    assert [strictness(counts.__getitem__, 8, allowed) for allowed in (100, 12, 4, 2, 0)] == [
        0, 2, 4, 6, 7,
    ]  # fmt: skip


def test_the_strictest_threshold_is_taken_where_all_alarm_too_often():
    assert strictness(lambda level: 9, 8, 1) == 7


def test_a_threshold_is_set_by_the_runs_from_elsewhere_alone():
    # One alarm is allowed in 100,000 points. Above 2.5 the others have one, above 1.5 two.
    runs = [run("a", "one", 3.0, 3.0, 3.0), run("b", "two", 2.0), run("c", "three", 3.0)]

    calibration = Calibration(LEVEL, runs)

    assert LEVEL.thresholds[calibration.level_without("one")] == 2.5
    assert LEVEL.thresholds[calibration.level_without("two")] == 3.5


def test_a_ramp_is_tried_at_the_threshold_of_the_others():
    runs = [run("a", "one"), run("b", "two", 2.0), run("c", "three", 2.0)]
    case = Case("a", onset=1000, delta=4.0, duration=400, sigma=1.0)

    trial = tried((LEVEL, runs, runs, [case]))

    # Of the two alarms above 1.5 in the others, only one is allowed, so a is held to 2.5. The ramp, 0 at
    # its first point and 0.01 higher at each, is above that first at its 252nd point. For b and c the
    # others have one alarm even above 0.5, so this is their threshold, and each alarms once.
    assert [ramp.delay for ramp in trial.ramps] == [252]
    assert (trial.alarms, trial.points) == (2, 150_000)


def test_thresholds_may_be_set_by_runs_that_are_not_tried():
    runs = [run("a", "one", 2.0, length=1000)]
    others = [run("s", "simulated", 1.0, 1.0, length=100_000)]

    trial = tried((LEVEL, runs, others, []))

    assert (trial.alarms, trial.points) == (1, 1000)


def test_the_first_point_with_the_failure_is_number_one():
    assert first_alarm(on(10), 10) == 1
    assert first_alarm(on(3, 15), 10) == 6
    assert first_alarm(on(3), 10) is None


def test_an_alarm_that_is_on_at_the_onset_earns_nothing():
    assert first_alarm(on(9, 10, 20), 10) is None


def ramp(run, delay, onset=0):
    return Ramp(run, onset, delay, oracle=100.0, horizon=1000)


def test_the_best_rival_is_the_one_with_the_least_median_delay():
    ours = [ramp("a", 100), ramp("b", 120)]
    soon = Trial("soon", [ramp("a", 200), ramp("b", 300)], 0, 1)
    blind = Trial("blind", [ramp("a", None), ramp("b", None)], 0, 1)

    comparison = Comparison("ramps", "elsewhere", ours, Trial("ours", ours, 0, 1), [blind, soon])

    assert best(comparison.trials) is soon
    assert median_ratio(soon.ramps) == 2.5
    assert [detected(trial.ramps) for trial in comparison.trials] == [0.0, 1.0]


def test_a_rival_that_surely_alarms_too_often_did_not_keep_its_rate():
    # Of 5 alarms in 100,000 points the mean is 1.6 at least, of 3 it may be 0.6; steady noise has 200,000.
    assert Trial("few", [], 3, 100_000).kept
    assert not Trial("many", [], 5, 100_000).kept
    assert not Trial("many in steady noise", [], 0, 100_000, steady_alarms=96).kept


def test_ramps_belong_together_by_run_and_in_a_single_run_by_place():
    several = [ramp("a", 1), ramp("b", 2), ramp("a", 3)]
    single = [ramp("a", 1, onset=5), ramp("a", 2, onset=9), ramp("a", 3, onset=5)]

    assert [[r.delay for r in group] for group in grouped(several)] == [[1, 3], [2]]
    assert [[r.delay for r in group] for group in grouped(single)] == [[1, 3], [2]]
