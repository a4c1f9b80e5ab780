import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.trend import Floats, curve, watched
from wtwin_watch.monitor.trend import TrendMonitor

SHAPES = (
    "clean",
    "ramp",
    "jump",
    "spike",
    "divergence",
    "nan",
    "rounded",
    "frozen",
    "heavy",
    "back",
    "gap",
)


@st.composite
def logs(draw: st.DrawFn, shortest: int = 200, longest: int = 2600) -> tuple[Floats, Floats]:
    """Steps and losses of a run of some kind, with whatever goes wrong at some place."""
    points = draw(st.integers(shortest, longest))
    shape = draw(st.sampled_from(SHAPES))
    at = draw(st.integers(points // 10, points - 20))
    losses = curve(points, draw(st.integers(0, 2**20)))
    steps = np.arange(1.0, points + 1.0)
    late = np.arange(points - at)
    if shape == "ramp":
        losses[at:] += 0.1 * np.minimum(1.0, late / draw(st.integers(20, 1000)))
    elif shape == "jump":
        losses[at:] += draw(st.sampled_from([0.04, 0.1, 3.0]))
    elif shape == "spike":
        losses[at:] += 0.5 * np.exp(-late / 20)
    elif shape == "divergence":
        losses[at:] += 0.005 * np.expm1(np.minimum(late / 100, 8))
    elif shape == "nan":
        losses[at] = math.nan
    elif shape == "rounded":
        losses = np.round(losses, draw(st.integers(1, 3)))
    elif shape == "frozen":
        losses[at : at + 60] = losses[at]
    elif shape == "heavy":
        losses += 0.01 * np.random.default_rng(points).standard_t(2.5, points)
    elif shape == "back":
        steps[at:] -= draw(st.integers(1, at))
    elif shape == "gap":
        steps[at:] += 10_000.0
    return steps, losses


def stories(monitor: TrendMonitor) -> list[tuple[object, ...]]:
    return [
        (e.kind, e.outcome, e.began_step, pytest.approx(e.onset_step), e.ended_step, e.reopened)
        for e in monitor.episodes
    ]


@given(logs(), st.lists(st.integers(1, 3000), max_size=4))
@settings(max_examples=20, deadline=None)
def test_columns_and_any_split_of_them_give_what_the_stream_gives(
    log: tuple[Floats, Floats], sizes: list[int]
) -> None:
    steps, losses = log
    stream = TrendMonitor()
    states = [stream.update(s, x) for s, x in zip(steps.tolist(), losses.tolist(), strict=True)]
    batch = TrendMonitor()
    parts, begin = [], 0
    for size in [*sizes, len(steps)]:
        end = min(begin + size, len(steps))
        parts.append(batch.update_many(steps[begin:end], losses[begin:end]))
        begin = end
    rows = np.concatenate(parts)

    assert rows["alert"].tolist() == [state.alert for state in states]
    for name in ("D", "W", "l_pred"):
        column = np.array([getattr(state, name) for state in states])
        np.testing.assert_allclose(rows[name], column, rtol=1e-9, atol=1e-9, err_msg=name)
    assert stories(batch) == stories(stream)
    assert len(batch.history) == len(stream.history)


@given(logs(longest=1600), st.floats(0.2, 1.0))
@settings(max_examples=15, deadline=None)
def test_a_learning_rate_is_followed_alike_by_the_short_and_the_long_way(
    log: tuple[Floats, Floats], least: float
) -> None:
    steps, losses = log
    rates = np.linspace(1.0, least, len(steps))
    short, long = TrendMonitor(), TrendMonitor()
    for step, loss, rate in zip(steps.tolist(), losses.tolist(), rates.tolist(), strict=True):
        # A number of another library's type takes the long way.
        a, b = short.update(step, loss, rate), long.update(step, np.float64(loss), rate)
        assert a.alert == b.alert
        assert pytest.approx(a.D**2, rel=1e-9, abs=1e-9) == b.D**2
    assert stories(short) == stories(long)


@given(logs(longest=1600), st.floats(0.05, 0.95))
@settings(max_examples=15, deadline=None)
def test_a_restored_monitor_goes_on_identically(log: tuple[Floats, Floats], share: float) -> None:
    steps, losses = log
    cut = int(share * len(steps))
    monitor = TrendMonitor(history_limit=0)
    for step, loss in zip(steps[:cut].tolist(), losses[:cut].tolist(), strict=True):
        monitor.update(step, loss)

    other = TrendMonitor.restore(json.loads(json.dumps(monitor.snapshot(), allow_nan=False)))

    for step, loss in zip(steps[cut:].tolist(), losses[cut:].tolist(), strict=True):
        assert repr(monitor.update(step, loss)) == repr(other.update(step, loss))
    assert repr(monitor.drain()) == repr(other.drain())
    assert monitor.snapshot() == other.snapshot()


@given(logs(longest=1600), st.floats(-3, 3))
@settings(max_examples=15, deadline=None)
def test_the_unit_of_the_loss_doesn_t_matter(log: tuple[Floats, Floats], exponent: float) -> None:
    steps, losses = log
    scale = 10.0**exponent
    one, other = TrendMonitor(), TrendMonitor()
    for step, loss in zip(steps.tolist(), losses.tolist(), strict=True):
        a, b = one.update(step, loss), other.update(step, loss * scale)
        assert a.alert == b.alert
        # Evidence is D² / 2; near 0 its root magnifies the rounding that the unit brings.
        assert pytest.approx(a.D**2, rel=1e-9, abs=1e-9) == b.D**2
        assert pytest.approx(a.W, rel=1e-9, abs=1e-8) == b.W


anything = st.floats() | st.sampled_from(
    [0.0, 1.0, -1.0, 1e300, -1e300, 5e-324, math.inf, math.nan]
)


@given(st.lists(st.tuples(anything, anything, st.none() | anything), max_size=300))
@settings(max_examples=40, deadline=None)
def test_no_floats_raise(rows: list[tuple[float, float, float | None]]) -> None:
    monitor = TrendMonitor()
    for step, loss, lr in rows:
        state = monitor.update(step, loss, lr)
        assert state.alert == (state.W > 0)
        if not math.isfinite(loss) and math.isfinite(step) and abs(step) <= 1e15:
            assert state.alert


@given(
    st.lists(
        st.tuples(st.integers(-5, 400), st.floats(-1e6, 1e6) | anything), min_size=20, max_size=300
    ),
    st.integers(0, 1200),
)
@settings(max_examples=20, deadline=None)
def test_wild_steps_and_values_after_an_ordinary_beginning_do_not_raise(
    rows: list[tuple[int, float]], ordinary: int
) -> None:
    monitor = watched(curve(ordinary))
    monitor.update_many([float(step) for step, _ in rows], [loss for _, loss in rows])
    watched(curve(100, seed=3), monitor, 500)
    json.dumps(monitor.snapshot(), allow_nan=False)
