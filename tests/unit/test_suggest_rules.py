"""What kind of failure `suggest` sees in the first alert."""

import json
import math

import pytest

from tests.support.classic_series import benchmark_curve, clean, golden
from wtwin_watch.monitor import WTwinMonitor, suggest


def watched(losses, steps=None, **settings):
    monitor = WTwinMonitor(**settings)
    for step, loss in zip(steps or range(1, len(losses) + 1), losses, strict=True):
        monitor.update(step, loss)
    return monitor


@pytest.mark.parametrize("warmup", [50, 100])
@pytest.mark.parametrize(
    ("failure", "kind", "advice"),
    [
        ("spike", "abrupt_spike", "consider_rollback"),
        ("drift", "gradual_drift", "consider_lr_reduction"),
    ],
)
def test_spikes_and_drifts_of_the_benchmark_are_told_apart(failure, kind, advice, warmup):
    right = 0
    for seed in range(40):
        said = suggest(watched(benchmark_curve(failure, seed), warmup_steps=warmup))
        right += (said.failure_type, said.suggestion) == (kind, advice)
    # The published program calls all 40 spikes drifts.
    assert right >= 38


def test_no_alert_needs_no_action():
    said = suggest(watched(clean(400)))
    assert (said.alert, said.action, said.confidence) == (False, "none", 1.0)
    assert str(said) == "No alert. No alert detected. Training appears to be on track."


def test_a_log_too_short_to_judge_is_not_called_healthy():
    said = suggest(watched(clean(60)))
    assert said.action == "none"
    assert said.reasoning == ("Too early to judge: still learning, needs about 90 more points.")


def test_a_person_decides_after_an_alert():
    said = suggest(watched(benchmark_curve("spike", 3)))
    assert said.action == "manual_review"
    assert 0.5 <= said.confidence <= 1.0
    assert said.first_alert_step == 605
    lines = str(said).splitlines()
    assert [line.strip().partition(":")[0].strip() for line in lines[1:5]] == [
        "Failure type",
        "Suggestion",
        "Action",
        "Reasoning",
    ]
    assert "EXPERIMENTAL and advisory" in lines[5]


def test_the_alert_is_found_by_its_index_where_its_step_repeats():
    # Every step is 300 from the 300th observation on; the healthy ones come first.
    losses = benchmark_curve("spike", 5)
    steps = [min(step, 300) for step in range(1, 1001)]
    monitor = watched(losses, steps)
    at = monitor.first_alert_index
    assert monitor.history[at].alert
    assert not any(state.alert for state in monitor.history[:at])
    assert suggest(monitor).failure_type == "abrupt_spike"


def test_observations_that_made_the_alert_are_not_the_before():
    monitor = watched(benchmark_curve("spike", 7))
    onset = monitor.first_alert_index - 4
    before = [state.D for state in monitor.history[onset - 80 : onset]]
    middle = sum(before) / 80
    slope = sum((i - 39.5) * (d - middle) for i, d in enumerate(before)) / (80 * (80**2 - 1) / 12)
    assert suggest(monitor).d_slope == pytest.approx(slope)
    # Published: with four observations of the jump in it.
    assert abs(slope) < 0.03


def test_deviations_of_0_are_deviations():
    series = golden("constant")
    said = suggest(watched(series["losses"], series["steps"]))
    # A constant loss, then five observations that are 1e-6 higher: published as a drift of 89.785.
    assert (said.failure_type, said.d_slope) == ("abrupt_spike", 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("after", [20, 200])
def test_a_loss_that_is_no_number_calls_for_a_rollback(bad, after):
    said = suggest(watched([*clean(after), bad]))
    assert (said.failure_type, said.suggestion) == ("abrupt_spike", "consider_rollback")
    assert said.first_alert_step == after + 1
    json.dumps(said.as_dict(), allow_nan=False)


def test_nan_before_the_alert_does_no_harm():
    losses = benchmark_curve("spike", 9)
    monitor = WTwinMonitor()
    for step, loss in enumerate(losses, 1):
        monitor.update(step, loss)
    clear = suggest(monitor)
    # Not the first alert here: the NaN comes within the run that makes it.
    losses.insert(602, math.nan)
    disturbed = watched(losses[:604])
    assert suggest(disturbed).failure_type == "abrupt_spike"
    assert clear.failure_type == "abrupt_spike"


def test_an_alert_without_a_before_is_uncertain():
    said = suggest(watched([*clean(150), *[9.0] * 10], n_consec=1))
    assert said.failure_type == "uncertain"
    assert said.reasoning == "Insufficient history for classification. Inspect manually."


def test_history_that_does_not_reach_back_is_said():
    monitor = watched(benchmark_curve("spike", 0), history_limit=10)
    said = suggest(monitor)
    assert (said.failure_type, said.first_alert_step) == ("uncertain", 605)
    assert "doesn't reach back" in said.reasoning


def test_the_dict_has_the_published_keys():
    said = suggest(watched(benchmark_curve("drift", 0)))
    assert list(said.as_dict()) == [
        "alert",
        "failure_type",
        "confidence",
        "suggestion",
        "action",
        "reasoning",
        "w_at_alert",
        "first_alert_step",
        "d_slope",
        "d_spike",
        "kind",
        "onset_step",
        "last_healthy_step",
        "excess",
        "excess_sigma",
        "_warning",
    ]
