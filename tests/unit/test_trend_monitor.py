import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.trend import curve, kinds, watched
from wtwin_watch.errors import SnapshotError
from wtwin_watch.monitor.evidence import Evidence
from wtwin_watch.monitor.pace import Pace
from wtwin_watch.monitor.stagnation import stagnates
from wtwin_watch.monitor.trend import TrendMonitor


def test_a_clean_curve_gives_no_alert_and_a_forecast_at_its_level() -> None:
    monitor = watched(curve(6000))

    assert monitor.first_alert_step() is None
    assert monitor.episodes == []
    assert monitor.history[-1].l_pred == pytest.approx(2.0 * 6000**-0.3, abs=0.01)
    assert monitor.sigma == pytest.approx(0.02, rel=0.4)


def test_w_is_q_times_d_minus_t_and_alert_is_w_above_zero() -> None:
    losses = curve(4000)
    losses[3000:] += 0.1
    for state in watched(losses).history:
        assert (state.Q * (state.D - state.T) if state.Q else 0.0) == pytest.approx(state.W)
        assert state.alert == (state.W > 0)


def test_a_slow_ramp_is_seen_as_drift_and_its_onset_is_found() -> None:
    losses = curve(6000)
    losses[4000:] += np.minimum(0.2, 0.2 * np.arange(2000) / 1000)

    monitor = watched(losses)

    assert kinds(monitor) == [("drift", None)]
    episode = monitor.episodes[0]
    # An oracle that knows level and slope needs 87 points at this slope.
    assert 4001 <= episode.began_step <= 4000 + 2 * 87
    assert abs(episode.onset_step - 4000) < 100
    assert episode.last_healthy_step < episode.onset_step
    assert episode.excess == pytest.approx(0.2, abs=0.05)
    assert all(state.alert for state in monitor.history[int(episode.began_step) :])


def test_a_sustained_jump_of_five_sigma_is_seen_in_five_points_and_called_a_level_shift() -> None:
    losses = curve(6000)
    losses[4000:] += 0.1

    monitor = watched(losses)

    assert monitor.first_alert_step() <= 4005
    assert kinds(monitor) == [("level_shift", None)]


def test_a_spike_that_recovers_is_one_episode_called_a_spike() -> None:
    losses = curve(6000)
    losses[4000:] += 0.5 * np.exp(-np.arange(2000) / 20)

    monitor = watched(losses)

    assert kinds(monitor) == [("spike", "recovered")]
    assert monitor.episodes[0].ended_step < 4500
    assert not monitor.history[-1].alert


def test_a_second_spike_soon_after_reopens_the_episode() -> None:
    losses = curve(6000)
    for onset in (4000, 4600):
        losses[onset:] += 0.5 * np.exp(-np.arange(6000 - onset) / 20)

    monitor = watched(losses)

    assert kinds(monitor) == [("spike", "recovered")]
    assert monitor.episodes[0].reopened == 1
    assert [change.what for change in monitor.drain()].count("reopened") == 1


def test_a_rise_that_goes_back_slowly_is_a_transient() -> None:
    losses = curve(9000)
    t = np.arange(5000)
    losses[4000:] += 0.2 * np.clip(np.minimum(t / 500, (2000 - t) / 500), 0, 1)

    assert kinds(watched(losses)) == [("transient", "recovered")]


def test_an_exponential_rise_is_a_divergence() -> None:
    losses = curve(6000)
    losses[4000:] += 0.005 * np.expm1(np.minimum(np.arange(2000) / 200, 6))

    assert kinds(watched(losses))[0][0] == "divergence"


def test_a_lasting_shift_is_accepted_and_a_second_one_is_a_new_alert() -> None:
    losses = curve(14_000)
    losses[4000:] += 0.1
    losses[11_000:] += 0.1

    monitor = watched(losses)

    assert kinds(monitor) == [("level_shift", "accepted"), ("level_shift", None)]
    assert monitor.episodes[1].began_step <= 11_005


def test_accept_takes_the_present_level_as_the_new_normal() -> None:
    losses = curve(6000)
    losses[4000:] += 0.1
    monitor = watched(losses[:4500])

    assert monitor.accept()
    assert not monitor.accept()
    watched(losses[4500:], monitor, 4501)

    assert kinds(monitor) == [("level_shift", "accepted")]


def test_a_run_that_diverges_before_it_has_a_trend_is_seen() -> None:
    losses = np.concatenate((np.linspace(12, 11, 20), np.linspace(11, 30, 40)))
    monitor = watched(losses + np.random.default_rng(1).normal(0, 0.05, 60))

    assert monitor.first_alert_step() <= 40
    assert monitor.episodes[0].kind == "divergence"


def test_nan_alerts_at_once_and_ends_after_64_finite_points() -> None:
    monitor = watched(curve(1000))

    state = monitor.update(1001, math.nan)
    assert state.alert
    assert math.inf == state.W
    watched(curve(1063)[1000:], monitor, 1002)
    assert monitor.history[-1].alert
    monitor.update(1066, float(curve(1066)[-1]))

    assert not monitor.history[-1].alert
    assert kinds(monitor) == [("nonfinite", "recovered")]


