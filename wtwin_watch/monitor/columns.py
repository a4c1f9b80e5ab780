"""The arithmetic of `wtwin_watch.monitor.backfill`: the tests of all blocks in columns."""

# The numbers of the formulas stand in them.
# ruff: noqa: PLR2004

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wtwin_watch.monitor.blocks import FAR, NEAR, RING, YOUNG
from wtwin_watch.monitor.contrast import (
    LONGEST,
    MIN_REFERENCE,
    YOUNG_REFERENCE,
    Window,
    as_line,
)
from wtwin_watch.monitor.evidence import (
    BLOCK,
    LINE_LASTS,
    PROVISIONAL,
    ROUNDING,
    SMALLEST,
    SWIFT,
    WINDOWS,
)
from wtwin_watch.monitor.noise_columns import learn_column
from wtwin_watch.monitor.points import SD_OF_DIFFERENCE, SD_OF_MEAN_ABS
from wtwin_watch.monitor.scales import LEVELS, Level
from wtwin_watch.monitor.smoothing import Floats

Ints = NDArray[np.int64]
Precise = NDArray[np.longdouble]
Lines = tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats]
LOOK = 3
"""A test looks so many levels up; blocks have their full size here."""


@dataclass(frozen=True)
class Events:
    """What some tests look at: prefix sums of blocks, and a row for each place where they are tested.

    ``at``: the block of level 0 with which it came. ``size``, ``near``, ``far``: indices into the sums.
    """

    sums: list[Precise]
    at: Ints
    size: Ints
    young: NDArray[np.bool_]
    coarse: NDArray[np.bool_]
    near: Ints
    far: Ints
    line: Floats
    vb: Floats
    floor: Floats
    credit: Floats
    x0: Floats
    y0: Floats
    half_x: Floats | None
    half_y: Floats | None


