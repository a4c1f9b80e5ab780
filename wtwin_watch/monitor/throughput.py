"""A throughput that has dropped for good, judged against its own past."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from statistics import median
from typing import Any

from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.rules import Turn

BLOCK = 24
SLOW = 3
"""So many blocks in a row, all of them slow, are an alert."""
ENOUGH = 10
"""So many blocks before must show what is usual."""
MEMORY = 96
DROP = 0.75
"""A slow block is below this share of the usual level …"""
NEW_LOW = 0.9
"""… and below this share of the slowest block before."""
BACK = 0.9
BACK_BLOCKS = 2
ACCEPT = 48
"""After so many blocks of an alert their level is taken as the usual one."""


class ThroughputRule:
    """Alerts when throughput stays a quarter below its usual level, and below all that was usual.

    Points are taken in blocks of 24, of which the median counts, so a checkpoint or an evaluation now and
    then is no drop. A block is slow below 0.75 of the median of the up to 96 blocks before and below 0.9
    of the slowest of them. Three slow ones in a row (72 points) begin an alert; two above 0.9 of the usual
    level end it, or 48 blocks, whose level then is the usual one. It takes 10 blocks (240 points) to know
    what is usual. A point costs a comparison, a block a sort of 96 numbers.

    False alarms, simulated: none in 400,000 points with noise of 10 % or lognormal of 50 %, dips of up to
    12 points, or slow waves of 20 %; 4 in 100,000 points where the throughput itself wanders by 20 % over
    some 100 points. A drop to a half is seen after 72 to 96 points under all of these but the last.
    """

    __slots__ = (
        "_back", "_begins", "_blocks", "_lasted", "_points", "_slow", "active", "last_healthy", "level",
        "now", "onset",
    )  # fmt: skip

    def __init__(self) -> None:
        self._blocks = array("d")
        self._points: list[float] = []
        self._slow: list[float] = []
        """The slow blocks in a row, not yet part of what is usual."""
        self._begins = 0.0
        """Step of the first point of the present block."""
        self._back = 0
        self._lasted = 0
        self.active = False
        self.level = math.nan
        """The usual throughput, as it was before the drop while an alert lasts."""
        self.now = math.nan
        """Throughput in the latest blocks."""
        self.onset: float | None = None
        self.last_healthy: float | None = None

    def update(self, step: float, value: float) -> Turn | None:
        """Take one point; say whether an alert began or ended with it. What is no number is passed over."""
        if not 0.0 <= value < math.inf:
            return None
        if not self._points:
            self._begins = step
        self._points.append(value)
        if len(self._points) < BLOCK:
            return None
        block = median(self._points)
        self._points.clear()
        return self._follow(block) if self.active else self._watch(block, step)

    def _watch(self, block: float, step: float) -> Turn | None:
        blocks = self._blocks
        if len(blocks) >= ENOUGH:
            self.level = median(blocks)
            if block < DROP * self.level and block < NEW_LOW * min(blocks):
                if not self._slow:
                    self.onset = self._begins
                self._slow.append(block)
                if len(self._slow) < SLOW:
                    return None
                self.now = median(self._slow)
                self.active, self._back, self._lasted = True, 0, 0
                return Turn.BEGAN
        blocks.extend([*self._slow, block])
        self._slow.clear()
        del blocks[:-MEMORY]
        self.last_healthy = step
        return None

    def _follow(self, block: float) -> Turn | None:
        self._slow.append(block)
        self._lasted += 1
        self.now = median(self._slow[-BACK_BLOCKS:])
        self._back = self._back + 1 if block >= BACK * self.level else 0
        if self._back < BACK_BLOCKS and self._lasted < ACCEPT:
            return None
        if self._back < BACK_BLOCKS:
            self._blocks = array("d", self._slow)
        self._slow.clear()
        self.active = False
        return Turn.ENDED

    def accept(self) -> bool:
        """Take the present throughput as the usual one; False where no alert lasts."""
        if not self.active:
            return False
        self._blocks = array("d", self._slow)
        self._slow.clear()
        self.active, self._back = False, 0
        return True

    @property
    def recovered(self) -> bool:
        """Whether the alert that ended last did so because throughput came back."""
        return self._back >= BACK_BLOCKS

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        return {
            "blocks": pack(self._blocks),
            "points": pack(self._points),
            "slow": pack(self._slow),
            "numbers": pack((self._begins, self.level, self.now)),
            "back": self._back,
            "lasted": self._lasted,
            "active": self.active,
            "onset": self.onset,
            "last_healthy": self.last_healthy,
        }

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any]) -> ThroughputRule:
        """Make the rule that goes on where `snapshot` was taken."""
        rule = cls()
        rule._blocks = array("d", unpack(snapshot["blocks"]))
        rule._points = unpack(snapshot["points"])
        rule._slow = unpack(snapshot["slow"])
        rule._begins, rule.level, rule.now = unpack(snapshot["numbers"])
        rule._back = int(snapshot["back"])
        rule._lasted = int(snapshot["lasted"])
        rule.active = bool(snapshot["active"])
        rule.onset = snapshot["onset"]
        rule.last_healthy = snapshot["last_healthy"]
        return rule
