"""What ``monitor`` and ``suggest`` share: their options, and judging every run of a finished log."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wtwin_watch.cli.options import detector_options
from wtwin_watch.cli.output import counted, number, one_line
from wtwin_watch.errors import UsageError
from wtwin_watch.metrics import Names, Role

if TYPE_CHECKING:
    from wtwin_watch.ingest.finished import FinishedRun, Log
    from wtwin_watch.model import Detection
    from wtwin_watch.monitor.curve import Curve
    from wtwin_watch.monitor.options import DetectorOptions
    from wtwin_watch.monitor.run import RunMonitor
    from wtwin_watch.settings import Flags

SCORE_COLUMNS = ("step", "loss", "wtwin_D", "wtwin_Q", "wtwin_T", "wtwin_W", "wtwin_alert")
STAGNATION = "stagnation"
_HEADER_BYTES = 65536

_OPTIONS = [
    click.argument("log", type=click.Path(path_type=Path)),
    click.option("--loss-col", metavar="NAME", help="Column, tag or key of the loss."),
    click.option("--step-col", metavar="NAME", help="Column that counts steps."),
    click.option(
        "--pattern", metavar="REGEX", help="Read lines by this: 'it (?P<step>\\d+) (?P<loss>\\S+)'."
    ),
    click.option(
        "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write scores as CSV."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object a run."),
]


def judging_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument LOG and the options of both commands; the detector's come as ``flags``."""
    command = detector_options(command)
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Judged:
    """One run of a log and what its monitor made of it. ``label`` names it among the others."""

    label: str
    run: FinishedRun
    loss: str
    steps: tuple[float, float]
    """The first and the last step."""
    detector: str
    monitor: RunMonitor
    detections: list[Detection]
    curve: Curve
    """What a picture of it shows; empty unless asked for."""

    @property
    def first_alert(self) -> Detection | None:
        """The beginning of the first alert of any kind; that a loss has stopped falling is none."""
        found = (found for found in self.detections if found.active and found.kind != STAGNATION)
        return next(found, None)

    @property
    def first_alert_step(self) -> float | None:
        """The step of `first_alert`."""
        return None if self.first_alert is None else whole(self.first_alert.step)

    @property
    def facts(self) -> dict[str, Any]:
        """What every JSON object of these commands begins with."""
        return {
            "log": self.run.log,
            "run": self.run.name,
            "detector": self.detector,
            "status": self.monitor.status,
            "points": self.monitor.points,
            "skipped": self.run.skipped,
            "loss_column": self.loss,
            "step_column": self.run.step_name,
        }

    @property
    def no_alert(self) -> str:
        """What can be said where there was no alert: that all is well, or why that isn't known."""
        if self.monitor.status != "judging":
            return f"{self.monitor.status} ({self.monitor.points} read)"
        count = len(self.monitor.judged)
        return f"no alert in the {count} points judged, of {self.monitor.points} read"


def judge(
    path: Path,
    flags: Flags,
    loss_col: str | None,
    step_col: str | None,
    pattern: str | None,
    keep_curves: bool = False,
) -> tuple[list[Judged], list[str]]:
    """Judge every run at ``path``; say on standard error what is read and what is passed over.

    Returns the runs, and a line for each log that couldn't be read. A log that has no such loss is
    passed over where others have. Raises `UsageError` where there is no run to judge.
    """
    from wtwin_watch.ingest.finished import find_logs, read_log
    from wtwin_watch.settings import load_detector

    detector, notes = load_detector(flags)
    for note in notes:
        click.echo(note, err=True)
    options = detector.options()
    names = Names(step=step_col, loss=loss_col)
    judged: list[Judged] = []
    problems: list[str] = []
    passed_over: list[str] = []
    for log in find_logs(path, names, pattern):
        if log.recognition.refused is not None:
            passed_over.append(f"{log.path}: {log.recognition.refused}")
            continue
        try:
            runs = read_log(log, names)
        except UsageError as error:
            problems.append(str(error))
            continue
        if not runs:
            passed_over.append(f"{log.path}: holds no run")
        for run in runs:
            label = run.log if len(runs) == 1 else f"{run.log}: {run.name}"
            if run.error is not None:
                problems.append(f"{label}: {run.error}")
                continue
            one = _judge(label, run, names, options, keep_curves)
            if isinstance(one, Judged):
                judged.append(one)
                _tell_what_was_read(one)
            else:
                passed_over.append(one + _there_are(log, run))
    if not judged:
        raise UsageError("\n".join(problems + passed_over))
    for text in passed_over:
        click.echo(f"passed over: {one_line(text)}", err=True)
    return judged, problems