def test_a_nan_leaves_no_trace_in_what_is_learned() -> None:
    losses = curve(2000)
    clean, marred = TrendMonitor(), TrendMonitor()
    for step, loss in enumerate(losses, 1):
        clean.update(step, float(loss))
        marred.update(step, float(loss))
        if step == 1500:
            marred.update(1500.5, math.inf)
    assert pytest.approx(clean.history[-1].D) == marred.history[-1].D


def test_sixteen_identical_values_are_a_frozen_loss_until_it_moves() -> None:
    losses = curve(1200)
    losses[1000:1100] = losses[1000]

    monitor = watched(losses)

    assert ("frozen", "recovered") in kinds(monitor)
    frozen = next(e for e in monitor.episodes if e.kind == "frozen")
    assert (frozen.began_step, frozen.onset_step, frozen.ended_step) == (1016, 1001, 1101)


def test_a_coarsely_rounded_log_is_not_frozen() -> None:
    assert kinds(watched(np.round(curve(6000, sigma=0.004), 2))) == []


def test_a_constant_loss_and_one_that_is_zero_by_design_are_no_alert() -> None:
    assert kinds(watched([3.0] * 500)) == []
    losses = np.abs(np.random.default_rng(1).normal(0, 1e-4, 500))
    losses[300:] = 0.0
    assert ("frozen", None) not in kinds(watched(losses))


def test_going_back_to_before_the_onset_takes_the_alert_back() -> None:
    losses = curve(4500)
    losses[4000:] += 0.1
    monitor = watched(losses)

    watched(curve(4500, seed=2)[3500:], monitor, 3501)

    assert kinds(monitor) == [("level_shift", "rolled_back")]
    assert not monitor.history[-1].alert


def test_going_back_without_an_alert_raises_none() -> None:
    monitor = watched(curve(4000))
    watched(curve(4000, seed=2)[2000:], monitor, 2001)
    assert kinds(monitor) == []


def test_another_run_appended_to_the_log_is_learned_anew() -> None:
    monitor = watched(curve(2000))
    watched(curve(2000, seed=2), monitor)
    assert kinds(monitor) == []


def test_a_gap_and_another_stride_raise_no_alert() -> None:
    steps = [*range(1, 1001), *range(21_000, 21_500), *range(22_000, 522_000, 500)]
    clean = 2.0 * np.array(steps, dtype=float) ** -0.3
    noise = np.random.default_rng(1).normal(0, 0.02, len(steps))
    monitor = TrendMonitor()
    for step, loss in zip(steps, (clean + noise).tolist(), strict=True):
        monitor.update(step, loss)
    assert kinds(monitor) == []


def test_a_planned_restart_of_the_learning_rate_holds_the_drift_path() -> None:
    points = np.arange(1, 4001)
    cycle = (points - 1) % 2000
    lr = 1e-3 * (0.05 + 0.95 * 0.5 * (1 + np.cos(np.pi * cycle / 2000)))
    # The loss follows the learning rate by half a sigma: far too little for a jump.
    losses = 2.0 * points**-0.3 + 10.0 * lr + np.random.default_rng(1).normal(0, 0.02, 4000)
    monitor = TrendMonitor()
    for step, loss, rate in zip(points.tolist(), losses.tolist(), lr.tolist(), strict=True):
        monitor.update(step, loss, rate)
    assert kinds(monitor) == []


def test_a_jump_while_the_learning_rate_rises_is_still_seen() -> None:
    monitor = watched_with_rates(jump=0.5)
    assert monitor.first_alert_step() is not None
    assert 2001 <= monitor.first_alert_step() <= 2005


def test_an_alert_lasts_with_a_learning_rate_too() -> None:
    losses = curve(3000)
    losses[2000:] += 0.1
    monitor = TrendMonitor()
    for step, loss in enumerate(losses.tolist(), 1):
        monitor.update(step, loss, 1e-3 * (1.0 - step / 4000))
    assert 2001 <= monitor.first_alert_step() <= 2005
    assert all(state.alert for state in monitor.history[2005:])
    assert kinds(monitor) == [("level_shift", None)]


def watched_with_rates(jump: float) -> TrendMonitor:
    losses = curve(2100)
    losses[2000:] += jump
    rates = np.concatenate((np.linspace(1e-3, 1e-4, 2000), np.linspace(1e-4, 1e-2, 100)))
    monitor = TrendMonitor()
    for step, (loss, rate) in enumerate(zip(losses.tolist(), rates.tolist(), strict=True), 1):
        monitor.update(step, loss, rate)
    return monitor


def test_a_learning_rate_of_zero_at_first_is_waited_out() -> None:
    monitor = TrendMonitor()
    for step, loss in enumerate(curve(1000).tolist(), 1):
        monitor.update(step, loss, 0.0 if step <= 10 else 1e-3)
    assert monitor.ready
    assert kinds(monitor) == []


