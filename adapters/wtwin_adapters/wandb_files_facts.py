"""What a ``.wandb`` file says of its run apart from its metrics: what it is called, and how it ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from wtwin_adapters.files import opened
from wtwin_adapters.stamps import Stamp
from wtwin_adapters.wandb_files_blocks import BLOCK, MAGIC, Blocks
from wtwin_adapters.wandb_records import (
    EXIT,
    PREEMPTING,
    RUN,
    STATS,
    RunFacts,
    exit_code,
    parts,
    run_facts,
)
from wtwin_watch.errors import SourceError
from wtwin_watch.model import RunStatus

SILENT_S = 300.0
"""A run whose process logs its machine's state is taken for dead after this long without it, seconds."""
_MAX_HEAD = 1 << 20
_END = 1 << 12
_LONG_END = 1 << 20
_Fact = TypeVar("_Fact")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a file ends."""

    exit_code: int | None = None
    """What the run's process said at its end; None: nothing yet, or it died."""
    preempting: bool = False
    """It was told that it would be preempted."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a file said when it was looked at."""

    stamp: Stamp
    run: RunFacts | None = None
    ending: Ending = field(default_factory=Ending)
    silent: bool | None = None
    """Once it is silent: whether that means that its process is dead."""
    readable: bool = True

    @property
    def look_again_at(self) -> float:
        """From when on it may say something else though it doesn't change, unix seconds."""
        if not self.readable:
            return -math.inf
        waits = self.ending.exit_code is None and self.silent is None
        return self.stamp.mtime_ns / 1e9 + SILENT_S if waits else math.inf

    @property
    def status(self) -> RunStatus:
        """The state of a run whose latest file this is."""
        ending = self.ending
        if ending.exit_code == 0:
            return RunStatus.FINISHED
        if ending.exit_code is None and not self.silent:
            return RunStatus.RUNNING if self.silent is None else RunStatus.UNKNOWN
        if ending.preempting:
            return RunStatus.PREEMPTED
        return RunStatus.CRASHED if ending.exit_code is None else RunStatus.FAILED


def look_at(stamp: Stamp, old: FileFacts | None, now: float) -> FileFacts:
    """Look at a file; reads nothing where it says what it said in ``old``."""
    if old is not None and old.stamp == stamp and now < old.look_again_at:
        return old
    same = old is not None and old.stamp.inode == stamp.inode
    run = old.run if old and same else None
    try:
        with opened(stamp.path) as fd:
            run = run or read_run_facts(fd)
            ending = read_ending(fd, stamp.size)
            silent = None
            if ending.exit_code is None and now >= stamp.mtime_ns / 1e9 + SILENT_S:
                silent = tells_of_itself(fd, stamp.size)
            return FileFacts(stamp, run, ending, silent)
    except SourceError:
        # What is wrong with it, fetching says.
        return FileFacts(stamp, run, readable=False)


def read_run_facts(fd: int) -> RunFacts | None:
    """Find what the run is called, at the beginning of the file; None if it isn't written yet."""
    for record, end in Blocks(fd, 0):
        if isinstance(record, bytes) and (found := _decoded(record, RUN, run_facts)) is not None:
            return found
        if end > _MAX_HEAD:
            break
    return None


def read_ending(fd: int, size: int) -> Ending:
    """Read how a file of ``size`` bytes ends: its last 4 KiB, and the rest of their block."""
    code, preempting = None, False
    for record in _last(fd, size, _END):
        found = _decoded(record, EXIT, exit_code)
        code = code if found is None else found
        preempting |= _decoded(record, PREEMPTING, lambda *_: True) is not None
    return Ending(code, preempting)


def tells_of_itself(fd: int, size: int) -> bool:
    """Whether the writer logs how its machine fares, four times a minute: then its silence means its end.

    Looks at the last MiB, since it is written between the rows.
    """
    found = (_decoded(record, STATS, lambda *_: True) for record in _last(fd, size, _LONG_END))
    return any(found)


def _last(fd: int, size: int, length: int) -> Iterator[bytes]:
    start = max(0, size - length) // BLOCK * BLOCK
    for record, _ in Blocks(fd, start if start else len(MAGIC)):
        if isinstance(record, bytes):
            yield record


def _decoded(record: bytes, field: int, decode: Callable[[bytes, int, int], _Fact]) -> _Fact | None:
    """Decode the message of ``field``; None where the record is another, or none at all."""
    try:
        found = parts(record).get(field)
        return None if found is None else decode(record, *found)
    except ValueError:
        return None
