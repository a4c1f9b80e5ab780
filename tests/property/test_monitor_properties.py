"""What holds for the monitors whatever the points are."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.classic_series import clean
from wtwin_watch.metrics import Names
from wtwin_watch.model import Point
from wtwin_watch.monitor import WTwinMonitor, suggest
from wtwin_watch.monitor.options import ClassicOptions, TrendOptions
from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.robust import SlidingMad
from wtwin_watch.monitor.rules import NonFiniteRule
from wtwin_watch.monitor.run import RunMonitor

finite = st.floats(allow_nan=False, allow_infinity=False)
ordinary = st.floats(-1e6, 1e6)
anything = st.one_of(st.floats(0.01, 10), st.floats(), st.sampled_from([math.nan, math.inf, 1.0]))
QUICK = ClassicOptions(warmup_steps=10, n_consec=2, mad_window=5)


def stored(state):
    """A state as it comes back from the database: strict JSON."""
    return json.loads(json.dumps(state, allow_nan=False))


@settings(deadline=None)
@given(st.integers(2, 12), st.lists(ordinary, min_size=2, max_size=60))
def test_sigma_is_that_of_sorting_the_window_anew(size, values):
    mad = SlidingMad(size)
    for value in values:
        mad.push(value)
    window = np.array(values[-size:])
    expected = 1.4826 * float(np.median(np.abs(window - np.median(window))))
    assert mad.sigma() == pytest.approx(expected if expected > 1e-10 else 1e-8, rel=1e-12)


@settings(deadline=None)
@given(st.integers(2, 12), st.lists(finite, max_size=60))
def test_sigma_is_always_a_positive_number(size, values):
    mad = SlidingMad(size)
    for value in values:
        mad.push(value)
        assert 1e-10 < mad.sigma() < math.inf


@settings(deadline=None)
@given(st.lists(st.floats()))
def test_packed_numbers_come_back(values):
    assert str(unpack(pack(values))) == str(values)


@settings(deadline=None)
@given(st.lists(st.sampled_from([1.0, math.nan, -math.inf]), max_size=80), st.integers(0, 80))
def test_a_rule_goes_on_where_it_was_stored(values, cut):
    whole, first = NonFiniteRule(), NonFiniteRule()
    said = [whole.update(step, value) for step, value in enumerate(values)]
    for step, value in enumerate(values[:cut]):
        first.update(step, value)
    second = NonFiniteRule.restore(stored(first.snapshot()))
    assert [second.update(cut + i, value) for i, value in enumerate(values[cut:])] == said[cut:]
    assert second.snapshot() == whole.snapshot()


@st.composite
def curves(draw):
    """A curve long enough to be judged, with surprises of every kind in it, and settings."""
    losses = clean(draw(st.integers(1, 260)), draw(st.integers(0, 5)))
    for at, value in draw(st.lists(st.tuples(st.integers(0, 259), anything), max_size=8)):
        if at < len(losses):
            losses[at] = value
    rise = draw(st.integers(130, 260))
    steps = list(range(1, len(losses) + 1))
    for at, back in draw(st.lists(st.tuples(st.integers(0, 259), st.integers(0, 50)), max_size=3)):
        if at < len(losses):
            steps[at] = max(0, steps[at] - back)
    return [
        (step, loss + (i >= rise)) for i, (step, loss) in enumerate(zip(steps, losses, strict=True))
    ]


choices = st.fixed_dictionaries(
    {},
    optional={
        "use_adaptive_T": st.booleans(),
        "threshold_window": st.integers(2, 30),
        "mad_window": st.integers(2, 30),
        "n_consec": st.integers(1, 6),
        "warmup_steps": st.integers(0, 60),
        "history_limit": st.sampled_from([None, 0, 5]),
        "calibration_frac": st.floats(0.05, 1),
    },
)


@settings(max_examples=60, deadline=None)
@given(curves(), choices, st.integers(0, 260))
def test_a_stored_monitor_goes_on_exactly(curve, chosen, cut):
    whole, first = WTwinMonitor(**chosen), WTwinMonitor(**chosen)
    states = [whole.update(*one) for one in curve]
    for one in curve[:cut]:
        first.update(*one)
    second = WTwinMonitor.restore(stored(first.snapshot()))
    assert str([second.update(*one) for one in curve[cut:]]) == str(states[cut:])
    assert str(second.history) == str(whole.history)
    assert (second.status, second.first_alert_step()) == (whole.status, whole.first_alert_step())
    assert stored(second.snapshot()) == stored(whole.snapshot())
    assert str(suggest(second)) == str(suggest(whole))
    json.dumps(suggest(whole).as_dict(), allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(curves(), choices)
def test_every_number_but_of_a_non_finite_loss_is_finite(curve, chosen):
    monitor = WTwinMonitor(**chosen)
    for one in curve:
        state = monitor.update(*one)
        if math.isfinite(state.l_obs):
            assert all(map(math.isfinite, (state.D, state.Q, state.T, state.W)))
            assert abs(state.D) <= 1e4
            assert 0 <= state.Q <= 1
        else:
            assert state.alert
            assert state.D == state.W == math.inf


@st.composite
def logs(draw):
    """Points of several metrics, not always in full rows."""
    names = st.sampled_from(["loss", "train_loss", "total_loss", "lr", "val_loss", "other"])
    free = draw(st.lists(st.tuples(names, st.integers(0, 9), anything), max_size=12))
    start = [Point(name, float(step), value) for name, step, value in free]
    return start + [Point("loss", float(step), loss) for step, loss in draw(curves())]


@st.composite
def whole_logs(draw):
    """Points of all roles, with jumps, gaps, blanks, zeros and odd values in them."""
    count = draw(st.integers(1, 400))
    columns = {"loss": clean(count, draw(st.integers(0, 5)))}
    for name in draw(
        st.sets(st.sampled_from(["lr", "grad_norm", "val_loss", "tokens_per_second"]))
    ):
        columns[name] = [1.0 + 0.1 * math.sin(i) for i in range(count)]
    changes = st.tuples(
        st.sampled_from(sorted(columns)),
        st.integers(0, 399),
        st.integers(1, 80),
        st.one_of(st.none(), st.sampled_from([0.0, 0.3, 2.0, 30.0]), anything),
    )
    for name, at, length, value in draw(st.lists(changes, max_size=4)):
        for i in range(at, min(at + length, count)):
            columns[name][i] = value
    order = draw(st.permutations(sorted(columns)))
    return [
        Point(name, float(step), columns[name][step])
        for step in range(count)
        for name in order
        if columns[name][step] is not None
    ]


OPTIONS = st.sampled_from([TrendOptions(), TrendOptions(far=50.0), QUICK])
CUTS = st.lists(st.integers(0, 1500), max_size=5)


@settings(max_examples=60, deadline=None)
@given(whole_logs(), CUTS, OPTIONS, st.sampled_from([Names(), Names(loss="loss")]))
def test_any_split_of_a_whole_log_gives_the_same(log, cuts, options, names):
    whole, split = RunMonitor(names, options), RunMonitor(names, options)
    expected = whole.feed(log)
    edges = [0, *sorted(cuts), len(log)]
    assert [one for a, b in pairwise(edges) for one in split.feed(log[a:b])] == expected
    assert stored(split.snapshot()) == stored(whole.snapshot())
    assert split.flush() == whole.flush()
    assert split.roles == whole.roles


@settings(max_examples=60, deadline=None)
@given(whole_logs(), CUTS, OPTIONS)
def test_a_stored_run_goes_on_exactly(log, cuts, options):
    monitor, again = RunMonitor(Names(), options), RunMonitor(Names(), options)
    for begin, end in pairwise([0, *sorted(cuts), len(log)]):
        assert again.feed(log[begin:end]) == monitor.feed(log[begin:end])
        # The one goes on, the other one is taken up from what was stored.
        again = RunMonitor.restore(stored(monitor.snapshot()), Names(), options)
    assert stored(again.snapshot()) == stored(monitor.snapshot())
    assert (again.points, again.last_step, again.status) == (
        monitor.points,
        monitor.last_step,
        monitor.status,
    )
    assert again.flush() == monitor.flush()
    assert again.roles == monitor.roles


@settings(max_examples=60, deadline=None)
@given(whole_logs(), OPTIONS)
def test_an_episode_begins_once_changes_seldom_and_ends_once(log, options):
    monitor = RunMonitor(Names(), options)
    detections = monitor.feed(log) + monitor.flush() + monitor.restart(None, "the end")
    numbers = ("step", "onset_step", "last_healthy_step", "observed", "expected", "sigma", "score")
    told = {}
    for detection in detections:
        now = (detection.kind, detection.severity)
        # Something told twice in the same words would be chatter; an end of nothing, a lie.
        assert told.get(detection.family) != now or not detection.active
        assert detection.active or detection.family in told
        told[detection.family] = now
        if not detection.active:
            del told[detection.family]
        values = [getattr(detection, name) for name in numbers]
        assert all(value is None or math.isfinite(value) for value in values)
        assert "nan" not in detection.summary
    assert told == {}
    json.dumps(monitor.snapshot(), allow_nan=False)


@settings(max_examples=80, deadline=None)
@given(logs(), st.lists(st.integers(0, 300), max_size=6), st.sampled_from([None, "total_loss"]))
def test_any_split_gives_the_same_detections_and_the_same_state(log, cuts, given_loss):
    names = Names(loss=given_loss)
    whole, split = RunMonitor(names, QUICK), RunMonitor(names, QUICK)
    expected = whole.feed(log)
    edges = [0, *sorted(cuts), len(log)]
    detections = []
    for begin, end in pairwise(edges):
        detections += split.feed(log[begin:end])
        # Stored and taken up again in between, as the daemon may be.
        split = RunMonitor.restore(stored(split.snapshot()), names, QUICK)
    assert detections == expected
    assert split.snapshot() == whole.snapshot()
    assert (split.roles, split.points, split.last_step) == (
        whole.roles,
        whole.points,
        whole.last_step,
    )
    assert split.flush() == whole.flush()


@settings(max_examples=80, deadline=None)
@given(logs())
def test_detections_of_a_family_begin_and_end_by_turns(log):
    monitor = RunMonitor(Names(), QUICK)
    detections = monitor.feed(log) + monitor.flush() + monitor.restart(None, "the end")
    for family in {detection.family for detection in detections}:
        turns = [d.active for d in detections if d.family is family]
        assert turns == [True, False] * (len(turns) // 2)
    numbers = ("step", "onset_step", "last_healthy_step", "observed", "expected", "sigma", "score")
    for detection in detections:
        values = [getattr(detection, name) for name in numbers]
        assert all(value is None or math.isfinite(value) for value in values)
