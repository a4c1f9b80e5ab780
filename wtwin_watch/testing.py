"""For tests of plugins: a clock that is moved by hand, and what every adapter must do.

`check_adapter` is the contract of `wtwin_watch.protocols.Source` as a test; run it on logs of your own:

    def test_the_adapter_keeps_the_contract(tmp_path):
        write_a_log(tmp_path)
        check_adapter(lambda: MySource("mine", MySource.Options(path=str(tmp_path))))
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from wtwin_watch.model import Batch, Cursor, Point, Restart, Run, RunStatus
from wtwin_watch.protocols import ConsoleSource, Source

LIMITS = (1, 2, 3, 7, 100, 100_000)
"""Limits that a log is read with, all of which must bring the same points."""
_MAX_FETCHES = 1_000_000
_REOPENED = 100


class ManualClock:
    """A clock that stands still until it is moved. Both its times move together, in seconds."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def time(self) -> float:
        """Unix seconds."""
        return self.now

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        self.now += seconds


def read_on(
    source: Source, run: Run, cursor: Cursor | None = None, limit: int = 10_000
) -> list[Batch]:
    """Fetch until there is no more; gives every batch, at least one."""
    batches: list[Batch] = []
    while not batches or batches[-1].more:
        batches.append(source.fetch(run, batches[-1].cursor if batches else cursor, limit))
        assert len(batches) < _MAX_FETCHES, f"reading {run.key} doesn't come to an end"
    return batches


def points_of(batches: Iterable[Batch]) -> list[Point]:
    """All points of ``batches``, also those that a later restart replaces."""
    return [point for batch in batches for point in batch.points]


def check_adapter(
    open_source: Callable[[], Source], *, limits: Sequence[int] = LIMITS
) -> dict[str, list[Point]]:
    """Check that sources made by ``open_source`` keep the contract, on logs that don't change meanwhile.

    Returns the points of each run by the run's id, so that a test can compare them with what was
    written. Raises AssertionError saying what is wrong. Reads every run once a limit, and twice more.
    """
    source = open_source()
    try:
        runs = _check_runs(source)
        for folder in source.roots():
            assert isinstance(folder, Path), f"a root is {folder!r}, not a Path"
        return {run.key.run: _check_run(open_source, source, run, limits) for run in runs}
    finally:
        source.close()


def _check_runs(source: Source) -> list[Run]:
    runs = list(source.runs())
    keys = [run.key for run in runs]
    assert len(set(keys)) == len(keys), f"a run is listed twice: {keys}"
    assert len({key.source for key in keys}) <= 1, f"runs name several sources: {keys}"
    again = list(source.runs())
    assert again == runs, "two lists of runs differ though nothing was logged between them"
    for run in runs:
        assert run.name, f"{run.key} has no name"
        said = [
            run.key.run,
            run.name,
            run.version,
            run.last_activity,
            run.url,
            run.group,
            *run.tags,
        ]
        json.dumps([*said, run.exit_code], allow_nan=False)
        f"{run.key.run}{run.name}".encode()
        assert isinstance(run.status, RunStatus), f"the status of {run.key} is {run.status!r}"
        assert isinstance(run.tags, tuple), f"the tags of {run.key} are no tuple: {run.tags!r}"
        _check_last_lines(source, run)
    return runs


def _check_last_lines(source: Source, run: Run) -> None:
    if not isinstance(source, ConsoleSource):
        return
    asked = 3
    lines = source.last_lines(run, asked)
    assert len(lines) <= asked, (
        f"{run.key} gives {len(lines)} last lines where {asked} were asked for"
    )
    for line in lines:
        assert isinstance(line, str), f"a last line of {run.key} is {line!r}"
        assert "\n" not in line, f"a last line of {run.key} holds a line break: {line!r}"


def _check_run(
    open_source: Callable[[], Source], source: Source, run: Run, limits: Sequence[int]
) -> list[Point]:
    whole = _read(source, run, max(limits))
    said = _said(whole)
    for limit in limits:
        batches = _read(source, run, limit)
        assert _said(batches) == said, f"{run.key} says something else when read by {limit} points"
        if len(batches) <= _REOPENED:
            _check_going_on(open_source, run, batches, limit)
    end = whole[-1].cursor
    after = _fetch(source, run, end, max(limits))
    nothing = not after.points and not after.more and after.restart is None and not after.skipped
    assert nothing, f"{run.key} brings something after its end: {after}"
    assert after.cursor == end, f"the cursor of {run.key} moves though nothing is new"
    return points_of(whole)


def _read(source: Source, run: Run, limit: int) -> list[Batch]:
    batches = [_fetch(source, run, None, limit)]
    while batches[-1].more:
        batches.append(_fetch(source, run, batches[-1].cursor, limit))
        assert len(batches) < _MAX_FETCHES, f"reading {run.key} doesn't come to an end"
    return batches


def _fetch(source: Source, run: Run, cursor: Cursor | None, limit: int) -> Batch:
    """Fetch from a copy of ``cursor``, as one that was stored, and check what comes."""
    stored = json.loads(json.dumps(cursor))
    batch = source.fetch(run, stored, limit)
    assert stored == cursor, f"fetching changed the cursor of {run.key} it was given"
    _check_batch(run, batch, limit)
    return batch


def _check_batch(run: Run, batch: Batch, limit: int) -> None:
    assert len(batch.points) <= limit, f"{run.key}: {len(batch.points)} points, limit {limit}"
    text = json.dumps(batch.cursor, allow_nan=False)
    assert json.loads(text) == batch.cursor, f"the cursor of {run.key} is changed by JSON: {text}"
    for point in batch.points:
        assert isinstance(point, Point), f"{point!r} is no Point"
        assert isinstance(point.metric, str), f"{point!r} has no metric"
        assert isinstance(point.step, float), f"the step of {point!r} is no float"
        assert math.isfinite(point.step), f"the step of {point!r} is not finite"
        assert isinstance(point.value, float), f"the value of {point!r} is no float"
        assert point.wall_time is None or math.isfinite(point.wall_time), f"when was {point!r}?"
    assert all(count > 0 for count in batch.skipped.values()), f"skipped none: {batch.skipped}"


def _check_going_on(
    open_source: Callable[[], Source], run: Run, batches: list[Batch], limit: int
) -> None:
    """A source opened later goes on from a stored cursor as this one would."""
    for batch, expected in pairwise(batches):
        later = open_source()
        try:
            list(later.runs())
            following = _fetch(later, run, batch.cursor, limit)
        finally:
            later.close()
        assert _said([following]) == _said([expected]), (
            f"{run.key} goes on in another way from a stored cursor: {following}"
        )


def _said(batches: Iterable[Batch]) -> list[tuple[str, ...] | Restart]:
    """What batches say, however it is cut: points and restarts in their order, NaN equal to NaN."""
    said: list[tuple[str, ...] | Restart] = []
    for batch in batches:
        if batch.restart is not None:
            said.append(batch.restart)
        said += [tuple(map(repr, point)) for point in batch.points]
    return said
