"""Which of a run's metrics plays a role, told from the order of its points alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from wtwin_watch.errors import SnapshotError
from wtwin_watch.metrics import Names, Role, belief, choose
from wtwin_watch.model import Point
from wtwin_watch.monitor.packing import pack, unpack


class RoleChoice:
    """Passes on the points of a role's metric, and holds them back until it is clear which one that is.

    A name the user gave is followed at once. Otherwise the first metric with a usual name of the role
    that comes a second time shows that a full row was seen; then the best known of all names seen so far
    is chosen for good, and the points it had are passed on. So at most one point a candidate is held.
    """

    __slots__ = ("_held", "_names", "_role", "metric")

    def __init__(self, role: Role, names: Names) -> None:
        self._role = role
        self._names = names
        self._held: list[Point] = []
        self.metric: str | None = getattr(names, role)
        """The metric followed, None while it isn't chosen."""

    def take(self, point: Point) -> Sequence[Point]:
        """Take the next point; return the points of the role that are to be judged now."""
        name = point.metric
        if self.metric is not None:
            return (point,) if name == self.metric else ()
        known = belief(name)
        if known is None or known[0] is not self._role:
            return ()
        again = any(name == held.metric for held in self._held)
        self._held.append(point)
        return self.flush() if again else ()

    @property
    def holds_no_number(self) -> bool:
        """Whether points are held back, and none of them has a finite value."""
        return bool(self._held) and not any(math.isfinite(point.value) for point in self._held)

    def flush(self) -> Sequence[Point]:
        """Choose from what was seen: the log has ended, or a candidate came again."""
        if not self._held:
            return ()
        self.metric = choose([point.metric for point in self._held], self._names)[self._role]
        points = [point for point in self._held if point.metric == self.metric]
        self._held.clear()
        return points

    def rewind(self, step: float) -> None:
        """Let go of points from ``step`` on: they come once more."""
        self._held = [point for point in self._held if point.step < step]

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        return {
            "given": getattr(self._names, self._role),
            "metric": self.metric,
            "held": [point.metric for point in self._held],
            "held_at": pack(point.step for point in self._held),
            "held_values": pack(point.value for point in self._held),
        }

    @classmethod
    def restore(cls, role: Role, names: Names, snapshot: Mapping[str, Any]) -> RoleChoice:
        """Make the choice that goes on where `snapshot` was taken.

        Raises `SnapshotError` where another metric is asked for now: what was learned is about the former.
        """
        wanted: str | None = getattr(names, role)
        if wanted != snapshot["given"] and wanted != snapshot["metric"]:
            raise SnapshotError(
                f"the stored state is about the {role} {snapshot['metric']!r}, the settings now ask for"
                f" {wanted or 'the usual names'!r}"
            )
        choice = cls(role, names)
        choice.metric = snapshot["metric"]
        columns = snapshot["held"], unpack(snapshot["held_at"]), unpack(snapshot["held_values"])
        choice._held = [Point(*row) for row in zip(*columns, strict=True)]
        return choice
