"""The states a monitor keeps, and where among them the first alert stands."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wtwin_watch.monitor.wtwin import WTwinState


class History:
    """The latest states, at most ``limit`` of them; None keeps all, 0 none."""

    def __init__(self, limit: int | None) -> None:
        self.states: list[WTwinState] | deque[WTwinState] = (
            [] if limit is None else deque(maxlen=limit)
        )
        self.first_alert: tuple[int, float] | None = None
        """How many states came before that of the first alert, and its step."""

    def as_list(self) -> list[WTwinState]:
        """Return the states, oldest first: the list itself where all are kept, else a copy."""
        return self.states if isinstance(self.states, list) else list(self.states)

    def note(self, state: WTwinState, before: int) -> None:
        """Take note of a state's alert if it's the first; ``before``: how many states came before it."""
        if state.alert and self.first_alert is None:
            self.first_alert = (before, state.step)

    def first_alert_index(self, stored: int) -> int | None:
        """Return where the first alert stands among the states kept of ``stored``, None if it doesn't."""
        if self.first_alert is None:
            return None
        index = self.first_alert[0] - (stored - len(self.states))
        return index if index >= 0 else None

    def first_alert_step(self) -> float | None:
        """Return the step of the first alert, or None if there was none."""
        return None if self.first_alert is None else self.first_alert[1]
