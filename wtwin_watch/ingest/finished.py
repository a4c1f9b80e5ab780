"""Reads finished logs whole: a file, or every log in a folder, for the commands that judge afterwards."""

from __future__ import annotations

import math
import os
import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from wtwin_watch import plugins
from wtwin_watch.errors import SourceError, UsageError
from wtwin_watch.metrics import Names
from wtwin_watch.model import Cursor, Point, Restart, Run
from wtwin_watch.protocols import FileAdapter, OwningAdapter, Recognition, Source

POINTS_A_FETCH = 50_000
QUIET_S = 2.0
"""Reading that takes longer than this is told about, seconds."""

Talk = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Log:
    """A path on disk that an adapter recognised, or refused to read (``recognition.refused``)."""

    path: Path
    adapter: FileAdapter
    recognition: Recognition


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """One run of a log, read to its end. Points are in the order of the log, restarts applied."""

    log: str
    """The path it was read from."""
    name: str
    format: str
    points: list[Point]
    step_name: str | None
    """What the steps were taken from: a column, or ``row number``."""
    skipped: dict[str, int]
    """Rows or records passed over: reason → how many."""
    restarts: int
    """How often the log went back to an earlier step or began anew."""
    error: str | None = None
    """Why it could not be read, or not to its end."""


def find_logs(
    path: Path,
    names: Names = Names(),  # noqa: B008 - frozen
    pattern: str | None = None,
) -> list[Log]:
    """List the logs at ``path`` in the order of their paths, those that are refused among them.

    Where the loss is named, the lack of a usual name for it is no reason to refuse a log. With a
    ``pattern``, a regular expression for its lines, a file is a text log whatever is in it. Raises
    `UsageError` where there is none, with the reason.
    """
    if pattern is not None:
        return [_with_pattern(path, pattern)]
    return [_with_named_loss(log, names) for log in _found(path)]


def _found(path: Path) -> list[Log]:
    try:
        if path.is_dir():
            logs = list(_logs_below(path))
            if not logs:
                raise UsageError(
                    f"{path}: no log in this folder; logs are tables, text logs and trainer files with a"
                    " loss, TensorBoard event files, and runs of wandb"
                )
            return logs
        if path.exists() and not path.is_file():
            # Opening a pipe waits until somebody writes to it.
            raise UsageError(
                f"{path}: is a pipe or a device, not a file; write the log to a file first"
            )
        with path.open("rb"):
            pass
        found = plugins.recognise(path)
    except OSError as error:
        raise UsageError(_unreadable(path, error)) from error
    if found is None:
        raise UsageError(
            f"{path}: not a log this program knows; it reads tables, text logs and trainer files with a"
            " loss, TensorBoard event files, and runs of wandb"
        )
    _, adapter, recognition = found
    return [Log(path, adapter, recognition)]


def _with_pattern(path: Path, pattern: str) -> Log:
    if not path.is_file():
        raise UsageError(f"{path}: is no file; a pattern is for the lines of one")
    for name in plugins.known(plugins.ADAPTERS):
        adapter = plugins.load_adapter(name)
        if "pattern" in adapter.Options.model_fields:
            options = {"path": str(path), "pattern": pattern}
            return Log(path, cast(FileAdapter, adapter), Recognition("text: own pattern", options))
    raise UsageError(f"{path}: no adapter here reads text logs; install wtwin-watch anew")


def _with_named_loss(log: Log, names: Names) -> Log:
    if log.recognition.refused is None or names.loss is None:
        return log
    options = log.recognition.options or {"path": str(log.path)}
    return replace(log, recognition=replace(log.recognition, options=options, refused=None))


def read_log(log: Log, names: Names, talk: Talk | None = None) -> list[FinishedRun]:
    """Read every run of one recognised log to its end.

    A run that can't be read, or not to its end, has an ``error``. Raises `UsageError` where that is so of
    all of them. ``talk`` is told how far a long reading is, by default on stderr if that is a terminal.
    Holds all points in memory, 100-150 bytes a point.
    """
    given = {
        role: name
        for role in names.__dataclass_fields__
        if (name := getattr(names, role)) is not None
    }
    whole = {"finished": True} if "finished" in log.adapter.Options.model_fields else {}
    try:
        options = log.adapter.Options(**{**log.recognition.options, **given, **whole})
        source = log.adapter(log.path.name or str(log.path), options)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, mistake['loc']))} {mistake['msg'].removeprefix('Value error, ')}"
            for mistake in error.errors()
        )
        raise UsageError(f"{log.path}: {problems}") from error
    progress = _Progress(log.path, talk or _tell_terminal)
    try:
        runs = [_read_run(source, run, log, progress) for run in source.runs()]
        if runs and all(run.error for run in runs):
            raise UsageError("\n".join(f"{log.path}: {run.error}" for run in runs))
        return runs
    except (SourceError, OSError) as error:
        text = _unreadable(log.path, error) if isinstance(error, OSError) else str(error)
        raise UsageError(text) from error
    finally:
        progress.end()
        source.close()