def _judge(
    label: str, run: FinishedRun, names: Names, options: DetectorOptions, keep_curve: bool
) -> Judged | str:
    """Judge one run, or say why it can't be."""
    from wtwin_watch.monitor.curve import Curve, feed
    from wtwin_watch.monitor.run import RunMonitor

    if names.step is not None and run.step_name != names.step:
        return f"{label}: no step column {names.step!r}"
    monitor = RunMonitor(names, options, history_limit=None)
    curve = Curve(limit=None)
    detections = feed(monitor, run.points, curve) if keep_curve else monitor.feed(run.points)
    detections += monitor.flush()
    loss = monitor.roles.get(Role.LOSS)
    if loss is None:
        wanted = "no loss" if names.loss is None else f"no loss column {names.loss!r}"
        why = f" ({counted(run.skipped)})" if run.skipped else ""
        return f"{label}: {wanted} with numbers in it{why}"
    steps = [point.step for point in run.points if point.metric == loss]
    ends = (steps[0], steps[-1])
    return Judged(label, run, loss, ends, options.name, monitor, detections, curve)


def _tell_what_was_read(one: Judged) -> None:
    first, last = one.steps
    click.echo(
        f"{one_line(one.label)}: loss {one_line(one.loss)!r}, step {one_line(one.run.step_name or '-')!r},"
        f" {one.monitor.points} points, steps {number(first)} to {number(last)}",
        err=True,
    )
    if one.run.skipped:
        click.echo(f"  skipped: {counted(one.run.skipped)}", err=True)


def whole(step: float | None) -> float | None:
    """Write a step that is a whole number as one: 300, not 300.0."""
    return int(step) if step is not None and float(step).is_integer() else step


def print_json_line(value: dict[str, Any]) -> None:
    """Print one JSON object on one line."""
    click.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def write_scores(path: Path, judged: list[Judged]) -> None:
    """Write the scores of every judged point as CSV, with a column ``run`` where there are several.

    Raises `UsageError` where the file can't be written.
    """
    several = len(judged) > 1
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*(["run"] if several else []), *SCORE_COLUMNS])
            for one in judged:
                label = [one.label] if several else []
                writer.writerows([*label, *row] for row in _scores(one))
    except OSError as error:
        raise UsageError(f"{path}: can't be written: {error.strerror or error}") from error
    click.echo(f"scores written to {path}", err=True)


def _scores(one: Judged) -> Iterator[list[Any]]:
    for state in one.monitor.judged:
        yield [whole(state.step), state.l_obs, state.D, state.Q, state.T, state.W, int(state.alert)]


def finish(judged: Iterable[Judged], problems: list[str]) -> int:
    """Return the exit code: 1 where an alert was found. Raises `UsageError` where a log wasn't read."""
    if problems:
        raise UsageError("\n".join(problems))
    return int(any(one.first_alert_step is not None for one in judged))


def _there_are(log: Log, run: FinishedRun) -> str:
    """Name the columns there are, for somebody who asked for another."""
    columns = _header(log) or _metrics(log, run.name)
    return f"; the columns there are: {', '.join(map(one_line, columns))}" if columns else ""


def _metrics(log: Log, name: str) -> list[str]:
    """List what a run of this name has under the usual names."""
    from wtwin_watch.ingest.finished import read_log

    try:
        runs = [run for run in read_log(log, Names()) if run.name == name]
    except UsageError:
        return []
    return list(dict.fromkeys(point.metric for run in runs for point in run.points))


def _header(log: Log) -> list[str]:
    """List the columns of a table or the keys of the first JSON row; nothing for another format."""
    try:
        with log.path.open("rb") as file:
            head = file.read(_HEADER_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return []
    line = next((line for line in head.splitlines() if line.strip()), "")
    if log.recognition.format == "jsonl":
        try:
            row = json.loads(line)
        except ValueError:
            return []
        return list(row) if isinstance(row, dict) else []
    if log.recognition.format not in {"csv", "tsv"}:
        return []
    splits = [next(csv.reader([line], delimiter=delimiter)) for delimiter in ",;\t|"]
    return [cell.strip() for cell in max(splits, key=len)]
