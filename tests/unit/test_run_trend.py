"""What the monitor of one run makes of its loss by the trend detector."""

import json
import math
import sys

import numpy as np
import pytest

from tests.support.curves import SIGMA, healthy, rows, series, with_rise
from wtwin_watch.errors import SnapshotError
from wtwin_watch.metrics import Names, Role
from wtwin_watch.model import Family, Point, Severity
from wtwin_watch.monitor.options import ClassicOptions, TrendOptions
from wtwin_watch.monitor.run import RunMonitor


def told(detections):
    return [(d.kind, d.severity.value, d.active) for d in detections]


def test_the_trend_detector_is_the_default():
    monitor = RunMonitor()
    monitor.feed(series(healthy(200)))
    assert monitor.snapshot()["detector"] == "trend"
    assert (monitor.ready, monitor.status, monitor.points) == (True, "judging", 200)


@pytest.mark.parametrize("seed", range(5))
def test_a_healthy_run_gives_nothing(seed):
    assert RunMonitor().feed(series(healthy(3000, seed))) == []


def test_a_spike_of_twenty_points_is_information_and_pages_nobody():
    losses = with_rise(healthy(2000), 1200, [0.5] * 20 + [0.0])
    began, ended = RunMonitor().feed(series(losses))

    assert (began.family, began.kind, began.severity) == (Family.LOSS, "spike", Severity.INFO)
    assert 1201 <= began.step <= 1206
    assert began.summary.endswith("; whether that lasts isn't known yet.")
    assert (ended.kind, ended.active) == ("spike", False)
    assert 1220 < ended.step < 1600


