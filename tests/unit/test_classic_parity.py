"""The published program's own numbers, step by step."""

import math

import pytest

from tests.support.classic_series import decoded, golden, nanogpt
from wtwin_watch.monitor import WTwinMonitor

SERIES = [
    "clean_default",
    "drift",
    "spike",
    "diverge",
    "flat_step",
    "constant",
    "stride10_drift",
    "custom_alpha3_nconsec10",
    "custom_mad20_tau0.1_warmup100",
    "custom_calfrac0.5_nconsec1",
    "adaptive_T_drift",
    "adaptive_T_two_bumps",
    "scale_free_T40000",
    "rising_calibration",
    "scaled_x1000_Q_zero",
    "resume_at_100001",
    "nanogpt_clean_seed42_first600",
    "nanogpt_proglabel_seed42_every5",
    "step_abrupt_spike",
    "suggest_insufficient_history",
    # Steps that repeat and fall count in the order of their arrival, here as there.
    "dup_outoforder_steps",
]


@pytest.mark.parametrize("name", SERIES)
def test_every_output_is_that_of_the_published_program(name):
    series = golden(name)
    monitor = WTwinMonitor(**series["params"])

    states = [monitor.update(*one) for one in zip(series["steps"], series["losses"], strict=True)]

    for state, row in zip(states, series["outputs"], strict=True):
        for ours, theirs in zip(state, map(decoded, row), strict=True):
            assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-9, nan_ok=True), (state, row)
    assert monitor.first_alert_step() == series["first_alert_step"]
    assert len(monitor.history) == series["history_len"]
    assert sum(state.alert for state in states) == series["n_alert_steps"]
    fit = series["baseline"]
    assert monitor.baseline.coefficients == pytest.approx({key: fit[key] for key in "abc"})
    assert monitor.baseline.fit_mse == pytest.approx(fit["fit_mse"], rel=1e-9)


def test_a_custom_warm_up_by_total_steps_is_that_of_the_published_program():
    series = golden("scale_free_T40000")
    assert WTwinMonitor(**series["params"]).warmup_steps == series["effective_warmup_steps"] == 200


@pytest.mark.parametrize(
    ("log", "alert"),
    [
        ("proglabel_linear_seed42", 2203),
        ("proglabel_linear_seed43", 2198),
        ("proglabel_linear_seed44", 2219),
        ("proglabel_linear_seed45", 2223),
        ("proglabel_quadratic_seed42", 2466),
        ("proglabel_sigmoid_seed42", 2390),
        ("progweight_seed42", 2312),
        ("weightcorrupt_seed42", 2005),
        ("weightcorrupt_seed43", 2005),
        ("lrspike_seed42", 2007),
        ("dropout_seed42", 2005),
        *((f"none_seed{seed}", None) for seed in range(42, 49)),
    ],
)
def test_the_real_runs_alert_where_it_was_measured(log, alert):
    monitor = WTwinMonitor(warmup_steps=100, history_limit=0)
    for step, loss in zip(*nanogpt(log), strict=True):
        monitor.update(step, loss)
    assert monitor.first_alert_step() == alert


def test_nothing_progressive_is_seen_within_500_steps_with_the_class_default():
    seen = []
    for name in ("linear_seed42", "linear_seed43", "linear_seed44", "linear_seed45"):
        monitor = WTwinMonitor(history_limit=0)
        for step, loss in zip(*nanogpt(f"proglabel_{name}"), strict=True):
            monitor.update(step, loss)
        seen.append(monitor.first_alert_step() or math.inf)
    assert all(step > 2500 for step in seen)
