"""The clock of a loss curve: where a point stands in x, and what its step says of the run's course.

Without a learning rate x = ln(step + stride); with one x = ln(sum of lr · steps). Losses fall about
evenly in such an x, so a line forecasts them. A run keeps the clock it began with.
"""

# The numbers of the formulas stand in them.

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from statistics import median
from typing import Any

from wtwin_watch.monitor.packing import pack, unpack

GAP = 20.0
"""A step further than so many of the latest strides is a gap."""
GAP_REST = 64
"""Gaps that come sooner than after so many points are the log's habit, and don't count."""
RISE = 1.3
"""A learning rate above so many times its lowest since the last rise is a restart."""
SETTLED = 8
"""A rise is over when the learning rate hasn't risen for so many points."""
ZERO_PATIENCE = 64
"""So many points may begin with a learning rate of 0; a longer row says that it isn't one."""
ANCHORS = 64
STRIDES = 10
"""The usual stride is the median of so many first ones."""
TINY = 1e-300
"""The least that a logarithm is taken of."""
NARROW = 0.02
"""The log of a mean is the mean of logs, to 2e-5, where the values differ by no more than this share."""
LARGEST_LR = 1e6
"""A larger one is a mistake of the log, and passed over."""


class Course(Enum):
    """What a point's step and learning rate say of the run."""

    ON = "on"
    GAP = "gap"
    BACK = "back"
    SKIP = "skip"
    """The learning rate is still 0: nothing is learned, and x stands still."""


