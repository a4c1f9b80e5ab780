"""A curve loses neither points nor extremes, whatever is logged and however it arrives."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wtwin_watch.monitor.curve import Curve

LOSSES = st.lists(
    st.floats(width=32, allow_nan=True, allow_infinity=True), min_size=1, max_size=200
)


@given(LOSSES, st.integers(1, 50), st.integers(4, 30))
def test_points_and_extremes_stay(losses, batch, limit):
    curve = Curve(limit)
    for start in range(0, len(losses), batch):
        curve.add(
            [(float(start + i), x) for i, x in enumerate(losses[start : start + batch])], (), 1.0
        )

    shown = [x for x in losses if abs(x) <= 1e30]
    assert len(curve) <= limit * 3 // 2
    assert curve.lost.sum() == len(losses) - len(shown)
    assert (np.diff(curve.step) > 0).all()
    assert curve.step[-1] == len(losses) - 1
    if shown:
        assert np.nanmin(curve.low) == np.float32(min(shown))
        assert np.nanmax(curve.high) == np.float32(max(shown))
    else:
        assert all(math.isnan(x) for x in curve.mean)


@given(LOSSES, st.integers(0, 199), st.integers(1, 40))
def test_a_part_has_the_extremes_of_its_columns(losses, first, most):
    curve = Curve(None)
    curve.add([(float(i), x) for i, x in enumerate(losses)], (), 1.0)

    part = curve.part(first, len(losses), most)

    assert len(part) <= most + 1
    assert part.step[-1:].tolist() == [float(len(losses) - 1)][: max(len(losses) - first, 0)]
    shown = [x for x in losses[first:] if abs(x) <= 1e30]
    if shown:
        assert np.nanmax(part.high) == np.float32(max(shown))