class Tests:
    """The tests of `wtwin_watch.monitor.contrast`, of all blocks of a stretch at once."""

    def __init__(
        self, levels: list[Level], xs: Floats, ys: Floats, flatten: float, min_effect: float
    ) -> None:
        self.flatten = flatten
        self.min_effect = min_effect
        self.levels = levels
        self.lines: list[Floats] = []
        self.blocks = len(xs)
        self.held = [level.blocks.pairs() for level in levels]
        self.seen = [level.blocks.count for level in levels]
        self.new: list[tuple[Floats, Floats]] = []
        """The new blocks of each level."""
        self.when: list[Ints] = []
        """During which block of level 0 each of them came."""
        self.waits: list[tuple[Ints, Floats, Floats]] = []
        """Halves that wait for a level's next block: when they came, and what they are."""
        self.left: list[tuple[float, float] | None] = []
        """The half that waits at each level when all is done."""
        when = np.arange(len(xs))
        for level in levels:
            self.new.append((xs, ys))
            self.when.append(when)
            first = 0
            if level.half is not None:
                xs, ys = np.append(level.half[0], xs), np.append(level.half[1], ys)
                first = 1
            even = len(xs) // 2 * 2
            self.left.append(None if len(xs) == even else (float(xs[-1]), float(ys[-1])))
            halves = slice(0, None, 2)
            came = when[first:] if not first else np.append(-1, when)
            kept = came[halves] >= 0
            self.waits.append((came[halves][kept], xs[halves][kept], ys[halves][kept]))
            when = came[1:even:2]
            xs, ys = 0.5 * (xs[1:even:2] + xs[0:even:2]), 0.5 * (ys[1:even:2] + ys[0:even:2])

    def learn(self, levels: list[Level], fast: float, floor: Floats, ad: Floats) -> float:
        """Learn the noise of all levels, block by block; return level 0's fast-moving scale after them.

        ``floor``: the least variance after each block of level 0, ``ad`` the noise of neighbours there.
        """
        self.columns = []
        known: list[Floats] = []
        fasts = np.array([])
        noise: Floats | None = None
        for q, level in enumerate(levels):
            x = np.concatenate((self.held[q][0], self.new[q][0]))
            y = np.concatenate((self.held[q][1], self.new[q][1]))
            self.columns.append((x, y))
            new = len(self.when[q])
            other = None if noise is None else noise[self.when[q]]
            rows, after = learn_column(
                level, q, x, y, new, other, fast, ROUNDING * ad[self.when[q]]
            )
            known.append(rows)
            if noise is None:
                fasts = after[1:]
                noise = np.maximum(rows[1:, 0], fasts)
            if new:
                level.blocks.fill(x[-RING:].tolist(), y[-RING:].tolist())
                level.blocks.count = self.seen[q] + new
                level.latest = (float(x[-1]), float(y[-1]))
        self._know(known, fasts, floor)
        return float(fasts[-1])

    def _know(self, known: list[Floats], fast: Floats, floor: Floats) -> None:
        """Work out long-run variances at each block from what was known of each level's noise."""
        at = np.arange(self.blocks)
        rows = [known[q][np.searchsorted(self.when[q], at, "right")] for q in range(len(known))]
        a, _, _, _, _, _, _ = rows[0].T
        base = np.maximum((SD_OF_MEAN_ABS * np.maximum(a, fast)) ** 2 * BLOCK, floor)
        v = base
        noise = [v]
        growth = np.ones(self.blocks)
        for row in rows[1:]:
            _, c, u, weight, least, _, _ = row.T
            finer, known_here = v, weight > 0.0
            v = v * growth
            v = v + (np.maximum(u * BLOCK, least * base) - v) * weight
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(finer > 0.0, v / finer, 1.0)
            doubt = 2.0 / np.sqrt(np.clip(c, 1.0, 64.0))
            growth = np.where(known_here, np.clip(ratio - doubt, 1.0, 2.0), growth)
            noise.append(v)
        self.noise = np.stack(noise)
        self.counts = np.stack([row[:, 1] for row in rows])
        self.signs = np.stack([row[:, 5:7] for row in rows], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.noise[:4].max(axis=0) / base
        self.factors = np.where(base > 0.0, np.sqrt(np.sqrt(ratio)), 1.0)

    def run(self, ad: Floats, sdf: Floats, recent: Floats, known: int) -> Floats | None:
        """Return the evidence of each block; None where the mid path has no forecast.

        ``recent``: mean difference in each block, with ``known`` earlier ones before.
        """
        self.ad, self.sdf, self.recent, self.known = ad, sdf, recent, known
        self.evidence = np.zeros(self.blocks)
        self.lines = [self._lay_lines(q) for q in range(LEVELS)]
        at = self.when[0]
        count = self.seen[0] + 1 + at
        self.mid = self.lines[0][count // LINE_LASTS - self.seen[0] // LINE_LASTS]
        self._run_tests([self._events(0, at, None)], None)
        above = range(1, LEVELS)
        self._run_tests([self._events(q, self.when[q], None) for q in above], False)
        self._run_tests([self._events(q, *self.waits[q - 1]) for q in above], True)
        return None if np.isnan(self.mid[:, 0]).any() else self.evidence

    def keep_lines(self, levels: list[Level]) -> None:
        """Let each level know its line at the end."""
        for level, lines in zip(levels, self.lines, strict=True):
            last = lines[-1].tolist()
            level.line = None if math.isnan(last[0]) else as_line(last)

    def _lay_lines(self, q: int) -> Floats:
        """Lay a level's lines through its past anew; the first row is the line from before."""
        line = self.levels[q].line
        first = np.full((1, 8), math.nan) if line is None else np.array([line])
        seen, new = self.seen[q], np.arange(1, len(self.when[q]) + 1)
        new = new[(seen + new) % LINE_LASTS == 0]
        if not len(new):
            return first
        lines = np.full((len(new), 8), math.nan)
        events = self._events(q, self.when[q][new - 1], None)
        if events is not None:
            usual = np.maximum(events.vb, events.floor)
            chosen, found = self._fit(events, ~events.young, events.size - LONGEST, usual)
            rows = np.searchsorted(self.when[q][new - 1], events.at[chosen])
            lines[rows] = np.column_stack(found)
        return np.concatenate((first, lines))

    def mid_forecast(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the mid path's forecast at ``x``, and its reach."""
        return self._forecast(self.mid.T, x)

    def _forecast(self, line: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return what lines, given as columns, forecast at ``x``, and their reach."""
        slope, anchor, y, edge, middle, _, _, _ = line
        kappa = np.minimum(1.0, self.flatten * (x - middle))
        reach = (edge - anchor) + (1.0 - kappa) * (x - edge)
        return y + slope * reach, reach

    def _variance(self, q: int, at: Ints, count: Ints) -> Floats:
        """Long-run variance of a point, with allowance for not knowing it well; 0 where it's too young."""
        noise = self.noise[q : q + LOOK + 1, at]
        v = noise[0]
        worst = noise.max(axis=0)
        c = self.counts[q, at]
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = worst * np.sqrt(worst / v) * (1.0 + 4.0 / np.clip(c, 1, 64))
        variance = np.where(v > 0.0, variance, 0.0)
        young = (count < PROVISIONAL) & (self.counts[min(q + LOOK - 1, LEVELS - 1), at] == 0)
        if young.any():
            which = np.flatnonzero(young)
            at, v, c = at[which], v[which], c[which]
            signs = self.signs[at, q + 1 : q + LOOK]
            ratio, known = signs[:, :, 0], signs[:, :, 1]
            u = self.noise[0, at][:, None] * ratio**2 * (1.0 + 2.0 / np.clip(known, 1, 32))
            factor = np.minimum(
                4.0, 1.5 * np.maximum(u.max(axis=1, initial=0.0), v) / np.where(v > 0.0, v, 1.0)
            )
            factor = np.where((known < 2).any(axis=1), 4.0, factor)
            variance[which] *= np.where(c < 16, 0.0, factor)
        return variance

    def _events(
        self, q: int, at: Ints, half_x: Floats | None, half_y: Floats | None = None
    ) -> Events | None:
        """Put together what the tests of level ``q`` at the blocks ``at`` look at; None where there are none.

        ``half_x``, ``half_y``: the half blocks that wait there.
        """
        if not len(at):
            return None
        x, y = self.columns[q]
        came = np.searchsorted(self.when[q], at, "right")
        size = len(self.held[q][0]) + came
        count = self.seen[q] + came
        variance = self._variance(q, at, count)
        use = (size >= SMALLEST) & (variance > 0.0)
        if not use.any():
            return None
        at, size, count, variance = at[use], size[use], count[use], variance[use]
        line = np.full((len(at), 8), math.nan)
        if len(self.lines) > q:
            line = self.lines[q][count // LINE_LASTS - self.seen[q] // LINE_LASTS]
        dx, dy = x - x[-1], y - y[-1]
        last = x[size - 1]
        oldest = np.maximum(size - RING, 0)
        points = BLOCK << q
        usual = (
            SD_OF_DIFFERENCE / 1.1 * (np.maximum(self.sdf[at], self.ad[at]) if q else self.ad[at])
        )
        return Events(
            sums=[precise_sums(v) for v in (dx, dy, dx * dx, dx * dy)],
            at=at,
            size=size,
            young=count <= YOUNG,
            coarse=np.full(len(at), q >= SWIFT),
            near=np.maximum(np.searchsorted(x, last - NEAR, "left"), oldest),
            far=np.maximum(np.searchsorted(x, last - FAR, "left"), oldest),
            line=line,
            vb=variance / points,
            floor=usual * usual / points,
            credit=np.full(len(at), q * math.log(2.0)),
            x0=np.full(len(at), x[-1]),
            y0=np.full(len(at), y[-1]),
            half_x=None if half_x is None else half_x[use],
            half_y=None if half_y is None else half_y[use],
        )

    def _run_tests(self, found: list[Events | None], half: bool | None) -> None:
        """Run the tests of some levels: level 0 (``half`` None), or those above, with or without halves."""
        events = join([event for event in found if event is not None])
        if events is None:
            return
        usual = np.maximum(events.vb, events.floor)
        sx, sy, _, _ = events.sums
        x, y = events.half_x, events.half_y
        if x is None or y is None:
            x = events.x0 + (sx[events.size] - sx[events.size - 1]).astype(np.float64)
            y = events.y0 + (sy[events.size] - sy[events.size - 1]).astype(np.float64)
        known = ~np.isnan(events.line[:, 0])
        above = known & ((y > self._forecast(events.line.T, x)[0]) | events.coarse)
        grown = np.flatnonzero(~events.young & above)
        for window in WINDOWS[0][0] if half is None else WINDOWS[1][half]:
            m = window.m
            lines = [(grown, events.line[grown].T)]
            if events.young.any():
                own, fitted = self._fit(events, events.young, events.size - m, usual)
                lines.append((own, np.array(fitted)))
            noise = usual
            if half is None:
                noise = self._recent_noise(m, events.at, events.vb, events.floor)
            for chosen, line in lines:
                if len(chosen):
                    evidence = self._contrast(events, chosen, line, window, noise[chosen])
                    evidence += np.where(evidence > 0.0, math.log(m) + events.credit[chosen], 0.0)
                    np.maximum.at(self.evidence, events.at[chosen], evidence)

    def _recent_noise(self, m: int, at: Ints, vb: Floats, floor: Floats) -> Floats:
        total = np.concatenate(((0.0,), np.cumsum(self.recent)))
        end = self.known + at + 1
        ratio = (total[end] - total[end - m]) / m / self.ad[at]
        raised = np.where(ratio > 1.1, vb * (ratio / 1.1) ** 2, vb)
        noise: Floats = np.maximum(raised, floor * np.maximum(ratio, 1.0) ** 2)
        return noise

    def _fit(
        self, events: Events, which: NDArray[np.bool_], b: Ints, noise: Floats
    ) -> tuple[Ints, Lines]:
        """Lay lines through the blocks before ``b``, as `contrast.fit` does; return where, and the lines."""
        sx, sy, sxx, sxy = events.sums
        young = np.minimum(events.near, np.maximum(events.far, b - YOUNG_REFERENCE))
        a = np.where(events.young, young, events.near)
        chosen = np.flatnonzero(which & (b - a >= MIN_REFERENCE))
        a, b, noise = a[chosen], b[chosen], noise[chosen]
        r = b - a
        c = a + (r >> 1)
        n1, n2 = c - a, b - c
        parts = [
            (later - earlier).astype(np.float64)
            for sums in (sx, sy, sxx, sxy)
            for earlier, later in ((sums[a], sums[c]), (sums[c], sums[b]))
        ]
        x1, x2, y1, y2, q1, q2, p1, p2 = parts
        xm, ym = (x1 + x2) / r, (y1 + y2) / r
        with np.errstate(divide="ignore", invalid="ignore"):
            s1 = q1 - x1 * x1 / n1
            s2 = q2 - x2 * x2 / n2
            ss = q1 + q2 - (x1 + x2) * xm
            slope = (p1 + p2 - (y1 + y2) * xm) / ss
            first = (p1 - x1 * y1 / n1) / s1
            second = (p2 - x2 * y2 / n2) / s2
            extra = np.maximum(first, second) - slope - 0.5 * np.sqrt(noise / np.minimum(s1, s2))
            later = (extra > 0.0) | (slope > 0.0)
            slope = np.minimum(0.0, slope + np.maximum(0.0, extra))
        x0, y0 = events.x0[chosen], events.y0[chosen]
        xa, ya = np.where(later, x2 / n2, xm) + x0, np.where(later, y2 / n2, ym) + y0
        edge = x0 + 0.5 * (sx[b + 1] - sx[b - 1]).astype(np.float64)
        ss = np.where((s1 > 0.0) & (s2 > 0.0) & (ss > 0.0), ss, math.nan)
        return chosen, (
            slope,
            xa,
            ya,
            edge,
            xm + x0,
            np.where(later, n2, r).astype(np.float64),
            ss,
            noise,
        )

    def _contrast(
        self, events: Events, chosen: Ints, line: Floats, window: Window, vb: Floats
    ) -> Floats:
        """Compare windows with the lines before; return their evidence without its credit, 0 for none."""
        sx, sy, _, _ = events.sums
        size = events.size[chosen]
        m, half_weight, weight, w2, _ = window
        x_sum, y_sum = m * sx[size], m * sy[size]
        for back in range(1, m + 1):
            x_sum -= sx[size - back]
            y_sum -= sy[size - back]
        x0, y0 = events.x0[chosen], events.y0[chosen]
        xr, yr = x_sum.astype(np.float64), y_sum.astype(np.float64)
        if events.half_x is not None and events.half_y is not None:
            xr += half_weight * (events.half_x[chosen] - x0)
            yr += half_weight * (events.half_y[chosen] - y0)
        f, reach = self._forecast(line, x0 + xr / weight)
        excess = y0 + yr / weight - f - self.min_effect * np.abs(f)
        n, sxx = line[5:7]
        with np.errstate(divide="ignore", invalid="ignore"):
            evidence = 0.5 * excess**2 / (vb * (w2 + 1.0 / n + reach * reach / sxx))
            return np.where((excess > 0.0) & (evidence > 0.0), evidence, 0.0)


def precise_sums(values: Floats) -> Precise:
    """Return prefix sums, 0 first, that keep small differences over a long stretch."""
    sums = np.zeros(len(values) + 1, dtype=np.longdouble)
    np.cumsum(values, dtype=np.longdouble, out=sums[1:])
    return sums


def join(found: list[Events]) -> Events | None:
    """Lay the events of several levels side by side."""
    if len(found) < 2:
        return found[0] if found else None
    starts = np.cumsum([0] + [len(event.sums[0]) for event in found[:-1]])
    parts: dict[str, Any] = {
        "sums": [np.concatenate(s) for s in zip(*(e.sums for e in found), strict=True)]
    }
    for name in ("at", "young", "coarse", "line", "vb", "floor", "credit", "x0", "y0"):
        parts[name] = np.concatenate([getattr(event, name) for event in found])
    for name in ("size", "near", "far"):
        columns = [getattr(event, name) + start for event, start in zip(found, starts, strict=True)]
        parts[name] = np.concatenate(columns)
    for name in ("half_x", "half_y"):
        columns = [getattr(event, name) for event in found]
        parts[name] = None if columns[0] is None else np.concatenate(columns)
    return Events(**parts)