def test_a_loss_that_stops_falling_stagnates_for_a_while() -> None:
    t = np.arange(1.0, 40_001.0)
    losses = (
        2.0 - 0.2 * np.log(np.minimum(t, 24_000)) + np.random.default_rng(1).normal(0, 0.02, len(t))
    )
    evidence, pace = Evidence(8.0, 5e-4), Pace()
    said = {}
    for step, loss in zip(t.tolist(), losses.tolist(), strict=True):
        pace.advance(step, None)
        evidence.push(loss)
        if len(evidence.values) >= evidence.block:
            evidence.finish_block(*pace.block_x(step, len(evidence.values)))
        if step in (10_000, 20_000, 23_000, 30_000, 40_000):
            said[step] = stagnates(evidence.levels, evidence.count, evidence.block)

    # At 40,000 nobody remembers that it once fell.
    assert said == {10_000: False, 20_000: False, 23_000: False, 30_000: True, 40_000: False}


def test_a_falling_loss_does_not_stagnate() -> None:
    assert not watched(curve(6000)).stagnating


def test_a_point_without_a_finite_step_is_passed_over() -> None:
    losses = curve(600)
    monitor = watched(losses[:500])
    assert not monitor.update(math.nan, 100.0).alert
    watched(losses[500:], monitor, 501)
    assert monitor.history[-1] == watched(losses).history[-1]


def test_changes_are_told_once_in_their_order() -> None:
    losses = curve(6000)
    losses[4000:4200] += 0.3
    monitor = watched(losses)

    told = [(change.what, change.episode.kind) for change in monitor.drain()]

    assert told[0] == ("began", "spike")
    assert told[-1] == ("ended", "spike")
    assert monitor.drain() == []


def test_history_can_be_capped_and_reset_forgets_all_but_the_settings() -> None:
    monitor = TrendMonitor(far="1 per 1000 points", history_limit=10)
    losses = curve(500)
    losses[400:] += 1.0
    watched(losses, monitor)
    assert len(monitor.history) == 10
    assert monitor.first_alert_step() is not None
    assert monitor.first_alert_index is None

    monitor.reset()

    assert monitor.first_alert_step() is None
    assert monitor.history == []
    assert monitor.far == 1000.0


@pytest.mark.parametrize(
    "settings", [{"far": 1.0}, {"min_effect": -0.1}, {"min_effect": 1.0}, {"history_limit": -1}]
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"must be|give"):
        TrendMonitor(**settings)


def test_a_snapshot_is_json_of_at_most_32_kb_in_a_long_run() -> None:
    monitor = TrendMonitor(history_limit=0)
    monitor.update_many(np.arange(1, 60_001), curve(60_000))
    assert len(json.dumps(monitor.snapshot(), allow_nan=False)) <= 32 * 1024


def test_memory_stays_small_in_a_long_run() -> None:
    monitor = TrendMonitor(history_limit=0)
    monitor.update_many(np.arange(1, 60_001), curve(60_000))
    arrays = [
        getattr(level.blocks, name)
        for level in monitor._evidence.levels
        for name in ("sx", "sy", "sxx", "sxy")
    ]
    assert sum(map(sys.getsizeof, arrays)) <= 60 * 1024


def test_a_snapshot_of_another_version_or_a_damaged_one_is_refused() -> None:
    snapshot = watched(curve(300)).snapshot()
    with pytest.raises(SnapshotError, match="version 99"):
        TrendMonitor.restore({**snapshot, "version": 99})
    with pytest.raises(SnapshotError, match="damaged"):
        TrendMonitor.restore({**snapshot, "evidence": {}})


def test_a_snapshot_of_the_former_version_goes_on_as_it_did() -> None:
    stored = Path(__file__).parents[1] / "stored" / "trend_monitor_2.json"
    monitor = TrendMonitor.restore(json.loads(stored.read_text()))
    state = None
    for step in range(651, 701):
        loss = 2.0 + 3.0 * step**-0.4 + 0.02 * math.sin(step * step)
        state = monitor.update(float(step), loss)

    # What that version said of step 700.
    assert state is not None
    assert state.l_pred == pytest.approx(2.220892948991762)
    assert state.D == 0.0
    assert pytest.approx(4.475025243497567) == state.T


def test_restored_settings_may_be_replaced() -> None:
    monitor = TrendMonitor.restore(watched(curve(300)).snapshot(), {"far": 1e6})
    assert monitor.far == 1e6


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="same length"):
        TrendMonitor().update_many([1.0, 2.0], [1.0])


def test_a_long_log_in_columns_gives_what_the_stream_gives() -> None:
    losses = curve(14_000)
    losses[6000:] += 0.5 * np.exp(-np.arange(8000) / 20)
    losses[12_000:] += 0.1 * np.minimum(1.0, np.arange(2000) / 500)
    steps = np.arange(1, 14_001)

    stream, batch = watched(losses), TrendMonitor()
    rows = batch.update_many(steps, losses)

    for name in ("D", "W", "l_pred"):
        column = [getattr(state, name) for state in stream.history]
        np.testing.assert_allclose(rows[name], column, rtol=1e-9, atol=1e-9, err_msg=name)
    assert rows["alert"].tolist() == [state.alert for state in stream.history]
    assert kinds(batch) == kinds(stream) == [("spike", "recovered"), ("drift", None)]
    assert batch.first_alert_step() == stream.first_alert_step()
