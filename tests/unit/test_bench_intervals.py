import pytest

from benchmarks.intervals import (
    bootstrap,
    mean_interval,
    poisson_interval,
    rate_interval,
    share_interval,
)
from benchmarks.report import Measure


@pytest.mark.parametrize(
    ("count", "low", "high"),
    # Garwood (1936), as in every table of the Poisson distribution: half a chi-square quantile.
    [(0, 0.0, 3.689), (1, 0.0253, 5.572), (4, 1.090, 10.242), (10, 4.795, 18.390)],
)
def test_the_interval_of_a_count_is_that_of_the_tables(count, low, high):
    assert poisson_interval(count) == pytest.approx((low, high), abs=1e-3)


def test_the_interval_of_a_mean_is_student_s():
    # Mean 210.75, sd 12.12 of four, so 210.75 ± 3.182 · 12.12 / 2.
    assert mean_interval([203.0, 198.0, 219.0, 223.0]) == pytest.approx((191.47, 230.03), abs=0.01)


def test_one_value_says_nothing_of_a_mean():
    assert mean_interval([5.0]) == (float("-inf"), float("inf"))


def test_a_rate_of_no_points_says_nothing():
    assert rate_interval(0, 0) == (0.0, float("inf"))


def test_a_rate_is_the_count_in_a_hundred_thousand_points():
    assert rate_interval(4, 200_000) == pytest.approx((0.545, 5.121), abs=1e-3)


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    # Newcombe (1998), table I, method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_of_a_share_is_that_of_the_tables(count, of, low, high):
    assert share_interval(count, of) == pytest.approx((low, high), abs=5e-5)


def test_runs_that_agree_leave_nothing_open():
    assert bootstrap([[1.0, 3.0], [1.0, 3.0]], lambda values: sum(values) / len(values)) == (2, 2)


def test_whole_runs_are_drawn_not_single_values():
    # Of two runs, drawn twice: both the first, both the second, or one each. Single values, 100 of
    # each kind, would hardly ever be all the same.
    runs = [[0.0] * 100, [1.0] * 100]

    assert bootstrap(runs, lambda values: sum(values) / len(values)) == (0.0, 1.0)


def test_a_measure_without_a_bound_is_information():
    assert Measure("rate", 7.0).verdict == "info"
    assert Measure("rate", 7.0).kept


def test_what_is_judged_may_be_an_end_of_the_interval():
    sure = Measure("rate", 4.2, at_most=2.0, interval=(2.5, 6.0), judged=2.5)
    perhaps = Measure("rate", 4.2, at_most=2.0, interval=(0.9, 12.0), judged=0.9)

    assert [sure.verdict, perhaps.verdict] == ["MISSED", "ok"]


def test_nan_keeps_no_bound():
    assert Measure("ratio", float("nan"), at_most=2.0).verdict == "MISSED"


def test_a_measure_is_shown_with_interval_unit_target_and_note():
    measure = Measure(
        "false alarms", 1.25, at_most=2.0, unit="/100k", note="5", interval=(0.4, 2.9)
    )

    assert measure.line == "ok      false alarms: 1.25 [0.4, 2.9] /100k, target ≤ 2  (5)"