class Pace:
    """Follows steps and learning rates. The points of a block wait here for its end, to get their mean x."""

    __slots__ = (
        "anchors",
        "by_lr",
        "calm_stride",
        "diffs",
        "first_lr",
        "gap_at",
        "holding",
        "last",
        "last_diff",
        "limit",
        "lowest",
        "lr",
        "origin",
        "points",
        "settled",
        "stride",
        "strides",
        "total",
        "waiting",
        "warm",
        "zeros",
    )  # fmt: skip

    def __init__(self) -> None:
        self.points = 0
        """How many points there were, as whoever calls `advance` counts them."""
        self.last = math.nan
        """The latest step."""
        self.origin = 0.0
        self.diffs: list[float] = []
        """The first ten differences of steps; their median is ``stride``."""
        self.stride = 1.0
        self.strides: list[float] = []
        """The latest four differences."""
        self.last_diff = 0.0
        self.limit = math.inf
        self.calm_stride = math.nan
        """``last_diff`` where nothing but steps is to be followed, else NaN."""
        self.gap_at = -GAP_REST
        self.waiting: list[float] = []
        self.by_lr = False
        self.first_lr = 0.0
        self.lr = 0.0
        self.total = 0.0
        """Sum of lr · steps."""
        self.zeros = 0
        self.warm = False
        """The learning rate has stopped rising since the run's beginning."""
        self.lowest = math.inf
        self.holding = False
        """The learning rate rises again, after it had fallen."""
        self.settled = 0
        self.anchors: list[tuple[float, float]] = []
        """Some steps and their ``total``, to go back to."""

    def advance(self, step: float, lr: float | None) -> Course:
        """Follow the run to ``step``; say whether it went on."""
        if not self.begun:
            return self._begin(step, lr)
        diff = step - self.last
        if diff < 0.0 and not (self.by_lr and not self.first_lr):
            return Course.BACK
        self.last = step
        course = Course.ON
        if diff != self.last_diff:
            course = self._stride(diff)
        if len(self.diffs) < STRIDES and diff > 0.0:
            self.diffs.append(diff)
            self.stride = median(self.diffs)
        elif not self.by_lr:
            self.calm_stride = diff
        if self.by_lr and not self._follow(diff, lr):
            return Course.SKIP
        self.waiting.append(self.total if self.by_lr else step - self.origin)
        return course

    @property
    def begun(self) -> bool:
        """Whether there was any point."""
        return not math.isnan(self.last)

    def _begin(self, step: float, lr: float | None) -> Course:
        self.last = step
        self.origin = min(0.0, step)
        self.by_lr = lr is not None and 0.0 <= lr <= LARGEST_LR
        if self.by_lr and not self._follow(max(step, 0.0), lr):
            return Course.SKIP
        self.waiting.append(self.total if self.by_lr else step - self.origin)
        return Course.ON

    def _stride(self, diff: float) -> Course:
        """Learn another stride; say whether it was a gap."""
        gap = diff > self.limit and self.points - self.gap_at >= GAP_REST
        self.last_diff = diff
        self.strides.append(diff)
        del self.strides[:-4]
        longest = max(self.strides)
        self.limit = GAP * longest if longest > 0.0 else math.inf
        if gap:
            self.gap_at = self.points
        return Course.GAP if gap else Course.ON

    def _follow(self, diff: float, lr: float | None) -> bool:
        """Sum the learning rate up; False while it is still 0 since the beginning."""
        previous = self.lr
        if lr is not None and 0.0 <= lr <= LARGEST_LR:
            self.lr = lr
        else:
            lr = previous
        if not self.first_lr:
            if not lr:
                self.zeros += 1
                if self.zeros > ZERO_PATIENCE:
                    self.by_lr = False
                    return True
                return False
            self.first_lr = lr
        self.total += lr * diff
        self._watch_rises(lr, previous)
        return True

    def _watch_rises(self, lr: float, previous: float) -> None:
        if not self.warm:
            if lr > previous:
                return
            self.warm = True
            self.lowest = lr
        if lr < self.lowest:
            self.lowest = lr
        elif lr > RISE * self.lowest and lr > previous:
            self.holding = True
            self.settled = 0
        elif self.holding:
            self.settled += 1

    @property
    def risen(self) -> bool:
        """Whether a rise of the learning rate is over; `resume` takes note of it."""
        return self.holding and self.settled >= SETTLED

    def resume(self) -> None:
        """Take the present learning rate as the one to rise from."""
        self.holding = False
        self.settled = 0
        self.lowest = self.lr

    def state(self) -> dict[str, Any]:
        """Return all of it as a JSON-able dict."""
        lists = {name: pack(getattr(self, name)) for name in LISTS}
        numbers = pack([float(getattr(self, name)) for name in NUMBERS])
        return {
            "numbers": numbers,
            "anchors": pack([n for pair in self.anchors for n in pair]),
            **lists,
        }

    @classmethod
    def revive(cls, state: Mapping[str, Any]) -> Pace:
        """Make the pace that `state` describes."""
        pace = cls()
        for name, number in zip(NUMBERS, unpack(state["numbers"]), strict=True):
            setattr(pace, name, type(getattr(pace, name))(number))
        for name in LISTS:
            setattr(pace, name, unpack(state[name]))
        anchors = unpack(state["anchors"])
        pace.anchors = list(zip(anchors[::2], anchors[1::2], strict=True))
        return pace

    def _anchor(self) -> None:
        self.anchors.append((self.last, self.total))
        if len(self.anchors) > ANCHORS:
            del self.anchors[-2:0:-2]

    @property
    def offset(self) -> float:
        """What is added to step or sum before the logarithm: one stride."""
        return max(self.stride * self.first_lr if self.by_lr else self.stride, TINY)

    @property
    def can_glide(self) -> bool:
        """Whether `glide` may do for a next point."""
        return self.by_lr and self.warm and not self.holding and len(self.diffs) >= STRIDES

    def glide(self, step: float, lr: float) -> bool:
        """Follow a run with a learning rate that goes on as before, its rate not rising; else do nothing."""
        diff = step - self.last
        if diff != self.last_diff or not 0.0 < lr <= self.lr:
            return False
        self.last = step
        self.lr = lr
        self.lowest = min(self.lowest, lr)
        self.total += lr * diff
        self.waiting.append(self.total)
        return True

    def catch_up(self, step: float, points: int) -> None:
        """Stand at ``step``, after ``points`` that went on at the usual stride."""
        self.last = step
        value = step - self.origin
        self.waiting.extend(value - back * self.last_diff for back in range(points - 1, -1, -1))

    def block_x(self, step: float, points: int) -> tuple[float, float]:
        """Return the mean x of the last ``points``, and that of the latest one at ``step``; none waits then.

        Those that don't wait here went on at the usual stride.
        """
        waiting = self.waiting
        if not waiting:
            self.last = step
            latest = step - self.origin + self.offset
            spread = (points - 1) * self.last_diff
            if spread > NARROW * latest:
                self.catch_up(step, points)
        elif len(waiting) < points:
            self.catch_up(step, points - len(waiting))
        if waiting:
            if self.by_lr:
                self._anchor()
            offset = self.offset
            latest = waiting[-1] + offset
            spread = waiting[-1] - waiting[0]
            if spread > NARROW * latest:
                xs = [math.log(value + offset) for value in waiting]
                waiting.clear()
                return sum(xs) / points, xs[-1]
            mean = sum(waiting) / points + offset
            waiting.clear()
            return math.log(mean), math.log(latest)
        return math.log(latest - 0.5 * spread), math.log(latest)

    def x(self) -> float:
        """Return the latest point's x."""
        value = self.total if self.by_lr else self.last - self.origin
        return math.log(max(value, 0.0) + self.offset)

    def back(self, points: int) -> tuple[float, float]:
        """Return x and step of about so many points ago."""
        far = points * self.last_diff
        step = self.last - far
        value = self.total - far * self.lr if self.by_lr else step - self.origin
        return math.log(max(value, 0.0) + self.offset), step

    def step_at(self, x: float) -> float:
        """Return the step that ``x`` stands for, at most the latest."""
        value = math.exp(min(x, 700.0)) - self.offset
        if self.by_lr:
            value = interpolate(value, [(total, step) for step, total in self._course()])
        else:
            value += self.origin
        return min(value, self.last)

    def _course(self) -> list[tuple[float, float]]:
        return [*self.anchors, (self.last, self.total)]

    def go_back(self, step: float) -> None:
        """Stand at an earlier step."""
        if self.by_lr:
            self.total = max(interpolate(step, self._course()), 0.0)
            self.anchors = [anchor for anchor in self.anchors if anchor[0] <= step]
            self.waiting = [self.total]
        else:
            self.origin = min(self.origin, step)
            self.waiting = [step - self.origin]
        self.last = step


LISTS = ("diffs", "strides", "waiting")
NUMBERS = (
    "points", "last", "origin", "stride", "last_diff", "limit", "calm_stride", "gap_at", "by_lr", "first_lr",
    "lr", "total", "zeros", "warm", "lowest", "holding", "settled",
)  # fmt: skip


def interpolate(x: float, points: list[tuple[float, float]]) -> float:
    """Read a piecewise linear curve at ``x``; before its first point it comes from the origin."""
    before = (0.0, 0.0)
    for point in points:
        if point[0] >= x:
            width = point[0] - before[0]
            share = (x - before[0]) / width if width > 0.0 else 1.0
            return before[1] + share * (point[1] - before[1])
        before = point
    return before[1]
