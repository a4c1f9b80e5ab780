import math

import numpy as np
import pytest

from benchmarks.curves import bound, sigma_before
from benchmarks.detection.cost import held_bytes
from benchmarks.detection.failures import FAILURES, kinds_right
from benchmarks.detection.failures import Found as Fate
from benchmarks.detection.false_alarms import by_kind, rate
from benchmarks.detection.ramps import Case, Ramp


def test_a_ramp_begins_at_its_onset_and_stays_at_its_height():
    case = Case("run", onset=3, delta=0.4, duration=4, sigma=0.1)

    losses = case.injected(np.full(12, 2.0))

    assert losses.tolist() == pytest.approx([2, 2, 2, 2, 2.1, 2.2, 2.3, 2.4, 2.4, 2.4, 2.4, 2.4])


def test_a_ramp_leaves_the_log_itself_as_it_was_and_ends_at_its_horizon():
    clean = np.zeros(5000)
    case = Case("run", onset=100, delta=1.0, duration=10, sigma=0.1)

    losses = case.injected(clean)

    assert len(losses) == 100 + 2 * 10 + 2000
    assert not clean.any()


def test_a_miss_counts_as_the_horizon():
    assert Ramp("run", 0, None, oracle=100.0, horizon=3000).ratio == 30.0
    assert Ramp("run", 0, 150, oracle=100.0, horizon=3000).ratio == 1.5


@pytest.mark.parametrize(
    ("delta", "duration", "points"),
    # n = (6 ln(gamma) sigma^2 / slope^2)^(1/3) for sigma .02, gamma 1e5.
    [(0.02, 500, 258), (0.05, 2000, 354), (0.1, 10_000, 651), (0.5, 500, 30)],
)
def test_the_oracle_needs_what_the_bound_says(delta, duration, points):
    assert bound(1e5, 0.02, delta, duration) == pytest.approx(points, abs=0.5)


def test_an_oracle_waits_on_after_a_ramp_that_is_too_short_to_be_seen_while_it_lasts():
    # 10 + 2 sigma^2 (ln gamma - 10 delta^2 / (6 sigma^2)) / delta^2, with delta = sigma.
    assert bound(1e5, 1.0, 1.0, 10) == pytest.approx(10 + 2 * (math.log(1e5) - 10 / 6))


def test_noise_is_measured_before_the_onset_and_not_after():
    losses = np.concatenate((np.random.default_rng(1).normal(0, 0.5, 1000), np.full(100, 99.0)))

    assert sigma_before(losses, 1000) == pytest.approx(0.5, rel=0.15)


def test_failures_have_the_size_in_sigma_that_their_names_say():
    assert FAILURES["step of 5"][1].tolist() == [5.0] * 9000
    assert FAILURES["spike of 25, tau 20"][1][20] == pytest.approx(25 / math.e)
    assert FAILURES["ramp of 5 in 2000"][1][[0, 1000, 5000]].tolist() == [0.0, 2.5, 5.0]
    assert FAILURES["ramp of 10 in 500, and back"][1][[500, 1000, 1750, 2000]].tolist() == [
        10,
        10,
        5,
        0,
    ]
    assert np.isnan(FAILURES["NaN"][1][:30]).all()


def test_kinds_are_right_by_kind_so_that_frequent_ones_do_not_outweigh_rare_ones():
    found = [
        *(Fate("run", "step of 5", 3, 1, "level_shift") for _ in range(9)),
        Fate("run", "NaN", 1, 1, "nonfinite"),
        Fate("run", "NaN", None, 0, None),
    ]

    assert kinds_right(found) == {"level_shift": 1.0, "nonfinite": 0.5}


def test_alerts_and_points_of_one_kind_are_added_up():
    assert by_kind([("a", 1, 10), ("b", 0, 5), ("a", 2, 20)]) == [("a", 3, 30), ("b", 0, 5)]


def test_a_rate_is_judged_by_its_lower_end_where_chance_may_be_the_reason():
    # Three alerts: the mean is 0.62 at least.
    assert rate("run", 3, 100_000, 2.0, surely=True).kept
    assert not rate("run", 3, 100_000, 2.0).kept
    assert not rate("run", 3, 20_000, 2.0, surely=True).kept


def test_the_bytes_of_a_state_are_those_of_all_it_holds_counted_once():
    column = np.zeros(1000)

    assert 8000 < held_bytes([column]) < 8500
    assert held_bytes([column, column]) - held_bytes([column]) == 8
    assert held_bytes({"made": int, "by": held_bytes}) < 500