def _read_run(source: Source, run: Run, log: Log, progress: _Progress) -> FinishedRun:
    points = _Points()
    skipped: Counter[str] = Counter()
    step_name, restarts, more, problem = None, 0, True, None
    cursor: Cursor | None = None
    try:
        while more:
            batch = source.fetch(run, cursor, POINTS_A_FETCH)
            if batch.restart is not None:
                restarts += 1
                points.restart(batch.restart)
            points.extend(batch.points)
            skipped.update(batch.skipped)
            step_name = batch.step_name or step_name
            cursor, more = batch.cursor, batch.more
            progress.at(run.name, len(points.kept))
    except SourceError as error:
        problem = str(error)
    return FinishedRun(
        log=str(log.path),
        name=run.name,
        format=log.recognition.format,
        points=points.kept,
        step_name=step_name,
        skipped=dict(skipped),
        restarts=restarts,
        error=problem,
    )


class _Points:
    """Points in the order of their log; a restart takes back what it replaces at the cost of that."""

    def __init__(self) -> None:
        self.kept: list[Point] = []
        # The highest step up to each point: behind the last one that is low enough, nothing is replaced.
        self._highest: list[float] = []

    def extend(self, points: Iterable[Point]) -> None:
        start = len(self.kept)
        self.kept.extend(points)
        highest = self._highest[-1] if self._highest else -math.inf
        for point in islice(self.kept, start, None):
            highest = max(highest, point.step)
            self._highest.append(highest)

    def restart(self, restart: Restart) -> None:
        keep = 0 if restart.step is None else bisect_left(self._highest, restart.step)
        behind = self.kept[keep:]
        del self.kept[keep:], self._highest[keep:]
        if restart.step is not None:
            step = restart.step
            self.extend(point for point in behind if point.step < step)


def _logs_below(folder: Path) -> Iterator[Log]:
    """Walk a folder for logs. An adapter that takes a whole folder isn't asked again for what is in it.

    Nor is any other about files that belong to the runs there.
    """
    taken: dict[Path, frozenset[str]] = {}
    owning: dict[str, OwningAdapter] = {}
    for parent, folders, files in os.walk(folder, onerror=_only_root(folder)):
        here = Path(parent)
        owners = taken.get(here.parent, frozenset()) if here != folder else frozenset[str]()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        while found := plugins.recognise(here, without=owners):
            name, adapter, recognition = found
            owners |= {name}
            if isinstance(adapter, OwningAdapter):
                owning[name] = adapter
            yield Log(here, adapter, recognition)
        taken[here] = owners
        for file in sorted(files):
            path = here / file
            if file.startswith(".") or not path.is_file():
                continue
            if any(owning[name].owns(path) for name in owners & owning.keys()):
                continue
            try:
                found = plugins.recognise(path, without=owners)
            except OSError as error:
                raise UsageError(_unreadable(path, error)) from error
            if found:
                yield Log(path, found[1], found[2])


def _only_root(folder: Path) -> Callable[[OSError], None]:
    def told(error: OSError) -> None:
        # A folder below that can't be listed costs its own logs only; the one asked for costs all.
        if error.filename is not None and Path(error.filename) == folder:
            raise UsageError(_unreadable(folder, error)) from error

    return told


def _unreadable(path: Path, error: OSError) -> str:
    cure = {
        FileNotFoundError: "; check the path",
        PermissionError: "; run as somebody who may read it",
    }.get(type(error), "")
    return f"{path}: can't be read: {error.strerror or error}{cure}"


def _tell_terminal(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


class _Progress:
    """Tells how far the reading of one log is, at most once a second and not before `QUIET_S`."""

    def __init__(self, path: Path, talk: Talk) -> None:
        self.path = path
        self.talk = talk
        self.next_at = time.monotonic() + QUIET_S
        self.told = False

    def at(self, run: str, points: int) -> None:
        if time.monotonic() >= self.next_at:
            self.talk(f"reading {self.path}: run {run!r}, {points:,} points")
            self.told = True
            self.next_at = time.monotonic() + 1.0

    def end(self) -> None:
        if self.told:
            self.talk("")
