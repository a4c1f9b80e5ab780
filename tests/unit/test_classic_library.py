"""The W-Twin monitor as a library: custom forecasts, history, reset, status, cost."""

import math
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest

from tests.support.classic_series import benchmark_curve, clean
from wtwin_watch.errors import SnapshotError
from wtwin_watch.monitor import BaseBaseline, PowerLawBaseline, WTwinMonitor
from wtwin_watch.monitor.baseline import BaseBaseline as FromBaseline


class Level(BaseBaseline):
    """Forecasts the mean of what it was fitted on, once it was given enough."""

    def __init__(self, enough=0):
        self.enough = enough
        self.asked = []
        self.level = None

    def fit(self, steps, losses):
        self.asked.append((list(steps), list(losses)))
        if len(steps) < self.enough:
            raise ValueError(f"only {len(steps)}")
        self.level = float(np.mean(losses))

    def predict(self, t):
        return self.level

    @property
    def fit_mse(self):
        return 0.0

    @property
    def is_fitted(self):
        return self.level is not None


def feed(monitor, losses, first=1):
    return [monitor.update(step, loss) for step, loss in enumerate(losses, first)]


def test_a_custom_forecast_is_fitted_once_on_all_observations_of_the_first_150_steps():
    baseline = Level()
    losses = clean(300)
    states = feed(WTwinMonitor(baseline), losses)
    assert baseline.asked == [(list(range(1, 151)), losses[:150])]
    assert math.isnan(states[148].l_pred)
    assert states[149].l_pred == pytest.approx(sum(losses[:150]) / 150)
    assert states[149].Q == 1.0


def test_a_value_error_of_a_fit_means_not_yet():
    baseline = Level(enough=153)
    monitor = WTwinMonitor(baseline)
    feed(monitor, clean(152))
    assert monitor.status == "no forecast yet: only 152"
    monitor.update(153, 0.2)
    assert monitor.ready
    assert [len(steps) for steps, _ in baseline.asked] == [150, 151, 152, 153]


def test_a_fitted_baseline_is_used_from_the_first_observation_on():
    baseline = PowerLawBaseline(warmup_steps=0)
    baseline.fit(range(1, 101), clean(100))
    assert WTwinMonitor(baseline).update(1, 2.0).l_pred == baseline.predict(1)


def test_a_forecast_that_is_no_number_decides_nothing():
    class Nothing(Level):
        def predict(self, t):
            return math.nan

    states = feed(WTwinMonitor(Nothing()), clean(300))
    assert {(state.D, state.W, state.alert) for state in states} == {(0.0, 0.0, False)}


def test_a_fit_that_never_succeeds_is_asked_ever_more_rarely():
    baseline = Level(enough=10**9)
    feed(WTwinMonitor(baseline), [1.0] * 20_000)
    # Every time it would be 19,851; then memory would hold 20,000 observations as well.
    assert len(baseline.asked) < 1000
    assert max(len(steps) for steps, _ in baseline.asked) == 5000


def test_a_custom_baseline_comes_from_the_module_of_the_published_program_too():
    assert FromBaseline is BaseBaseline


def test_a_custom_baseline_has_no_snapshot_and_says_so():
    with pytest.raises(SnapshotError, match="Level"):
        WTwinMonitor(Level()).snapshot()


@pytest.mark.parametrize(
    ("steps", "losses", "why"),
    [
        (range(51, 55), [1.0] * 4, "4 usable observations after step 50"),
        (range(51, 61), [1.0] * 9 + [0.0], "loss"),
        (range(51, 61), [1.0] * 9 + [-1.0], "loss"),
    ],
)
def test_a_power_law_refuses_what_it_cannot_be_fitted_to(steps, losses, why):
    with pytest.raises(ValueError, match=why):
        PowerLawBaseline(calibration_frac=1.0).fit(steps, losses)


def test_a_power_law_finds_the_curve_it_was_made_from():
    # With a smallest loss of m the floor is 0.8 m: losses whose true floor is just that.
    t = np.arange(1.0, 101.0)
    floor = 0.8 * 2.0 * 100.0**-0.5 / 0.2
    baseline = PowerLawBaseline(calibration_frac=1.0, warmup_steps=0)
    baseline.fit(t, 2.0 * t**-0.5 + floor)
    assert baseline.coefficients == pytest.approx({"a": 2.0, "b": 0.5, "c": floor})
    assert baseline.predict(10_000) == pytest.approx(0.02 + floor)
    assert baseline.predict(np.array([1.0, 4.0])) == pytest.approx([2 + floor, 1 + floor])
    assert baseline.fit_mse == pytest.approx(0, abs=1e-20)


def test_a_power_law_is_not_asked_before_it_is_fitted():
    with pytest.raises(RuntimeError, match="fit"):
        PowerLawBaseline().predict(1)


def test_history_is_complete_by_default():
    monitor = WTwinMonitor()
    states = feed(monitor, clean(400))
    assert monitor.history == states[149:]


