"""Steps that a log counts from the beginning of each epoch, counted on over the epochs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import le
from typing import Any

from wtwin_adapters.numbers import Column, Value

_REMEMBERED = 64


@dataclass(frozen=True, slots=True)
class Epochs:
    """Where the counting stands. ``dump`` and ``load`` are the JSON form.

    A step that goes back while its epoch goes up has begun anew: from there on, what the epochs before had
    is added. Where it never does, steps stay as they are. An epoch that goes back is a restart of the run:
    what is added is then again what it was in that epoch.
    """

    epoch: int | None = None
    """Of the row read last."""
    top: float = -math.inf
    """The highest step of that epoch, as logged."""
    gap: float = 0.0
    """Between the last two steps of an epoch."""
    begun: tuple[tuple[int, float], ...] = ()
    """The latest epochs in which steps began anew, each with what is added from there on."""

    @property
    def added(self) -> float:
        """What is added to a step of the present epoch."""
        return self.begun[-1][1] if self.begun else 0.0

    def counted(self, step: float, epoch: Value) -> tuple[float, Epochs]:
        """Count on: the step over all epochs, and where the counting stands after this row."""
        if not (isinstance(epoch, float) and math.isfinite(epoch) and math.isfinite(step)):
            return step + self.added, self
        epoch = math.floor(epoch)
        gap = step - self.top if -math.inf < self.top < step else self.gap
        if self.epoch is None or epoch == self.epoch:
            return step + self.added, replace(self, epoch=epoch, top=max(step, self.top), gap=gap)
        if epoch < self.epoch:
            kept = tuple(begun for begun in self.begun if begun[0] <= epoch)
            now = replace(self, epoch=epoch, top=step, begun=kept)
            return step + now.added, now
        if step >= self.top:
            return step + self.added, replace(self, epoch=epoch, top=step, gap=gap)
        # Counted from 0, the first step of an epoch is one gap behind the last one of that before.
        before = self.added + self.top + (self.gap if step == 0.0 else 0.0)
        begun = (*self.begun[1 - _REMEMBERED :], (epoch, before))
        return step + before, replace(self, epoch=epoch, top=step, begun=begun)

    def counted_block(
        self, steps: list[float], epochs: Column
    ) -> tuple[list[float], Epochs] | None:
        """Count on in many rows at once, as `counted`; None where they have to be taken one by one.

        The state returned is right only if ``steps`` never go back.
        """
        if None in epochs or not all(map(le, epochs, islice(epochs, 1, None))):  # type: ignore[arg-type]
            return None
        first, last = epochs[0], epochs[-1]
        if not (math.isfinite(first) and math.isfinite(last)):  # type: ignore[arg-type]
            return None
        before, after = math.floor(first), math.floor(last)  # type: ignore[arg-type]
        same = before == after == self.epoch
        begins = self.epoch is not None and (before < self.epoch or steps[0] < self.top)
        if not same and (begins or self.begun):
            return None
        grown = next((i for i in range(len(steps) - 1, 0, -1) if steps[i] > steps[i - 1]), 0)
        now = self
        for step in steps[max(grown - 1, 0) : grown + 1]:
            _, now = now.counted(step, float(before))
        now = replace(now, epoch=after, top=max(steps[-1], self.top) if same else steps[-1])
        added = self.added
        return ([step + added for step in steps] if added else steps), now

    def dump(self) -> list[Any]:
        """Give the JSON form."""
        top = self.top if math.isfinite(self.top) else None
        return [self.epoch, top, self.gap, [list(begun) for begun in self.begun]]

    @classmethod
    def load(cls, form: Sequence[Any] | None) -> Epochs:
        """Read the JSON form."""
        if form is None:
            return cls()
        epoch, top, gap, begun = form
        top = -math.inf if top is None else top
        return cls(epoch, top, gap, tuple((at, added) for at, added in begun))


def epoch_among(names: Sequence[str], step: str | None) -> str | None:
    """The column that counts epochs beside the steps of the column ``step``."""
    if step is None:
        return None
    return next((name for name in names if name.lower() == "epoch" != step.lower()), None)
