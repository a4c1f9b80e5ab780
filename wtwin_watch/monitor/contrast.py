"""One test: do the latest blocks of a scale lie above what the blocks before them forecast?"""

# The numbers of the formulas stand in them.

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from wtwin_watch.monitor.blocks import RING, YOUNG, Blocks

MIN_REFERENCE = 10
YOUNG_REFERENCE = 20


class Forecast(NamedTuple):
    """A frozen forecast: level ``y`` at ``x``, a slope that dies out as the clock moves on.

    ``flatten``: kappa, the share of the slope no longer believed in, grows by so much a unit of x
    beyond ``middle``; at ``edge`` the future begins.
    """

    x: float
    y: float
    slope: float
    edge: float
    middle: float
    flatten: float

    def reach(self, x: float) -> float:
        """Return how far in x the slope is followed from the anchor to forecast at ``x``."""
        kappa = min(1.0, self.flatten * (x - self.middle))
        return (self.edge - self.x) + (1.0 - kappa) * (x - self.edge)

    def at(self, x: float) -> float:
        """Forecast the loss at ``x``."""
        return self.y + self.slope * self.reach(x)


class Window(NamedTuple):
    """The latest m blocks, as a test sees them: weights 1…m, then a pending half block if there is one."""

    m: int
    half_weight: float
    weight: float
    variance: float
    """Of the weighted mean, in block variances."""
    credit: float
    """ln(m 2^q): what a test of this length is granted for being one of few."""


def windows(lengths: tuple[int, ...], q: int) -> tuple[list[Window], list[Window]]:
    """Return the windows of scale ``q``, without and with a half block."""
    plain, halved = [], []
    for m in lengths:
        w, w2 = m * (m + 1) / 2, m * (m + 1) * (2 * m + 1) / 6
        half = 0.5 * (m + 1.5)
        credit = math.log(m * 2.0**q)
        plain.append(Window(m, 0.0, w, w2 / w**2, credit))
        # A half block has twice the variance of a block.
        halved.append(Window(m, half, w + half, (w2 + 2 * half**2) / (w + half) ** 2, credit))
    return plain, halved


Contrast = tuple[float, float, float, float, float, float, int, float, float]
"""What a test found: z, then x, y, slope, edge and middle of its `Forecast`, blocks behind the anchor,
Sxx, and the excess.

``z`` is how far the window lies above its forecast, in its own sigma. A bare tuple: there are eleven
tests for eight points.
"""
Tested = tuple[float, tuple[Window, Contrast] | None, Contrast | None]


def compare(  # noqa: PLR0912, PLR0915 - eleven times for eight points: no calls in here
    blocks: Blocks,
    tests: list[Window],
    half: tuple[float, float] | None,
    noises: Sequence[float],
    flatten: float,
    min_effect: float,
    best: float,
    wanted: int,
) -> Tested:
    """Test the latest blocks against the lines through those before them, over several windows.

    ``noises``: variance of a block, for each window. ``best``: evidence there is already. Returns the best
    evidence, the window and test that gave it (None: nothing better), and the test over ``wanted`` blocks.

    A slope is believed in only where both halves of the reference agree, and never upwards, so a curve
    that flattens isn't taken for one that rises. There is no test where the reference has too few blocks, or
    x doesn't move in it.
    """
    found: tuple[Window, Contrast] | None = None
    kept: Contrast | None = None
    size = blocks.size
    sx, sy, sxx, sxy = blocks.sx, blocks.sy, blocks.sxx, blocks.sxy
    x0, y0 = blocks.x0, blocks.y0
    oldest = size - RING if size > RING else 0
    near = blocks.near
    young = blocks.count <= YOUNG
    first = near if near > oldest else oldest
    xa0, ya0, xxa, xya = sx[first], sy[first], sxx[first], sxy[first]
    x_end = sx[size]
    y_end = sy[size]
    # The tests begin with the longest window; one shorter than that has no block to lack.
    start = size - tests[0].m
    start = max(start, 0)
    tail = sx[start:size]
    tail.reverse()
    sums_x = list(accumulate(tail))
    tail = sy[start:size]
    tail.reverse()
    sums_y = list(accumulate(tail))
    for window, vb in zip(tests, noises, strict=True):
        m, half_weight, weight, w2, credit = window
        b = size - m
        a = first
        if young:
            back = b - YOUNG_REFERENCE
            back = max(back, blocks.far)
            a = oldest if back < oldest else back
            a = min(a, first)
            xa0, ya0, xxa, xya = sx[a], sy[a], sxx[a], sxy[a]
        r = b - a
        if r < MIN_REFERENCE:
            continue
        xb = sx[b]
        yb = sy[b]
        yr = m * y_end - sums_y[m - 1]
        xr = m * x_end - sums_x[m - 1]
        if half is not None:
            xr += half_weight * (half[0] - x0)
            yr += half_weight * (half[1] - y0)
        xr /= weight
        yr /= weight
        xs = xb - xa0
        ys = yb - ya0
        xm = xs / r
        ym = ys / r
        ss = sxx[b] - xxa - xs * xm
        if ss <= 0.0:
            continue
        slope = (sxy[b] - xya - ys * xm) / ss
        c = a + (r >> 1)
        n2 = b - c
        xc = sx[c]
        yc = sy[c]
        x2 = xb - xc
        y2 = yb - yc
        xm2 = x2 / n2
        ym2 = y2 / n2
        edge = 0.5 * (sx[b + 1] - sx[b - 1])
        kappa = flatten * (xr - xm)
        follow = (1.0 - kappa) * (xr - edge) if kappa < 1.0 else 0.0
        # No forecast lies below the lower of these two. Most tests end here: they can't add anything.
        down = slope if slope < 0.0 else 0.0
        low = ym + down * (edge - xm + follow)
        other = ym2 + down * (edge - xm2 + follow)
        low = min(low, other)
        if m != wanted:
            most = yr - low
            if most <= 0.0:
                continue
            need = best - credit
            if need > 0.0 and most * most <= 2.0 * need * vb * w2:
                continue
        x1 = xc - xa0
        y1 = yc - ya0
        n1 = c - a
        xxc = sxx[c]
        xyc = sxy[c]
        s1 = xxc - xxa - x1 * x1 / n1
        s2 = sxx[b] - xxc - x2 * xm2
        if s1 <= 0.0 or s2 <= 0.0:
            continue
        steepest = (xyc - xya - x1 * y1 / n1) / s1
        second = (sxy[b] - xyc - y2 * xm2) / s2
        steepest = max(steepest, second)
        extra = steepest - slope - 0.5 * math.sqrt(vb / (s1 if s1 < s2 else s2))
        if extra > 0.0 or slope > 0.0:
            xa, ya, na = xm2, ym2, n2
            if extra > 0.0:
                slope += extra
            slope = min(slope, 0.0)
        else:
            xa, ya, na = xm, ym, r
        reach = edge - xa + follow
        f = ya + slope * reach
        level = f + y0
        excess = yr - f - min_effect * (level if level >= 0.0 else -level)
        variance = vb * (w2 + 1.0 / na + reach * reach / ss)
        if not variance > 0.0:
            continue
        z = excess / math.sqrt(variance)
        if m == wanted:
            kept = (z, xa + x0, ya + y0, slope, edge + x0, xm + x0, na, ss, excess)
        if z > 0.0:
            evidence = 0.5 * z * z + credit
            if evidence > best:
                best = evidence
                found = window, (z, xa + x0, ya + y0, slope, edge + x0, xm + x0, na, ss, excess)
    return best, found, kept
