"""Which of a run's metrics is its loss, told from the order of its points alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wtwin_watch.errors import SnapshotError
from wtwin_watch.metrics import Names, Role, belief, choose, wanted
from wtwin_watch.model import Point
from wtwin_watch.monitor.packing import pack, unpack


class LossChoice:
    """Passes on the points of the loss, and holds them back until it is clear which metric that is.

    A name the user gave is followed at once. Otherwise the first metric of a loss's usual name that
    comes a second time shows that a full row was seen; then the best known of all names seen so far is
    chosen for good, and the points it had are passed on. So at most one point a candidate is held.
    """

    __slots__ = ("_held", "_names", "_seen", "loss")

    def __init__(self, names: Names) -> None:
        self._names = names
        self._seen: dict[str, None] = {}
        self._held: list[Point] = []
        self.loss = names.loss
        """The metric followed, None while it isn't chosen."""

    def take(self, point: Point) -> Sequence[Point]:
        """Take the next point; return the points of the loss that are to be judged now."""
        name = point.metric
        if name not in self._seen and wanted(name, self._names):
            self._seen[name] = None
        if self.loss is not None:
            return (point,) if name == self.loss else ()
        known = belief(name)
        if known is None or known[0] is not Role.LOSS:
            return ()
        again = any(name == held.metric for held in self._held)
        self._held.append(point)
        return self.flush() if again else ()

    def flush(self) -> Sequence[Point]:
        """Choose from what was seen: the log has ended, or a candidate came again."""
        if not self._held:
            return ()
        self.loss = choose([point.metric for point in self._held], self._names)[Role.LOSS]
        points = [point for point in self._held if point.metric == self.loss]
        self._held.clear()
        return points

    def rewind(self, step: float) -> None:
        """Let go of points from ``step`` on: they come once more."""
        self._held = [point for point in self._held if point.step < step]

    @property
    def roles(self) -> dict[Role, str]:
        """The metric seen for each role. The loss is in it from when it's chosen and seen."""
        roles = choose(self._seen, self._names)
        roles.pop(Role.LOSS, None)
        if self.loss is not None and self.loss in self._seen:
            roles[Role.LOSS] = self.loss
        return roles

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        return {
            "given": self._names.loss,
            "loss": self.loss,
            "seen": list(self._seen),
            "held": [point.metric for point in self._held],
            "held_at": pack(point.step for point in self._held),
            "held_values": pack(point.value for point in self._held),
        }

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any], names: Names) -> LossChoice:
        """Make the choice that goes on where `snapshot` was taken.

        Raises `SnapshotError` where another loss is asked for now: what was learned is about the former.
        """
        if names.loss != snapshot["given"] and names.loss != snapshot["loss"]:
            raise SnapshotError(
                f"the stored state is about the loss {snapshot['loss']!r}, the settings now ask for"
                f" {names.loss or 'the usual names'!r}"
            )
        choice = cls(names)
        choice.loss = snapshot["loss"]
        choice._seen = dict.fromkeys(snapshot["seen"])
        columns = snapshot["held"], unpack(snapshot["held_at"]), unpack(snapshot["held_values"])
        choice._held = [Point(*row) for row in zip(*columns, strict=True)]
        return choice
