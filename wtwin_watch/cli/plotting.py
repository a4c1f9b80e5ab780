"""The pictures that ``monitor --plot`` writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wtwin_watch.cli.judging import STAGNATION, Judged
from wtwin_watch.cli.output import one_line
from wtwin_watch.errors import UsageError

if TYPE_CHECKING:
    from wtwin_watch.model import Detection
    from wtwin_watch.plot import Mark


def check(path: Path) -> None:
    """Raise `UsageError` where no picture can be drawn, or not in this format."""
    from wtwin_watch.plot import available, lacking

    if path.suffix.lower() != ".png":
        raise UsageError(f"--plot: {path} must end in .png; a plot is a PNG")
    if not available():
        raise UsageError(f"--plot: {lacking()}")


def write(path: Path, judged: list[Judged]) -> None:
    """Draw every run: to ``path``, or where there are several to ``name-1.png``, ``name-2.png`` …

    Raises `UsageError` where a file can't be written.
    """
    for number, one in enumerate(judged, start=1):
        to = path if len(judged) == 1 else path.with_stem(f"{path.stem}-{number}")
        try:
            to.write_bytes(picture(one))
        except OSError as error:
            raise UsageError(f"{to}: can't be written: {error.strerror or error}") from error
        click.echo(f"plot of {one_line(one.label)} written to {to}", err=True)


def picture(one: Judged) -> bytes:
    """Draw one run with all its alerts; the words are about the gravest of them, as it was in the end."""
    from wtwin_watch.model import Severity
    from wtwin_watch.notify.render import caption
    from wtwin_watch.plot import draw

    name = Path(one.run.name).name or one.run.name
    alerts = _as_they_ended(one.detections)
    if not alerts:
        headline = "No alert" if one.monitor.status == "judging" else "Not judged"
        return draw(one.curve, [], headline, name)
    weights = list(Severity)
    gravest = min(alerts, key=lambda found: weights.index(found.severity))
    headline, detail = caption(gravest, name)
    if len(alerts) > 1:
        headline += f" ({len(alerts)} alerts)"
    return draw(one.curve, _marks(one.detections), headline, detail)


def _as_they_ended(detections: list[Detection]) -> list[Detection]:
    """The last detection of each alert, in the order in which the alerts began."""
    alerts: list[Detection] = []
    places: dict[str, int] = {}
    for found in detections:
        if found.kind == STAGNATION:
            continue
        if not found.active:
            places.pop(found.family, None)
        elif found.family in places:
            alerts[places[found.family]] = found
        else:
            places[found.family] = len(alerts)
            alerts.append(found)
    return alerts


def _marks(detections: list[Detection]) -> list[Mark]:
    from wtwin_watch.plot import Mark, Moment

    marks: list[Mark] = []
    open_families = set()
    for found in detections:
        if found.kind == STAGNATION:
            continue
        if not found.active:
            open_families.discard(found.family)
            steps = [(found.step, Moment.RESOLVED)]
        elif found.family in open_families:
            continue
        else:
            open_families.add(found.family)
            steps = [(found.onset_step, Moment.ONSET), (found.step, Moment.ALERT)]
        marks += [Mark(step, moment) for step, moment in steps if step is not None]
    return marks