@pytest.mark.parametrize("limit", [0, 1, 7, 1000])
def test_history_is_capped_at_its_limit(limit):
    monitor = WTwinMonitor(history_limit=limit)
    states = feed(monitor, clean(400))
    assert monitor.history == states[max(149, 400 - limit) :]


def test_the_first_alert_is_known_without_history():
    monitor = WTwinMonitor(history_limit=0)
    feed(monitor, benchmark_curve("spike", 0))
    assert monitor.first_alert_step() == 605


def test_reset_begins_anew():
    monitor = WTwinMonitor(alpha=2.5)
    feed(monitor, benchmark_curve("spike", 0))
    monitor.reset()
    assert (monitor.first_alert_step(), monitor.history, monitor.alpha) == (None, [], 2.5)
    fresh = WTwinMonitor(alpha=2.5)
    assert str(feed(monitor, clean(400, 1))) == str(feed(fresh, clean(400, 1)))


@pytest.mark.parametrize(
    ("stride", "seen", "needed"),
    [(1, 0, 150), (1, 30, 120), (1, 150, 0), (10, 2, 103), (10, 60, 45)],
)
def test_status_says_how_many_points_are_needed(stride, seen, needed):
    # The warm-up ends at step 50, then 100 observations are needed.
    monitor = WTwinMonitor()
    for i in range(1, seen + 1):
        monitor.update(i * stride, 1.0 + 1 / i)
    assert monitor.points_needed == needed
    if needed:
        assert monitor.status == f"still learning, needs about {needed} more points"
    else:
        assert monitor.status == "judging"


def test_numbers_of_other_libraries_become_pythons():
    monitor = WTwinMonitor()
    for step, loss in zip(np.arange(1, 200), np.float32(clean(199)), strict=True):
        state = monitor.update(step, loss)
    assert [type(value) for value in state] == [int] + [float] * 6 + [bool]


def test_lr_is_taken_and_has_no_part_in_the_method():
    assert str(WTwinMonitor().update(1, 2.0, lr=3e-4)) == str(WTwinMonitor().update(1, 2.0))


def test_a_rewind_before_the_fit_takes_back_what_comes_again():
    losses = clean(300)
    straight, rewound = WTwinMonitor(Level()), WTwinMonitor(Level())
    feed(straight, losses)
    feed(rewound, losses[:120])
    rewound.rewind(81)
    states = feed(rewound, losses[80:], first=81)
    assert rewound.baseline.asked == straight.baseline.asked
    assert [state.l_pred for state in states[70:]] == [s.l_pred for s in straight.history[1:]]


def test_an_update_costs_the_same_at_step_100000_as_at_step_1000():
    losses = clean(1000)
    early, late = WTwinMonitor(), WTwinMonitor()
    feed(early, losses)
    feed(late, losses * 100)

    def time_of_block(monitor, first):
        at = time.perf_counter()
        for step in range(first, first + 50):
            monitor.update(step, losses[step % 1000])
        return time.perf_counter() - at

    # By turns, and the cheapest of each: other work on the machine only ever adds.
    costs = [
        (time_of_block(early, 1001 + 50 * i), time_of_block(late, 100_001 + 50 * i))
        for i in range(40)
    ]
    assert min(cost for _, cost in costs) / min(cost for cost, _ in costs) <= 1.2


def test_memory_is_bounded_without_history():
    monitor = WTwinMonitor(history_limit=0)
    losses = clean(1000)
    feed(monitor, losses)
    tracemalloc.start()
    try:
        for step in range(10_000):
            monitor.update(1000 + step, losses[step % 1000])
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The published program: 452 B an observation.
    assert grown < 10_000


def test_importing_the_monitors_loads_numpy_alone():
    code = (
        "import sys; before = set(sys.modules)\n"
        "import wtwin_watch.monitor, wtwin_watch.monitor.run\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(new - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["numpy", "wtwin_watch"]


def test_a_forecast_beyond_the_largest_number_is_infinite_and_far_above_any_loss():
    baseline = PowerLawBaseline(calibration_frac=1.0, warmup_steps=0)
    baseline.fit(range(100, 120), [10.0 * 0.5**i for i in range(20)])
    assert baseline.predict(1e-8) == math.inf
    assert baseline.predict(np.array([1e-8, 1e9]))[0] == math.inf
    assert WTwinMonitor(baseline).update(0, 5.0).D == -1e4


def test_settings_of_a_power_law_are_checked_and_shown():
    with pytest.raises(ValueError, match="calibration_frac"):
        PowerLawBaseline(calibration_frac=0)
    with pytest.raises(ValueError, match="warmup_steps"):
        PowerLawBaseline(warmup_steps=-1)
    assert repr(PowerLawBaseline(0.5)) == "PowerLawBaseline(calibration_frac=0.5, warmup_steps=50)"


def test_steps_of_a_library_without_integers_become_floats():
    class Tensor:
        def __float__(self):
            return 3.0

    assert repr(WTwinMonitor().update(Tensor(), 2.0).step) == "3.0"
    assert repr(WTwinMonitor().update(np.float32(2.5), 2.0).step) == "2.5"
