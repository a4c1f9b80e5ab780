"""The example's forecasts in classic mode: each finds its own law again, and is used by the monitor."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.curves import read
from examples.baselines import ExponentialFloor, MultiPowerLaw
from wtwin_watch.monitor import WTwinMonitor

ROOT = Path(__file__).parents[2]
CORPUS = os.environ.get("WTWIN_WATCH_CORPUS")
T = np.arange(1.0, 3001.0)
NOISE = np.random.default_rng(5).normal(0.0, 0.01, len(T))
FALLING = 3e-4 * np.minimum(T / 100.0, np.minimum(1.0, (3600.0 - T) / 3000.0))


def alerts(monitor, losses):
    for step, loss in enumerate(losses.tolist(), 1):
        monitor.update(step, loss)
    return monitor.first_alert_step()


def test_an_exponential_floor_is_found_again():
    baseline = ExponentialFloor()

    baseline.fit(T[:600], (0.6 + 1.5 * np.exp(-T / 150.0) + NOISE)[:600])

    # Floor to a hundredth, and the noise's variance is what the fit leaves.
    assert baseline.predict(10_000.0) == pytest.approx(0.6, abs=0.01)
    assert baseline.fit_mse == pytest.approx(1e-4, rel=0.2)


def test_it_is_not_fitted_before_there_is_enough():
    monitor = WTwinMonitor(baseline=ExponentialFloor(least=400), warmup_steps=100)

    alerts(monitor, 1.0 + NOISE[:399])
    assert monitor.status.startswith("no forecast yet: 39")
    assert monitor.status.endswith("; 400 are needed")
    # It is asked at the first hundred observations, then ever more rarely: at 400 every sixth.
    for step in range(400, 407):
        monitor.update(step, 1.0)
    assert monitor.ready


def test_a_fine_tuning_that_rises_again_is_seen_by_it_and_not_by_the_power_law():
    settles = 0.6 + 1.5 * np.exp(-T / 150.0) + NOISE
    rises = settles + 0.0003 * np.maximum(0.0, T - 2000.0)

    def first(losses, baseline):
        return alerts(WTwinMonitor(baseline=baseline, warmup_steps=100), losses)

    assert first(rises, None) is None
    assert first(settles, ExponentialFloor(least=400)) is None
    # D passes 2 where the ramp passes two sigma of .01, 67 steps on.
    assert 2000 < first(rises, ExponentialFloor(least=400)) < 2100


def test_a_constant_rate_leaves_a_power_law_of_the_sum_of_rates():
    law = MultiPowerLaw(T, np.full(len(T), 1e-3), least=100)

    # S = 0.001 t, so 0.5 + 0.2 S^-0.5 is 0.7 at step 1000 and 0.5 + 0.2 / sqrt(3) at step 3000.
    losses = 0.5 + 0.2 * (T / 1000.0) ** -0.5
    law.fit(T[:1500], losses[:1500])

    assert law.predict(1000.0) == pytest.approx(0.7, abs=2e-3)
    assert law.predict(3000.0) == pytest.approx(0.5 + 0.2 / 3.0**0.5, abs=0.01)
    assert law.B == 0.0


def test_a_rate_that_falls_at_once_takes_off_what_the_law_says():
    # lr 1e-3 to step 1000, 5e-4 after: at step 2000 the one fall of 5e-4 has had S_k = 0.5 to act, so
    # x = 5e-4^-0.63 · 0.5 = 60.1, G = 1 - (2 · 60.1 + 1)^-0.6 = 0.9437, and the loss is B · 5e-4 · G lower.
    rates = np.where(T <= 1000, 1e-3, 5e-4)
    law = MultiPowerLaw(T, rates)
    law.L0, law.A, law.B = 1.0, 0.0, 400.0

    assert law.predict(1000.0) == pytest.approx(1.0, abs=0.005)
    assert law.predict(2000.0) == pytest.approx(1.0 - 400.0 * 5e-4 * 0.9437, abs=2e-3)


def test_a_falling_rate_is_foreseen_and_a_rise_against_it_seen():
    truth = MultiPowerLaw(T, FALLING)
    truth.L0, truth.A, truth.B, truth.alpha = 0.8, 0.2, 300.0, 0.5
    healthy = np.asarray(truth.predict(T)) + NOISE
    rises = healthy + 0.0003 * np.maximum(0.0, T - 2000.0)

    def first(losses, baseline):
        return alerts(WTwinMonitor(baseline=baseline, warmup_steps=100), losses)

    assert first(rises, None) is None
    assert first(healthy, MultiPowerLaw(T, FALLING, least=1200)) is None
    assert 2000 < first(rises, MultiPowerLaw(T, FALLING, least=1200)) < 2150


@pytest.mark.parametrize(
    ("steps", "rates", "why"),
    [
        ([1, 1], [1e-3, 1e-3], "steps must rise"),
        ([1, 2], [1e-3], "each needs a learning rate"),
        ([1, 2], [0.0, 0.0], "not all 0"),
        ([1, 2], [1e-3, float("nan")], "must be finite"),
    ],
)
def test_a_schedule_that_can_not_be_is_refused(steps, rates, why):
    with pytest.raises(ValueError, match=why):
        MultiPowerLaw(steps, rates)


@pytest.mark.skipif(not CORPUS, reason="WTWIN_WATCH_CORPUS names no folder of logs")
def test_the_page_says_what_they_do_on_the_published_logs():
    page = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")

    def delays(kind, baseline):
        found = []
        for path in sorted(Path(CORPUS, "nanogpt").glob(f"{kind}_seed*.csv.gz")):
            log = read(path, column="train_loss")
            monitor = WTwinMonitor(baseline=baseline(log), warmup_steps=100)
            first = alerts(monitor, log.losses)
            found.append(None if first is None else first - 2000)
        return found

    for name, baseline in (
        ("`ExponentialFloor(least=1000)`", lambda log: ExponentialFloor(least=1000)),
        (
            "`MultiPowerLaw(steps, lr, least=1500)`",
            lambda log: MultiPowerLaw(log.steps, log.lrs, least=1500),
        ),
    ):
        linear = ", ".join(map(str, delays("proglabel_linear", baseline)))
        clean = sum(first is not None for first in delays("none", baseline))
        assert f"| {name} | {linear} | {clean} of 7 |" in page


def test_reset_forgets_the_fit():
    monitor = WTwinMonitor(baseline=ExponentialFloor(), warmup_steps=10)
    alerts(monitor, 1.0 + NOISE[:200])
    assert monitor.ready

    monitor.reset()

    assert not monitor.ready


def test_the_demonstration_runs_and_only_the_new_forecasts_see_the_rise():
    script = ROOT / "examples" / "baselines.py"

    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)

    assert done.stdout.count("power law          alert never") == 2
    assert done.stdout.count("alert at step 20") == 2
