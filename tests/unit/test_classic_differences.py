"""What the published program gets wrong and this one puts right, one test each."""

import json
import math

import pytest

from tests.support.classic_series import clean, decoded, golden
from wtwin_watch.monitor import PowerLawBaseline, WTwinMonitor, suggest


def watch(losses, steps=None, **settings):
    monitor = WTwinMonitor(**settings)
    steps = range(1, len(losses) + 1) if steps is None else steps
    return monitor, [monitor.update(*one) for one in zip(steps, losses, strict=True)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_non_finite_loss_alerts_at_once(bad):
    losses = clean(300)
    losses[199] = bad

    monitor, states = watch(losses)

    assert states[199].alert
    assert states[199].D == states[199].W == math.inf
    assert monitor.first_alert_step() == 200
    assert [state.step for state in states if state.alert] == [200]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("at", [10, 53, 120, 250])
def test_a_non_finite_loss_changes_nothing_else(bad, at):
    losses = clean(400)
    without = WTwinMonitor()
    expected = [without.update(i + 1, loss) for i, loss in enumerate(losses) if i != at]
    monitor, states = watch([bad if i == at else loss for i, loss in enumerate(losses)])

    assert str(states[:at] + states[at + 1 :]) == str(expected)
    assert monitor.baseline.coefficients == without.baseline.coefficients


def test_nan_for_ever_alerts_for_ever():
    _, states = watch(clean(200) + [math.nan] * 300)
    assert all(state.alert for state in states[200:])


def test_a_nan_does_not_end_an_alert():
    losses = clean(300) + [loss + 0.5 for loss in clean(320)[300:]]
    losses[310] = math.nan
    _, states = watch(losses)
    assert [state.alert for state in states[304:]] == [True] * 16


def test_a_nan_counts_neither_towards_an_alert_nor_against_it():
    losses = clean(300) + [loss + 0.5 for loss in clean(320)[300:]]
    losses.insert(302, math.nan)
    _, states = watch(losses)
    # Four finite losses too high do not make an alert, the fifth does.
    assert [state.alert for state in states[300:307]] == [
        False,
        False,
        True,
        False,
        False,
        True,
        True,
    ]


def test_one_nan_gives_no_false_alarms():
    alarms = 0
    for seed in range(40):
        losses = clean(600, seed)
        losses[300] = math.nan
        _, states = watch(losses)
        alarms += sum(state.alert for state in states[:300] + states[301:])
    # The published program: 22 of 40 runs.
    assert alarms == 0


@pytest.mark.parametrize("name", ["nan_in_calibration", "adaptive_T_nan"])
def test_a_nan_no_longer_silences_the_monitor_for_ever(name):
    series = golden(name)
    monitor, states = watch(
        [decoded(loss) for loss in series["losses"]], series["steps"], **series["params"]
    )
    risen = [state for state in states if state.step > 310 and math.isfinite(state.l_obs)]
    assert series["n_alert_steps"] == 0
    assert any(state.alert for state in risen)
    assert monitor.status == "judging"


def test_a_loss_that_is_not_positive_is_left_out_of_the_fit():
    series = golden("nonpositive_in_calibration")
    monitor, states = watch(series["losses"], series["steps"])
    assert series["history_len"] == 0
    assert monitor.ready
    # The fit window holds the positive losses of steps 51 to 59 without step 54.
    assert 0 < monitor.baseline.c < min(loss for loss in series["losses"][50:60] if loss > 0)
    assert not any(state.alert for state in states)


def test_losses_that_are_never_positive_are_said_to_be_the_reason():
    monitor, states = watch([-1.0 - 0.01 * i for i in range(300)])
    assert not monitor.ready
    assert monitor.status == "no forecast yet: 0 usable observations after step 50, 5 needed"
    assert not any(state.alert for state in states)


def test_a_fit_that_overflowed_is_a_flat_forecast_now():
    series = golden("resume_at_100001_overflow")
    assert series["baseline"]["a"] == "Infinity"
    monitor, states = watch(series["losses"], series["steps"])
    assert monitor.baseline.a == 0
    assert monitor.baseline.c == pytest.approx(sum(series["losses"][:10]) / 10)
    assert any(state.alert for state in states if state.step > 100_200)


def test_coefficients_that_are_not_finite_are_refused():
    baseline = PowerLawBaseline(calibration_frac=1.0, warmup_steps=0)
    with pytest.raises(ValueError, match="no finite coefficients"):
        baseline.fit([1, 2, 3, 4, 1e300], [1e308, 1e308, 1.0, 1e-300, 1e308])
    assert not baseline.is_fitted


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([100_001 + i for i in range(300)], id="resumed"),
        pytest.param([60] * 300, id="repeated"),
        pytest.param([1000 - i for i in range(300)], id="falling"),
    ],
)
def test_a_window_of_too_few_log_steps_is_forecast_by_its_mean(steps):
    losses = clean(300)
    monitor, states = watch(losses, steps)
    assert monitor.baseline.coefficients == {
        "a": 0.0,
        "b": 1.0,
        "c": pytest.approx(sum(losses[:10]) / 10),
    }
    assert all(math.isfinite(state.D) for state in states)


