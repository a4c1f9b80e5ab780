import math

import numpy as np
import pytest

from benchmarks.detection.rivals import (
    RIVALS,
    above,
    adwin,
    against_past,
    cusum,
    detrended,
    in_sigma,
    page_hinkley,
    power_law,
    published,
    rolling_z,
)
from wtwin_watch.monitor import WTwinMonitor


def noisy(points=3000, seed=1):
    steps = np.arange(1.0, points + 1.0)
    return 1.0 + 2.0 * steps**-0.3 + np.random.default_rng(seed).normal(0, 0.02, points)


def test_cusum_adds_up_falls_no_lower_than_nothing_and_begins_anew_after_an_alarm():
    # Sums: 1, 0, 2, 4 > 3: alarm; then 2, 4 > 3: alarm; then 1.
    alarms = cusum(np.array([1.0, -5.0, 2.0, 2.0, 2.0, 2.0, 1.0]), 3.0)

    assert np.flatnonzero(alarms).tolist() == [3, 5]


def test_points_without_evidence_are_no_alarm_and_no_part_of_a_sum():
    evidence = np.array([-np.inf, -np.inf, 2.0, 2.0])

    assert above(evidence, -1e9).tolist() == [False, False, True, True]
    assert cusum(evidence, 3.0).tolist() == [False, False, False, True]


def test_a_rolling_z_compares_with_the_points_before_alone():
    # Mean 2 and sd 1 of 1, 2, 3; mean 3 and sd 1 of 2, 3, 4; mean 5 and sd sqrt(7) of 3, 4, 8.
    z = rolling_z(np.array([1.0, 2.0, 3.0, 4.0, 8.0, 5.0]), 0, window=3, in_a_row=1, least=3)

    assert z.tolist() == pytest.approx([-math.inf] * 3 + [2.0, 5.0, 0.0])


def test_in_a_row_is_the_least_of_the_latest():
    z = rolling_z(np.array([1.0, 2.0, 3.0, 4.0, 8.0, 5.0]), 0, window=3, in_a_row=2, least=3)

    assert z.tolist() == pytest.approx([-math.inf] * 4 + [2.0, 0.0])


def test_the_published_score_is_that_of_the_monitor_itself():
    losses = noisy(600)
    monitor = WTwinMonitor()
    for step, loss in enumerate(losses.tolist(), 1):
        monitor.update(step, loss)
    judged = {state.step: state.D for state in monitor.history}
    expected = [
        min(judged.get(step - back, -math.inf) for back in range(5)) for step in range(1, 601)
    ]

    assert published(losses, 0).tolist() == pytest.approx(expected, rel=1e-9)
    assert sum(math.isfinite(value) for value in expected) > 400


def test_a_detrended_loss_is_measured_against_the_mean_of_those_before():
    # While fewer than the memory were seen, the EWMA is their mean: of 25 zeros and 25 twos it is 1.
    # The size of a residual is the mean of all before, which a long calm has made known.
    losses = np.tile([0.0, 2.0], 100)
    residuals = [losses[i] - losses[:i].mean() for i in range(1, 200)]
    size = 1.2533 * np.abs(residuals[:-1]).mean()

    increments = detrended(losses, 0, memory=500, slack=0.5)

    assert increments[:50].tolist() == [-math.inf] * 50
    assert increments[199] == pytest.approx(residuals[-1] / size - 0.5)


def test_a_point_counts_at_most_five_sigma():
    losses = noisy(1000)
    losses[900] = 50.0

    assert detrended(losses, 0, memory=500, slack=0.5)[900] == 4.5
    assert against_past(losses, 0, slack=0.5)[900] == 4.5


def test_the_past_ends_a_hundred_points_back():
    # The observations from 600 to 100 back alternate between 1 and 3, the last hundred lie at 100.
    losses = np.concatenate((np.tile([1.0, 3.0], 250), np.full(100, 100.0), [3.0]))
    sd = math.sqrt(500 / 499)

    assert against_past(losses, 600, slack=0.5)[0] == pytest.approx(1.0 / sd - 0.5)


def test_a_power_law_is_found_and_nothing_is_left_of_it():
    steps = np.arange(1.0, 3001.0)
    noise = np.tile([0.01, -0.01], 1500)
    losses = 1.5 + 3.0 * steps**-0.45 + noise

    increments = power_law(losses, 1000, lag=0.1, slack=0.0)

    # What is left is the noise: one sigma up, one down.
    assert np.abs(np.abs(increments) - 1.0).max() < 0.2
    assert abs(increments.mean()) < 0.05


def test_a_power_law_never_rises():
    losses = np.linspace(1.0, 2.0, 2000)

    assert (power_law(losses, 500, lag=0.1, slack=0.0) > 1.0).all()


def test_river_s_page_hinkley_sees_a_rise_and_not_a_fall():
    noise = np.random.default_rng(2).normal(0, 1, 2000)
    rising, falling = noise.copy(), noise.copy()
    rising[1000:] += 3.0
    falling[1000:] -= 3.0

    first = np.flatnonzero(page_hinkley(rising, 50.0, alpha=0.9999))[0]

    # 2.9 are added a point at first, so 50 are passed after some 18.
    assert 1010 < first < 1030
    assert not page_hinkley(falling, 50.0, alpha=0.9999).any()


def test_river_s_adwin_sees_a_rise_and_not_a_fall():
    noise = np.random.default_rng(3).normal(0, 1 / 6, 2000)
    rising, falling = noise.copy(), noise.copy()
    rising[1000:] += 0.5
    falling[1000:] -= 0.5

    first = np.flatnonzero(adwin(rising, 10.0))[0]

    assert 1000 < first < 1040
    assert not adwin(falling, 10.0).any()


def test_losses_are_counted_in_the_noise_of_their_beginning():
    losses = np.random.default_rng(4).normal(7.0, 0.02, 1000)

    assert in_sigma(losses, 0, unit=1.0).std() == pytest.approx(1.0, rel=0.15)


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_evidence_is_the_same_whether_asked_for_from_the_first_point_or_later(rival):
    losses = noisy(3000)

    late = rival.evidence(losses, 2900)

    # An EWMA begun later has forgotten the difference but for e^-10.
    assert late.tolist() == pytest.approx(
        rival.evidence(losses, 0)[2900:].tolist(), rel=1e-3, abs=1e-3
    )
    assert len(late) == 100


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_evidence_knows_nothing_of_what_comes_later(rival):
    losses = noisy(1500)
    changed = losses.copy()
    changed[1000:] += 1.0

    before = rival.evidence(losses, 0)[:1000]

    assert rival.evidence(changed, 0)[:1000].tolist() == pytest.approx(before.tolist(), abs=1e-6)


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_a_stricter_threshold_has_no_more_alarms(rival):
    assert (np.diff(rival.thresholds) > 0).all()
    evidence = rival.evidence(noisy(2000), 0)
    levels = [0, len(rival.thresholds) // 2, len(rival.thresholds) - 1]
    counts = [int(rival.alarms(evidence, float(rival.thresholds[i])).sum()) for i in levels]

    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 0
