"""What the table has to hold: the published numbers for the published method, better ones for ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from benchmarks.intervals import mean_interval
from benchmarks.published.detectors import CLASSIC, DEFAULT, DETECTORS, OURS, OURS_LR
from benchmarks.published.experiments import ABRUPT, CLEAN, GRADUAL, LINEAR
from benchmarks.published.table import Cell, Judged, cell
from benchmarks.report import Measure, Skipped


def measures(
    judged: Sequence[Judged], whose: str, quick: bool = False
) -> Iterator[Measure | Skipped]:
    """Yield what is held against a target, and the other comparators' numbers for information.

    In the quick form a mean delay misses its target where its 95 % interval does: a few runs can't tell more.
    """
    if not {LINEAR, ABRUPT, CLEAN} <= {one.kind for one in judged}:
        yield Skipped(
            whose, "there isn't a log yet of each: linear label noise, corrupted weights, clean"
        )
        return

    def of(detector: str, *kinds: str) -> Cell:
        return cell([one for one in judged if one.kind in kinds], detector)

    for detector, low, high, struck_low, struck_high in (
        (CLASSIC, 200.0, 235.0, 5.0, 5.0),
        (OURS, 0.0, 11.0, None, 4.0),
        (OURS_LR, 0.0, 11.0, None, 4.0),
    ):
        name = f"{detector}, {whose}"
        gradual, linear = of(detector, *GRADUAL), of(detector, LINEAR)
        struck, clean = of(detector, ABRUPT), of(detector, CLEAN)
        yield _all_seen(f"{name}: progressive failures seen", gradual)
        lowest, highest = mean_interval(linear.delays)
        interval = max(0.0, lowest), highest  # no delay is below 0
        nearest = max(interval[0], min(interval[1], max(low, min(high, linear.mean))))
        yield Measure(
            f"{name}: linear label noise, mean delay",
            linear.mean,
            at_least=low or None,
            at_most=high,
            unit="steps",
            note=_steps(linear),
            interval=interval if len(linear.delays) > 1 else None,
            judged=nearest if quick and linear.delays else None,
        )
        yield _all_seen(f"{name}: corrupted weights seen", struck)
        yield Measure(
            f"{name}: corrupted weights, longest delay",
            max(struck.delays, default=math.inf),
            at_least=struck_low,
            at_most=struck_high,
            unit="steps",
            note=_steps(struck),
        )
        yield Measure(f"{name}: clean runs with an alert", clean.false, at_most=0, note=_of(clean))
    late = of(DEFAULT, *GRADUAL)
    yield Measure(
        f"{DEFAULT}, {whose}: progressive failures seen within 500 steps",
        sum(delay <= 500 for delay in late.delays),
        at_most=0,
        note=_of(late),
    )
    for detector in DETECTORS:
        if detector.startswith(("threshold", "CUSUM")):
            gradual, clean = of(detector, *GRADUAL), of(detector, CLEAN)
            yield Measure(
                f"{detector}, {whose}: progressive failures seen",
                len(gradual.delays),
                note=f"{_of(gradual)}, after {_steps(gradual) or '-'} steps;"
                f" clean runs with an alert: {clean.false}",
            )


def _all_seen(name: str, found: Cell) -> Measure:
    return Measure(name, len(found.delays), at_least=found.logs, note=_of(found))


def _of(found: Cell) -> str:
    return f"of {found.logs}"


def _steps(found: Cell) -> str:
    return ", ".join(f"{delay:g}" for delay in found.delays)
