"""What a ``.wandb`` file says of its run apart from its metrics: what it is called, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

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
