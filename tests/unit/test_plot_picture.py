"""Pictures that are drawn: PNGs of the right size, of any curve and under any name."""

import math
import struct

import numpy as np
import pytest

from tests.support.notifications import HOSTILE_NAMES
from wtwin_watch.monitor.curve import Curve
from wtwin_watch.plot import Mark, Moment, draw

pytest.importorskip("matplotlib", reason="needs the extra plot")

MARKS = [Mark(60.0, Moment.ONSET), Mark(70.0, Moment.ALERT), Mark(90.0, Moment.RESOLVED)]


def size(picture):
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", picture[16:24])


def curve_of(losses):
    curve = Curve()
    curve.add([(float(i), x) for i, x in enumerate(losses)], (), 0.1)
    return curve


@pytest.mark.parametrize(
    "losses",
    [
        np.linspace(3, 2, 100).tolist(),
        [2.0] * 80 + np.geomspace(2, 1e9, 40).tolist(),
        [2.0] * 60 + [math.nan] * 40,
        [-1.0, 0.0, 1.0],
        [math.nan],
        [],
    ],
    ids=["falling", "diverging", "not finite", "about zero", "nothing finite", "empty"],
)
def test_any_curve_is_drawn_three_times_as_wide_as_a_thumbnail(losses):
    assert size(draw(curve_of(losses), MARKS, "Warning: loss drifts up", "a run")) == (1080, 720)


@pytest.mark.parametrize(
    "name", [*HOSTILE_NAMES, "$\\frac{", "训练"], ids=range(len(HOSTILE_NAMES) + 2)
)
def test_any_name_is_drawn_as_it_is(name):
    assert size(draw(curve_of([2.0, 1.0]), [], name, name))


def test_what_was_told_makes_a_difference():
    curve = curve_of(np.linspace(3, 2, 100).tolist())

    assert draw(curve, MARKS, "a") != draw(curve, MARKS[:2], "a")
    assert draw(curve, MARKS, "a") == draw(curve, MARKS, "a")
