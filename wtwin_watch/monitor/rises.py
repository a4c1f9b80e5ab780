"""What people are told of a trend monitor: how grave a rise is by what is known of it so far.

A jump may be over before anybody has read of it, so it begins as information. It becomes a warning when
it lasts, and a warning becomes critical when the loss diverges; the way back is only the end. An episode
that comes back is not told again before it lasts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import Any

from wtwin_watch.model import Detection, Family, Severity
from wtwin_watch.monitor.episode import (
    ACCEPTED,
    DIVERGENCE,
    DRIFT,
    FROZEN,
    LEVEL_SHIFT,
    NONFINITE,
    RECOVERED,
    ROLLED_BACK,
    SPIKE,
    Change,
    Episode,
)
from wtwin_watch.monitor.packing import pack, unpack
from wtwin_watch.monitor.trend import TrendMonitor
from wtwin_watch.monitor.words import amount, finite, step_text

RISE = "rise"
YOUNG = 24
"""A rise that is seen within so many points of its onset may be a spike."""
LOOK = 12
"""The excess of a young rise is looked at as the median of so many points …"""
LOOKS = 3
LASTS = 0.6
"""… and lasts if the third such look or a later one is at least this share of the largest one,"""
LEAST_SIGMA = 1.0
"""at least so many sigma, and not far below what the alert began with."""
LEAST_SHARE = 0.25
GROWS = 1.5
"""It is a drift rather than a step if it is so many times the first."""

SEVERITY = {
    SPIKE: Severity.INFO,
    DRIFT: Severity.WARNING,
    LEVEL_SHIFT: Severity.WARNING,
    DIVERGENCE: Severity.CRITICAL,
}


class Rises:
    """Turns what a `TrendMonitor` says into detections of the family LOSS.

    ``what`` names the metric at the beginning of a sentence: ``Loss``.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self.kind: str | None = None
        """Of the rise that is open, None where none is."""
        self._onset = 0.0
        self._healthy = 0.0
        self._values: list[float] = []
        self._looks: list[float] = []
        """The first looks at a young rise; the last of them is the largest of all later ones."""

    def follow(
        self, monitor: TrendMonitor, step: float, value: float
    ) -> list[tuple[str, Detection]]:
        """Return what began, changed or ended with the point that ``monitor`` was just given, by signal."""
        found = []
        for change in monitor.drain():
            found += self._told(change, monitor, step, value)
        if self.kind == SPIKE:
            found += self._look(monitor, step, value)
        return found

    def _told(
        self, change: Change, monitor: TrendMonitor, step: float, value: float
    ) -> list[tuple[str, Detection]]:
        episode = change.episode
        if episode.kind == NONFINITE:
            return []  # the rule for it says more
        if episode.kind == FROZEN:
            return [(FROZEN, self._frozen(episode, step))]
        if change.what == "ended":
            if episode.outcome == RECOVERED or self.kind is None:
                self.kind = episode.kind
            found = self._ended(episode, self.kind, step, value)
            self.kind = None
            self._healthy = step
            return [(RISE, found)]
        if change.what == "changed":
            if episode.kind == self.kind or episode.excess <= 0.0:
                return []
            self.kind = episode.kind
        else:
            self._values.clear()
            self._looks.clear()
            self.kind = SPIKE if _young(episode) else episode.kind
            self._onset = step
            if change.what == "began":
                self._onset, self._healthy = episode.onset_step, episode.last_healthy_step
            elif self.kind == SPIKE:
                return []
        return [(RISE, self._rising(episode, step, value))]

    def _look(
        self, monitor: TrendMonitor, step: float, value: float
    ) -> list[tuple[str, Detection]]:
        """See whether a young rise lasts."""
        episode = monitor.episode
        if episode is None:
            return []
        self._values.append(value - episode.expected)
        if len(self._values) < LOOK:
            return []
        seen = median(self._values)
        self._values.clear()
        looks = self._looks
        if len(looks) < LOOKS:
            looks.append(seen)
        else:
            looks[-1] = max(looks[-1], seen)
        least = max(LASTS * max(looks), LEAST_SIGMA * episode.sigma, LEAST_SHARE * episode.peak)
        if len(looks) < LOOKS or seen <= 0.0 or seen < least:
            return []
        self.kind = DRIFT if seen > GROWS * looks[0] else LEVEL_SHIFT
        return [(RISE, self._rising(episode, step, value))]

    def _rising(self, episode: Episode, step: float, value: float) -> Detection:
        kind = self.kind or episode.kind
        what, since = self._what, step_text(_near(self._onset, step))
        expected = f"the {episode.expected:.4g} that its trend led to"
        above = f"on average {amount(episode.excess, episode.sigma)} above {expected}"
        if kind == SPIKE:
            summary = (
                f"{what} jumped to {value:.4g} at step {step_text(step)},"
                f" {amount(value - episode.expected, episode.sigma)} above {expected}; whether that lasts"
                " isn't known yet."
            )
        elif kind == LEVEL_SHIFT:
            summary = f"{what} jumped up at step {since} and stays there, {above}; now {value:.4g}."
        elif kind == DIVERGENCE:
            summary = f"{what} diverges: since step {since} {above} and growing; now {value:.4g}."
        else:
            summary = f"{what} leaves its trend: since step {since} {above}; now {value:.4g}."
        return self._detection(episode, kind, SEVERITY[kind], summary, step, value)

    def _ended(self, episode: Episode, kind: str, step: float, value: float) -> Detection:
        since, what = step_text(_near(self._onset, step)), self._what
        if episode.outcome == ACCEPTED:
            summary = (
                f"{what} {value:.4g} has been steady for so long that it is taken as normal from here on,"
                f" {amount(episode.peak, episode.sigma)} at most above its former trend since step {since}."
            )
        elif episode.outcome == ROLLED_BACK:
            summary = (
                f"The run went back to step {step_text(step)}, to before the {what.lower()} began to rise"
                f" at step {since}."
            )
        else:
            summary = (
                f"{what} {value:.4g} is back at its trend of {episode.expected:.4g}; since step {since} it"
                f" had been up to {amount(episode.peak, episode.sigma)} above it."
            )
        return self._detection(episode, kind, Severity.INFO, summary, step, value, active=False)

    def _frozen(self, episode: Episode, step: float) -> Detection:
        value, since = episode.observed, step_text(_near(episode.onset_step, step))
        if episode.open:
            summary = (
                f"{self._what} has been exactly {value:.6g} at every point since step {since}."
            )
        else:
            summary = (
                f"{self._what} moves again; it had been exactly {value:.6g} since step {since}."
            )
        return self._detection(
            episode, FROZEN, Severity.CRITICAL, summary, step, value, active=episode.open
        )

    def _detection(
        self, episode: Episode, kind: str, severity: Severity, summary: str, step: float, value: float,
        active: bool = True,
    ) -> Detection:  # fmt: skip
        rising = kind != FROZEN
        onset = self._onset if rising else episode.onset_step
        healthy = self._healthy if rising else episode.last_healthy_step
        return Detection(
            family=Family.LOSS,
            kind=kind,
            active=active,
            severity=severity,
            summary=summary,
            detector="trend",
            step=step,
            onset_step=finite(_near(onset, step)),
            last_healthy_step=finite(_near(healthy, step)),
            observed=finite(value),
            expected=finite(episode.expected),
            sigma=finite(episode.sigma),
            score=finite(episode.score),
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        return {
            "kind": self.kind,
            "onset": pack((self._onset, self._healthy)),
            "values": pack(self._values),
            "looks": pack(self._looks),
        }

    def recall(self, snapshot: Mapping[str, Any]) -> None:
        """Go on where `snapshot` was taken."""
        self.kind = snapshot["kind"]
        self._onset, self._healthy = unpack(snapshot["onset"])
        self._values = unpack(snapshot["values"])
        self._looks = unpack(snapshot["looks"])


def _young(episode: Episode) -> bool:
    """Whether a rise that begins now may be a spike."""
    if episode.kind == DIVERGENCE:
        return False
    stride = episode.onset_step - episode.last_healthy_step
    return episode.kind == SPIKE or episode.began_step - episode.onset_step <= YOUNG * stride


def _near(estimate: float, step: float) -> float:
    """Round an estimated step to a whole one where steps are whole."""
    return float(round(estimate)) if step.is_integer() and math.isfinite(estimate) else estimate