def test_steps_that_repeat_or_fall_count_in_the_order_of_their_arrival():
    losses = clean(300) + [5.0] * 10
    steps = [*range(1, 301), 200, 200, 199, 198, 198, 150, 150, 300, 299, 299]
    _, states = watch(losses, steps)
    assert [state.alert for state in states[300:]] == [False] * 4 + [True] * 6


@pytest.mark.parametrize(
    "settings",
    [
        {"tau": 0},
        {"tau": -1e-3},
        {"tau": math.nan},
        {"n_consec": 0},
        {"mad_window": 1},
        {"threshold_window": 1},
        {"calibration_frac": 0},
        {"calibration_frac": 1.5},
        {"alpha": math.nan},
        {"warmup_steps": -1},
        {"T_train": -1},
        {"history_limit": -1},
    ],
)
def test_settings_that_cannot_be_are_refused(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=name):
        WTwinMonitor(**settings)


def test_settings_of_an_explicit_baseline_are_kept():
    baseline = PowerLawBaseline(calibration_frac=0.5, warmup_steps=10)
    WTwinMonitor(baseline, warmup_steps=100, calibration_frac=0.2)
    assert (baseline.calibration_frac, baseline.warmup_steps) == (0.5, 10)


def test_settings_an_explicit_baseline_left_open_are_the_monitors():
    baseline = PowerLawBaseline()
    WTwinMonitor(baseline, warmup_steps=100, calibration_frac=0.2)
    assert (baseline.calibration_frac, baseline.warmup_steps) == (0.2, 100)


def test_step_0_is_a_step():
    losses = [5.0] * 10 + [1.0]
    baseline = PowerLawBaseline(0.1, 0)
    baseline.fit(range(11), losses)
    assert baseline.is_fitted

    monitor, _ = watch(clean(200), range(200))
    assert monitor.ready
    monitor, states = watch([math.nan, 1.0], [0, 1])
    assert monitor.first_alert_step() == 0
    assert suggest(monitor).alert
    assert states[0].alert


def test_an_observation_without_a_place_is_passed_over():
    losses = clean(300)
    _, expected = watch(losses)
    monitor = WTwinMonitor()
    states = []
    for step, loss in enumerate(losses, 1):
        states.append(monitor.update(step, loss))
        nowhere = monitor.update(math.nan, 100.0)
        assert (nowhere.W, nowhere.alert) == (0.0, False)
    assert str(states) == str(expected)


def test_a_confidence_of_zero_is_said_instead_of_keeping_silent():
    series = golden("scaled_x1000_Q_zero")
    monitor, _ = watch(series["losses"], series["steps"])
    assert monitor.status.startswith("can't alert: the forecast's mean squared error of 132")


@pytest.mark.parametrize("loss", [1e308, -1e308, 5e-324, 0.0])
def test_losses_at_the_end_of_the_range_have_a_finite_answer(loss):
    _, states = watch(clean(200) + [loss, -loss] * 60)
    assert all(math.isfinite(number) for state in states[200:] for number in state[1:7])


def test_what_is_told_of_an_alert_is_valid_json():
    monitor, _ = watch([*clean(200), math.nan])
    text = json.dumps(suggest(monitor).as_dict(), allow_nan=False)
    assert json.loads(text)["first_alert_step"] == 201