@pytest.mark.parametrize("size", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_spike_that_fades_pages_nobody(size, seed):
    fading = [size * math.exp(-i / 20) for i in range(200)] + [0.0]
    detections = RunMonitor().feed(series(with_rise(healthy(2500, seed), 1500, fading)))
    assert {d.severity for d in detections if d.active} == {Severity.INFO}
    assert [d.active for d in detections] == [True, False]


def test_a_jump_that_stays_becomes_a_warning_within_forty_points():
    losses = with_rise(healthy(1800), 1500, [0.3])
    jump, stays = RunMonitor().feed(series(losses))

    assert told([jump, stays]) == [("spike", "info", True), ("level_shift", "warning", True)]
    assert stays.step - 1500 <= 40
    assert abs(stays.onset_step - 1501) <= 8
    assert stays.last_healthy_step == stays.onset_step - 1
    assert stays.observed - stays.expected == pytest.approx(0.3, abs=5 * SIGMA)
    assert stays.sigma == pytest.approx(SIGMA, rel=0.5)
    assert stays.score > 0
    assert (stays.detector, stays.metric) == ("trend", "loss")


def test_a_slow_rise_is_a_warning_from_the_start_with_its_numbers_in_a_sentence():
    losses = with_rise(healthy(5000), 3000, list(np.linspace(0, 0.1, 1000)))
    (drift,) = RunMonitor().feed(series(losses[:4000]))

    assert told([drift]) == [("drift", "warning", True)]
    assert 3000 < drift.step < 3500
    assert abs(drift.onset_step - 3000) < 150
    assert drift.summary.startswith(
        f"Loss leaves its trend: since step {drift.onset_step:.0f} on average 0.0"
    )
    assert f"now {drift.observed:.4g}." in drift.summary
    assert "sigma) above the 2.0" in drift.summary


def test_a_divergence_is_critical_and_its_changes_are_few():
    growing = [0.005 * math.expm1(min(i / 200, 6.0)) for i in range(1500)]
    detections = RunMonitor().feed(series(with_rise(healthy(4500), 3000, growing)))
    assert told(detections)[-1] == ("divergence", "critical", True)
    assert len(detections) <= 4
    weights = [["info", "warning", "critical"].index(d.severity.value) for d in detections]
    assert weights == sorted(weights)


def test_a_rise_that_goes_back_ends_with_how_far_it_went():
    bump = [*np.linspace(0, 0.3, 300), *np.linspace(0.3, 0, 300), 0.0]
    *_, ended = RunMonitor().feed(series(with_rise(healthy(6000), 3000, bump)))
    assert not ended.active
    assert "is back at its trend of 2.0" in ended.summary
    assert "sigma) above it." in ended.summary


def test_a_level_that_stays_is_taken_as_normal_in_the_end():
    losses = with_rise(healthy(9000), 2000, [0.3])
    *_, ended = RunMonitor().feed(series(losses))
    assert not ended.active
    assert "is taken as normal from here on" in ended.summary


def test_a_loss_that_keeps_spiking_is_told_once_and_again_when_it_lasts():
    losses = healthy(6000)
    for at in range(2000, 4400, 400):
        losses = with_rise(losses, at, [0.4] * 15 + [0.0])
    spikes = RunMonitor().feed(series(losses))
    assert told(spikes) == [("spike", "info", True), ("spike", "info", False)]

    lasting = with_rise(losses, 4400, [0.4])
    assert told(RunMonitor().feed(series(lasting)))[2:] == [("level_shift", "warning", True)]


def test_a_frozen_loss_is_critical_and_ends_when_it_moves():
    losses = healthy(600)
    losses[500:540] = [losses[500]] * 40
    frozen, moves = RunMonitor().feed(series(losses))
    assert told([frozen, moves]) == [("frozen", "critical", True), ("frozen", "critical", False)]
    assert frozen.summary == (
        f"Loss has been exactly {losses[500]:.6g} at every point since step {frozen.onset_step:.0f}."
    )
    assert (frozen.onset_step, moves.step) == (501, 541)


def test_a_nan_is_told_by_the_rule_alone_and_does_not_end_a_drift():
    losses = with_rise(healthy(1800), 1500, [0.3])
    losses[1600] = math.nan
    detections = RunMonitor().feed(series(losses))
    assert [(d.family, d.kind, d.active) for d in detections] == [
        (Family.LOSS, "spike", True),
        (Family.LOSS, "level_shift", True),
        (Family.NONFINITE, "nonfinite", True),
        (Family.NONFINITE, "nonfinite", False),
    ]
    nan = detections[2]
    assert (nan.observed, nan.detector) == (None, "rule")
    assert nan.expected == pytest.approx(2.08, abs=0.05)


def test_a_loss_that_stops_falling_is_information_in_a_family_of_its_own():
    falling = [6.0 - 0.2 * math.log(i + 100) for i in range(4200)]
    noise = np.random.default_rng(0).normal(0, SIGMA, 4200)
    stalled = np.array([*falling[:3000], *[falling[2999]] * 1200]) + noise

    (stagnation,) = RunMonitor().feed(series(stalled.tolist()))

    assert (stagnation.family, stagnation.kind, stagnation.severity) == (
        Family.PROGRESS,
        "stagnation",
        Severity.INFO,
    )
    assert 3000 < stagnation.step < 4200
    assert RunMonitor().feed(series((np.array(falling) + noise).tolist())) == []


def test_a_loss_that_falls_again_no_longer_stagnates():
    level, steps = 6.0 - 0.2 * math.log(3100), range(3000)
    course = [6.0 - 0.2 * math.log(i + 100) for i in steps] + [level] * 1000
    course += [level - i / 10_000 for i in steps]
    losses = np.array(course) + np.random.default_rng(0).normal(0, SIGMA, len(course))
    began, ended = RunMonitor().feed(series(losses.tolist()))
    assert (began.kind, began.active, ended.kind, ended.active) == (
        "stagnation",
        True,
        "stagnation",
        False,
    )
    assert ended.summary.endswith("is falling again.")


def test_the_learning_rate_is_the_clock_wherever_it_stands_in_a_row():
    losses, rates = healthy(300), [1e-3 * 0.99**i for i in range(300)]
    before, after, named = RunMonitor(), RunMonitor(), RunMonitor(Names(loss="loss", lr="rate"))
    before.feed(rows(lr=rates, loss=losses))
    after.feed(rows(loss=losses, lr=rates))
    named.feed(rows(loss=losses, lr=[0.5] * 300, rate=rates))
    for monitor in (before, after, named):
        assert monitor.snapshot()["rate"] is not None
        assert monitor.loss_monitor.snapshot()["pace"] != RunMonitor().snapshot()
    assert before.roles[Role.LR] == after.roles[Role.LR] == "lr"
    assert named.roles[Role.LR] == "rate"


def test_a_learning_rate_that_comes_late_is_no_clock():
    monitor, without = RunMonitor(), RunMonitor()
    losses = healthy(300)
    monitor.feed(rows(loss=losses, lr=[None] * 50 + [0.1] * 250))
    without.feed(rows(loss=losses))
    assert monitor.loss_monitor.snapshot() == without.loss_monitor.snapshot()
    assert monitor.snapshot()["rate"] is None


def test_the_first_point_of_a_log_is_judged_at_its_end_if_no_second_comes():
    monitor = RunMonitor(Names(loss="loss"))
    assert monitor.feed([Point("loss", 1.0, 2.0)]) == []
    assert monitor.flush() == []
    assert monitor.loss_monitor.points_needed == 64
    assert monitor.points == 1


def test_a_step_back_takes_back_what_came_after_it():
    losses = with_rise(healthy(1600), 1500, [0.3])
    monitor = RunMonitor()
    monitor.feed(series(losses))
    monitor.restart(1001, "steps go back")
    ended = monitor.feed(series(healthy(1500, 7)[1000:], first=1001))
    assert told(ended) == [("level_shift", "info", False)]
    assert "went back to step 1001" in ended[0].summary


def test_a_log_that_starts_anew_ends_what_is_open():
    monitor = RunMonitor()
    monitor.feed(series([*with_rise(healthy(1600), 1500, [0.3]), math.nan]))
    ended = monitor.restart(None, "the file was replaced")
    assert [(d.family, d.kind, d.active) for d in ended] == [
        (Family.NONFINITE, "nonfinite", False),
        (Family.LOSS, "level_shift", False),
    ]
    fresh = RunMonitor()
    assert monitor.feed(series(healthy(300))) == fresh.feed(series(healthy(300)))
    assert monitor.snapshot() == fresh.snapshot()


def test_new_settings_apply_to_what_was_learned():
    monitor = RunMonitor()
    monitor.feed(series(healthy(3000)))
    state = monitor.snapshot()
    rise = series(
        with_rise(healthy(3300), 3000, list(np.linspace(0, 0.1, 1000)))[3000:], first=3001
    )
    patient = RunMonitor.restore(state, Names(), TrendOptions(far=1e12))
    assert len(monitor.feed(rise)) == 1
    assert len(patient.feed(rise[:200])) == 0


def test_a_state_of_another_detector_is_refused():
    state = RunMonitor().snapshot()
    with pytest.raises(SnapshotError, match="'trend'"):
        RunMonitor.restore(state, Names(), ClassicOptions())
    with pytest.raises(SnapshotError):
        RunMonitor.restore(state | {"loss": {}}, Names(), TrendOptions())


def size_of(value, seen=None):
    """Bytes of an object with all that belongs to it."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, type) or callable(value):
        return 0
    seen.add(id(value))
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        size += sum(size_of(k, seen) + size_of(v, seen) for k, v in value.items())
    elif isinstance(value, list | tuple | set | frozenset) or type(value).__name__ == "deque":
        size += sum(size_of(item, seen) for item in value)
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    size += sum(size_of(getattr(value, name), seen) for name in names if hasattr(value, name))
    return size + (size_of(vars(value), seen) if hasattr(value, "__dict__") else 0)


def test_a_run_of_four_metrics_stays_small():
    count = 20_000
    chance = np.random.default_rng(1)
    log = rows(
        loss=healthy(count),
        grad_norm=chance.lognormal(0, 0.3, count).tolist(),
        val_loss=[loss + 0.1 if i % 10 == 0 else None for i, loss in enumerate(healthy(count, 2))],
        tokens_per_second=chance.normal(1e5, 1e3, count).tolist(),
    )
    monitor = RunMonitor()
    assert monitor.feed(log) == []
    assert set(monitor.roles) == {Role.LOSS, Role.GRAD_NORM, Role.VAL_LOSS, Role.THROUGHPUT}
    assert size_of(monitor) <= 128 * 1024
    state = monitor.snapshot()
    assert len(json.dumps(state["loss"], allow_nan=False)) <= 32 * 1024
    assert len(json.dumps(state, allow_nan=False)) <= 64 * 1024
