"""What alerts there were and are, and what has changed since somebody asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wtwin_watch.monitor.episode import Change, Episode

KEPT = 16
"""So many ended episodes, and changes nobody asked for, are remembered."""


class Ledger:
    """Numbers episodes, remembers the latest that have ended, and collects changes."""

    def __init__(self) -> None:
        self.ended: deque[Episode] = deque(maxlen=KEPT)
        self.changes: deque[Change] = deque(maxlen=2 * KEPT)
        self.count = 0

    def begin(
        self, kind: str, step: float, *, onset: float, healthy: float, observed: float, expected: float,
        excess: float, sigma: float, score: float,
    ) -> Episode:  # fmt: skip
        """Open an episode."""
        self.count += 1
        episode = Episode(
            number=self.count, kind=kind, began_step=step, onset_step=onset, last_healthy_step=healthy,
            observed=observed, expected=expected, excess=excess, peak=excess, sigma=sigma, score=score,
        )  # fmt: skip
        self.changes.append(Change("began", episode))
        return episode

    def reopen(self, episode: Episode) -> Episode:
        """Let an episode that had ended go on."""
        self.ended = deque((e for e in self.ended if e.number != episode.number), KEPT)
        self.changes.append(Change("reopened", episode))
        return episode

    def change(self, episode: Episode) -> None:
        """Note that an open episode has another kind now."""
        self.changes.append(Change("changed", episode))

    def end(self, episode: Episode, step: float, outcome: str) -> Episode:
        """Close an episode."""
        episode = replace(episode, ended_step=step, outcome=outcome)
        self.ended.append(episode)
        self.changes.append(Change("ended", episode))
        return episode

    def drain(self) -> list[Change]:
        """Return the changes since this was last asked, oldest first."""
        changes = list(self.changes)
        self.changes.clear()
        return changes

    def state(self) -> dict[str, Any]:
        """Return all of it as a JSON-able dict."""
        return {
            "count": self.count,
            "ended": [episode.state() for episode in self.ended],
            "changes": [[change.what, change.episode.state()] for change in self.changes],
        }

    @classmethod
    def revive(cls, state: Mapping[str, Any]) -> Ledger:
        """Make the ledger that `state` describes."""
        ledger = cls()
        ledger.count = int(state["count"])
        ledger.ended.extend(map(Episode.revive, state["ended"]))
        ledger.changes.extend(
            Change(what, Episode.revive(episode)) for what, episode in state["changes"]
        )
        return ledger
