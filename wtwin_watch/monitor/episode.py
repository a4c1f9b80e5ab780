"""The life of an alert on a loss: what kind it is, how large the excess stays, and when it is over."""

# The numbers of the formulas stand in them.
# ruff: noqa: PLR2004

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Literal

from wtwin_watch.monitor.contrast import Forecast
from wtwin_watch.monitor.packing import pack, unpack

DRIFT, LEVEL_SHIFT, SPIKE, TRANSIENT, DIVERGENCE = (
    "drift",
    "level_shift",
    "spike",
    "transient",
    "divergence",
)
NONFINITE, FROZEN = "nonfinite", "frozen"
RECOVERED, ACCEPTED, ROLLED_BACK = "recovered", "accepted", "rolled_back"

BLOCK = 8
"""Points whose median is one look at the excess."""
SHORT = 1024
"""A rise that is over after so many points was a spike."""
JUMP = 64
"""A rise that was seen within so many points was a jump."""
ACCEPT_AFTER = 4000
ACCEPT_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Episode:
    """One alert, from its beginning to its end. Losses are in the loss's own unit.

    ``kind`` is what it looks like now; it may change while the alert lasts. ``onset_step``: where the rise
    probably began; ``last_healthy_step``: before it. ``excess``: how far the loss lies above its forecast
    ``expected``; ``sigma``: of a point, correlation counted in. ``outcome``: recovered, accepted or
    rolled_back, None while it lasts. ``reopened``: how often it came back soon after its end.
    """

    number: int
    kind: str
    began_step: float
    onset_step: float
    last_healthy_step: float
    observed: float
    expected: float
    excess: float
    peak: float
    sigma: float
    score: float
    ended_step: float | None = None
    outcome: str | None = None
    reopened: int = 0

    @property
    def open(self) -> bool:
        """Whether it lasts."""
        return self.outcome is None

    def state(self) -> list[Any]:
        """Return all of it as a JSON-able list."""
        numbers = pack([math.nan if (x := getattr(self, name)) is None else x for name in NUMBERS])
        return [self.number, self.kind, self.outcome, self.reopened, numbers]

    @classmethod
    def revive(cls, state: Sequence[Any]) -> Episode:
        """Make the episode that `state` describes."""
        number, kind, outcome, reopened, packed = state
        fields: dict[str, Any] = dict(zip(NUMBERS, unpack(packed), strict=True))
        if outcome is None:
            fields["ended_step"] = None
        return cls(number=number, kind=kind, outcome=outcome, reopened=reopened, **fields)

    @property
    def excess_sigma(self) -> float:
        """The excess in sigma; infinite where there is no sigma."""
        return self.excess / self.sigma if self.sigma > 0.0 else math.inf


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to an episode: it began, was reopened, changed its kind or ended."""

    what: Literal["began", "reopened", "changed", "ended"]
    episode: Episode


class Rise:
    """A loss above its frozen forecast: follows the excess until it is gone, accepted or taken back.

    Nothing is learned from the loss meanwhile, so the forecast and the noise it is measured by stay.
    """

    __slots__ = (
        "below", "blocks", "decided", "delay", "episode", "excess", "first_excess", "forecast",
        "growth", "jump", "lasted", "line", "peak", "sigma", "strongest", "trail", "values",
    )  # fmt: skip

    def __init__(
        self, episode: Episode, forecast: Forecast, delay: int, jump: bool, x: float
    ) -> None:
        self.episode = episode
        self.forecast = forecast
        self.line = forecast.at(x)
        """The forecast at the latest block."""
        self.delay = delay
        """Points from the onset to the alert."""
        self.jump = jump or delay <= JUMP
        self.lasted = 0
        """Points since the alert."""
        self.sigma = episode.sigma
        self.excess = episode.excess
        """Smoothed excess, at first that of the alert's evidence."""
        self.peak = episode.excess
        self.first_excess = episode.excess
        """``excess`` after four blocks."""
        self.blocks = 0
        self.below = 0
        """So many blocks in a row the excess was gone."""
        self.decided = False
        self.growth = math.nan
        """``excess`` ÷ what it was 1/8 to 1/4 of the age ago."""
        self.values: list[float] = []
        self.trail: list[tuple[int, float]] = []
        """(age, excess) at ages that grow by a sixteenth, back to 3/4 of the age."""
        self.strongest = 0.0
        """The most evidence there was at the end of a block."""

    @property
    def excess_sigma(self) -> float:
        """The smoothed excess in sigma."""
        return self.excess / self.sigma if self.sigma > 0.0 else 1.0

    @property
    def age(self) -> int:
        """Points since the onset."""
        return self.lasted + self.delay

    @property
    def evidence(self) -> float:
        """Evidence of the excess since the onset, in nats: as of a ramp, or of a step where it jumped.

        The most there ever was: that an excess ends makes it no likelier to have been chance.
        """
        if not self.excess > 0.0:
            return self.strongest
        now = self.age * self.excess_sigma**2 / (2.0 if self.jump else 6.0)
        return max(self.strongest, now)

    def step(self, y: float) -> bool:
        """Take one more point; True when it makes a block, to be finished by `look`."""
        self.lasted += 1
        self.values.append(y)
        return len(self.values) >= BLOCK

    def look(self, x: float, run: int) -> str | None:
        """Judge the block that is full, ``x`` its mean x; return the outcome if this ends the alert.

        ``run``: points since the run's beginning.
        """
        self.line = self.forecast.at(x)
        seen = median(self.values) - self.line
        self.strongest = self.evidence
        self.values.clear()
        self.blocks += 1
        age = self.age
        memory = min(32.0, max(4.0, age / 64))
        self.excess += (seen - self.excess) / memory
        self.peak = max(self.peak, self.excess)
        if self.blocks == 4:
            self.first_excess = self.excess
        blur = self.sigma / math.sqrt(8.0 * memory)
        if self.excess < max(min(0.25 * self.peak, 0.3 * self.sigma), blur):
            self.below += 1
            if self.below >= max(8.0, memory):
                return RECOVERED
        else:
            self.below = 0
        self.growth = growth = self._growth(age)
        patience = max(ACCEPT_AFTER, ACCEPT_SHARE * run)
        if self.lasted >= patience and 0.9 < growth < 1.1:
            return ACCEPTED
        return None

    def _growth(self, age: int) -> float:
        """Return the excess ÷ what it was 1/8 to 1/4 of the age ago; NaN where that isn't known."""
        trail = self.trail
        then = next((excess for at, excess in trail if 0.75 * age <= at <= 0.875 * age), math.nan)
        if not trail or age >= trail[-1][0] * 17 / 16:
            trail.append((age, self.excess))
            while trail[0][0] < 0.7 * age:
                del trail[0]
        return self.excess / then if then else math.nan

    def kind(self) -> str:
        """Say what it looks like after the block just judged."""
        excess, now = self.excess, self.episode.kind
        if excess > max(20.0 * self.sigma, 0.1 * abs(self.line)) and self.growth > 1.25:
            return DIVERGENCE
        if now == DIVERGENCE or self.decided or self.lasted < 2 * max(JUMP, self.delay):
            return now
        blur = self.sigma / math.sqrt(8.0 * min(32.0, max(4.0, self.age / 64)))
        steady = excess < 1.3 * self.first_excess + self.sigma / math.sqrt(32.0)
        if self.jump and steady and excess > 0.7 * self.peak - blur:
            self.decided = True
            return LEVEL_SHIFT
        if excess > 0.5 * self.peak:
            self.decided = True
            return DRIFT
        return now

    def now(self, kind: str, observed: float, score: float) -> Episode:
        """Return the episode as it stands."""
        return replace(
            self.episode, kind=kind, observed=observed, expected=self.line, excess=self.excess,
            peak=self.peak, score=score,
        )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return all of it as a JSON-able dict."""
        return {
            "episode": self.episode.state(),
            "forecast": pack(self.forecast),
            "values": pack(self.values),
            "trail": [[age, plain(excess)] for age, excess in self.trail],
            **{name: plain(getattr(self, name)) for name in PLAIN},
        }

    @classmethod
    def revive(cls, state: Mapping[str, Any]) -> Rise:
        """Make the rise that `state` describes."""
        rise = cls(
            Episode.revive(state["episode"]), Forecast(*unpack(state["forecast"])), 0, False, 0.0
        )
        for name in PLAIN:
            setattr(rise, name, value(state.get(name, 0.0)))
        rise.values = unpack(state["values"])
        rise.trail = [(age, value(excess)) for age, excess in state["trail"]]
        return rise


NUMBERS = (
    "began_step", "onset_step", "last_healthy_step", "observed", "expected", "excess", "peak", "sigma",
    "score", "ended_step",
)  # fmt: skip
PLAIN = (
    "below", "blocks", "decided", "delay", "excess", "first_excess", "growth", "jump", "lasted", "line",
    "peak", "sigma", "strongest",
)  # fmt: skip


def plain(number: Any) -> Any:
    """Write NaN and infinity as text, which JSON can hold; anything else as it is."""
    return repr(number) if isinstance(number, float) and not math.isfinite(number) else number


def value(stored: Any) -> Any:
    """Read what `plain` wrote."""
    return float(stored) if stored in ("nan", "inf", "-inf") else stored
