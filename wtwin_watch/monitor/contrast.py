"""One test: do the latest blocks of a scale lie above what the blocks before them forecast?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from wtwin_watch.monitor.blocks import RING, YOUNG, Blocks

MIN_REFERENCE = 10
YOUNG_REFERENCE = 20
LONGEST = 12
"""Blocks of the longest window; the reference of all windows ends before it, once a scale is grown."""


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

``z`` is how far the window lies above its forecast, in its own sigma. A bare tuple: there are seven tests
for eight points.
"""
Line = tuple[float, float, float, float, float, int, float]
"""A line through some blocks: slope, anchor x and y, edge, middle, blocks behind the anchor, Sxx."""
Tested = tuple[float, tuple[Window, Contrast] | None, Contrast | None]


def fit(blocks: Blocks, a: int, b: int, variance: float) -> Line | None:
    """Lay a line through the blocks ``a`` to ``b`` - 1 that flattens where its halves disagree, or None.

    ``variance``: of a block. A slope is believed in only where both halves agree, and never upwards, so a
    curve that flattens isn't taken for one that rises. None where x doesn't move.
    """
    sx, sy, sxx, sxy = blocks.sx, blocks.sy, blocks.sxx, blocks.sxy
    r = b - a
    c = a + (r >> 1)
    n2 = b - c
    xa, xc, xb = sx[a], sx[c], sx[b]
    ya, yc, yb = sy[a], sy[c], sy[b]
    qa, qc, qb = sxx[a], sxx[c], sxx[b]
    pa, pc, pb = sxy[a], sxy[c], sxy[b]
    xs = xb - xa
    ys = yb - ya
    xm = xs / r
    ss = qb - qa - xs * xm
    x1 = xc - xa
    x2 = xb - xc
    xm1 = x1 / (c - a)
    xm2 = x2 / n2
    s1 = qc - qa - x1 * xm1
    s2 = qb - qc - x2 * xm2
    if s1 <= 0.0 or s2 <= 0.0 or ss <= 0.0:
        return None
    slope = (pb - pa - ys * xm) / ss
    first = (pc - pa - (yc - ya) * xm1) / s1
    second = (pb - pc - (yb - yc) * xm2) / s2
    edge = 0.5 * (sx[b + 1] - sx[b - 1])
    first = max(first, second)
    extra = first - slope - 0.5 * math.sqrt(variance / (s1 if s1 < s2 else s2))
    if extra > 0.0:
        slope += extra
    elif slope <= 0.0:
        return slope, xm, ys / r, edge, xm, r, ss
    return min(slope, 0.0), xm2, (yb - yc) / n2, edge, xm, n2, ss


def compare(  # noqa: PLR0912, PLR0915 - seven times for eight points: no calls in here
    blocks: Blocks,
    tests: list[Window],
    half: tuple[float, float] | None,
    noises: Sequence[float],
    flatten: float,
    min_effect: float,
    best: float,
    wanted: int,
    early: bool,
) -> Tested:
    """Test the latest blocks against the line through those before them, over several windows.

    ``tests``: the longest first. ``noises``: variance of a block, for each window, and for the line.
    ``best``: evidence there is already. Returns the best evidence, the window and test that gave it (None:
    nothing better), and the test over ``wanted`` blocks.

    ``early``, or where a scale is young, each window has a line of its own that ends before it; later one
    does for all. There is no test where the reference has too few blocks.
    """
    found: tuple[Window, Contrast] | None = None
    kept: Contrast | None = None
    size = blocks.size
    x0, y0 = blocks.x0, blocks.y0
    start = max(blocks.near, size - RING)
    young = blocks.count <= YOUNG
    own = early or young
    line: Line | None = None
    if not own:
        b = size - LONGEST
        if b - start >= MIN_REFERENCE:
            line = fit(blocks, start, b, noises[-1])
        if line is None:
            return best, None, None
    sx, sy = blocks.sx, blocks.sy
    x_end = sx[-1]
    y_end = sy[-1]
    for window, vb in zip(tests, noises, strict=False):
        m, half_weight, weight, w2, credit = window
        if own:
            b = size - m
            a = min(start, max(b - YOUNG_REFERENCE, blocks.far, 0)) if young else start
            if b - a < MIN_REFERENCE:
                continue
            line = fit(blocks, a, b, vb)
        if line is None:
            continue
        slope, xa, ya, edge, xm, na, ss = line
        xr = m * x_end - sum(sx[-m - 1 : -1])
        yr = m * y_end - sum(sy[-m - 1 : -1])
        if half is not None:
            xr += half_weight * (half[0] - x0)
            yr += half_weight * (half[1] - y0)
        xr /= weight
        yr /= weight
        reach = edge - xa
        follow = 1.0 - flatten * (xr - xm)
        if follow > 0.0:
            reach += follow * (xr - edge)
        f = ya + slope * reach
        level = f + y0
        excess = yr - f - min_effect * (level if level >= 0.0 else -level)
        if excess <= 0.0 and m != wanted:
            continue
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
