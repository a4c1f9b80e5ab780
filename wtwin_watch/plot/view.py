"""Which part of a curve a picture shows, and on what scale: decided without drawing anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wtwin_watch.model import Alert, AlertState
from wtwin_watch.monitor.curve import Curve

Floats = NDArray[np.float64]

SHARE = 0.12
"""An episode takes at least this share of the picture, where the run goes on long enough before it."""
LEAST_COLUMNS = 100
"""A picture shows at least so many columns, where there are so many."""
WHOLE_FROM = 0.4
"""If the part to show is more than this of the run, the run is shown whole."""
LOG_FROM = 15.0
"""Losses that span more than this factor are drawn on a logarithmic scale."""
MARGIN = 0.06
MOST_COLUMNS = 120
"""Three pixels of a thumbnail each: of more, the noise would hide the course."""
LARGEST_SCORE = 1e6
"""W is infinite where a loss is no number; that is drawn, but sets no scale."""
BAND_SIGMA = 2.0
NAMED_WIDTH, NAMED_HEIGHT = 0.3, 0.27
"""What the names of the lines take of the picture."""


class Moment(StrEnum):
    """What a mark is about."""

    ONSET = "onset"
    ALERT = "alert"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Mark:
    """A step at which something was so or was told."""

    step: float
    moment: Moment


@dataclass(frozen=True, slots=True)
class View:
    """What is drawn, column by column, and the limits of the axes.

    ``lost`` are the steps of losses that are no number.
    """

    step: Floats
    low: Floats
    high: Floats
    mean: Floats
    expected: Floats
    band_low: Floats
    band_high: Floats
    score: Floats
    lost: Floats
    x: tuple[float, float]
    y: tuple[float, float]
    logarithmic: bool
    score_limits: tuple[float, float]


def marks_of(alert: Alert) -> list[Mark]:
    """The marks of one alert."""
    seen = alert.detection
    steps = [(seen.onset_step, Moment.ONSET), (seen.step, Moment.ALERT)]
    if alert.state is AlertState.RESOLVED:
        steps.append((alert.resolved_step, Moment.RESOLVED))
    return [
        Mark(step, moment) for step, moment in steps if step is not None and math.isfinite(step)
    ]


def view(curve: Curve, marks: Sequence[Mark]) -> View:
    """Choose what to show of ``curve``: the part around the marks, or all of it."""
    x = _x_limits(curve.step, marks)
    # One column more on each side, so that lines run out of the picture.
    inside = np.flatnonzero((curve.step >= x[0]) & (curve.step <= x[1]))
    if len(inside):
        curve = curve.part(max(int(inside[0]) - 1, 0), int(inside[-1]) + 2, MOST_COLUMNS)
    step, low, high = curve.step, curve.low, curve.high
    expected, sigma = _filled(curve.expected), _filled(curve.sigma)
    band_low, band_high = expected - BAND_SIGMA * sigma, expected + BAND_SIGMA * sigma
    early = step[len(step) // 10] if len(step) else 0.0
    onsets = [mark.step for mark in marks if mark.moment is Moment.ONSET and mark.step >= early]
    onset = min(onsets, default=math.inf)
    logarithmic = _logarithmic(low, high)
    y = _y_limits(step, low, high, band_low, band_high, onset, logarithmic)
    score = _filled(curve.score)
    return View(
        step, low, high, curve.mean, expected, band_low, band_high, score,
        step[curve.lost > 0], x, y, logarithmic, _score_limits(score),
    )  # fmt: skip


def _x_limits(step: Floats, marks: Sequence[Mark]) -> tuple[float, float]:
    if not len(step):
        return 0.0, 1.0
    first, last = float(step.min()), float(step.max())
    inside = [mark.step for mark in marks if first <= mark.step <= last]
    if inside:
        begins = min(inside)
        resolved = [mark.step for mark in marks if mark.moment is Moment.RESOLVED]
        is_open = not resolved or max(resolved) < max(mark.step for mark in marks)
        ends = last if is_open else max(inside)
        span = max(ends - begins, 1e-9 * abs(last))
        left, right = begins - span * (1 / SHARE - 1) / 1.3, ends + 0.3 * span
        left = min(left, float(step[max(len(step) - LEAST_COLUMNS, 0)]), _before(step, begins))
        if right - left < WHOLE_FROM * (last - first):
            first, last = max(first, left), min(last, right)
    room = (last - first) * 0.02 or 1.0
    return first - room, last + room


def _before(step: Floats, begins: float) -> float:
    """The step a few columns before something began: there must be something to compare with."""
    earlier = step[step < begins]
    return float(earlier[max(len(earlier) - LEAST_COLUMNS * 2 // 3, 0)]) if len(earlier) else begins


def _filled(values: Floats) -> Floats:
    """Draw a line through what is known; before it nothing is known."""
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return values
    return np.interp(np.arange(len(values)), known, values[known], left=math.nan)


def _logarithmic(low: Floats, high: Floats) -> bool:
    low, high = low[~np.isnan(low)], high[~np.isnan(high)]
    if not len(low) or low.min() <= 0.0:
        return False
    return bool(high.max() / low.min() > LOG_FROM)


def _y_limits(
    step: Floats, low: Floats, high: Floats, band_low: Floats, band_high: Floats, onset: float,
    logarithmic: bool,
) -> tuple[float, float]:  # fmt: skip
    """Show all losses since the onset and nearly all before: a first steep fall is left aside."""
    known = ~(np.isnan(low) | np.isnan(high))
    if not known.any():
        return 0.0, 1.0
    before = known & (step < onset)
    after = known & ~before
    lows, highs = [low[after], low[before]], [high[after]]
    if before.any():
        highs.append(np.atleast_1d(np.quantile(high[before], 1.0 if logarithmic else 0.93)))
    expected = ~np.isnan(band_high) & known
    if expected.any():
        below = band_low[expected]
        lows.append(below[below > 0.0] if logarithmic else np.atleast_1d(np.median(below)))
        highs.append(np.atleast_1d(np.quantile(band_high[expected], 0.9)))
    bottom, top = float(np.concatenate(lows).min()), float(np.concatenate(highs).max())
    if logarithmic:
        factor = (top / bottom) ** MARGIN if top > bottom > 0.0 else 2.0
        return bottom / factor, top * factor
    room = (top - bottom) * MARGIN or abs(top) * MARGIN or 1.0
    return bottom - room, top + room


def _score_limits(score: Floats) -> tuple[float, float]:
    known = score[np.abs(score) < LARGEST_SCORE]
    low = float(np.quantile(known, 0.02)) if len(known) else 0.0
    high = float(known.max()) if len(known) else 0.0
    low, high = min(low, -1.0), max(high, 1.5)
    room = (high - low) * MARGIN
    return low - room, high + room


class Corner(NamedTuple):
    """A corner of the picture."""

    right: bool
    top: bool


def free_corner(seen: View, marks: Sequence[Mark]) -> Corner:
    """Choose the corner of the loss where there is most room for a word or two."""
    across = (seen.step - seen.x[0]) / (seen.x[1] - seen.x[0])
    bands = ((seen.low, seen.high), (seen.band_low, seen.band_high))
    heights = [(_height(low, seen), _height(high, seen)) for low, high in bands]

    def crowd(corner: Corner) -> float:
        beside = across > 1.0 - NAMED_WIDTH if corner.right else across < NAMED_WIDTH
        taken = 0.0
        for low, high in heights:
            within = high > 1.0 - NAMED_HEIGHT if corner.top else low < NAMED_HEIGHT
            taken += float(np.count_nonzero(beside & within))
        if corner.top:
            # The labels of marks stand at the top, beside their lines.
            near = [(mark.step - seen.x[0]) / (seen.x[1] - seen.x[0]) for mark in marks]
            reach = NAMED_WIDTH + 0.12
            taken += sum(
                len(seen.step) * (at > 1.0 - reach if corner.right else at < reach)
                for at in near
                if 0.0 <= at <= 1.0
            )
        return taken

    corners = [Corner(right, top) for top in (False, True) for right in (False, True)]
    return min(corners, key=crowd)


def _height(values: Floats, seen: View) -> Floats:
    """How high values stand in the picture: 0 at its bottom, 1 at its top."""
    low, high = seen.y
    if seen.logarithmic:
        with np.errstate(divide="ignore", invalid="ignore"):
            values, low, high = np.log(values), math.log(low), math.log(high)
    height: Floats = (values - low) / (high - low)
    return height
