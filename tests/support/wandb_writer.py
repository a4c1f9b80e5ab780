"""Writes ``.wandb`` files byte by byte, as their format says; and a short way to read them."""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wtwin_adapters.wandb_files import WandbFilesSource
from wtwin_watch.model import ROW_LOGGED, Batch, Cursor, Point, Run
from wtwin_watch.testing import ManualClock, points_of, read_on

HEADER = b":W&B\xe1\xbe\x00"
BLOCK = 32768


def varint(value: int) -> bytes:
    """A number as protocol buffers write it."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    """A field that holds a whole number."""
    return varint(field << 3) + varint(value)


def message(field: int, data: bytes | str) -> bytes:
    """A field that holds bytes, a text or a message."""
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def double(field: int, value: float) -> bytes:
    """A field that holds a double."""
    return varint(field << 3 | 1) + struct.pack("<d", value)


def item(name: str | list[str], raw: str | bytes) -> bytes:
    """A value of a row, by the JSON of it; a name in parts is nested."""
    parts = [name] if isinstance(name, str) else name
    return message(1, b"".join(message(2, part) for part in parts) + message(16, raw))


def history(step: int | None, *items: bytes, **values: Any) -> bytes:
    """A row as wandb 0.31 logs it."""
    named = [item(name, json.dumps(value)) for name, value in values.items()]
    steps = [] if step is None else [item("_step", str(step))]
    return message(2, b"".join([*named, *items, *steps]) + message(2, b""))


def summary(**values: Any) -> bytes:
    """What follows a row."""
    return message(
        3, b"".join(message(1, message(1, k) + message(16, str(values[k]))) for k in values)
    )


def run(id_: str = "abc", **texts: str) -> bytes:
    """What the run is called."""
    fields = {"entity": 2, "project": 3, "group": 6, "name": 8, "tag": 10}
    return message(17, message(1, id_) + b"".join(message(fields[k], texts[k]) for k in texts))


def end(code: int = 0) -> bytes:
    """What a process logs when it ends in order."""
    return message(18, number(1, code) if code else b"")


PREEMPTING = message(23, b"")
STATS = message(7, message(3, message(1, "cpu") + message(16, "0.5")))


def framed(records: Iterable[bytes], start: int = len(HEADER)) -> bytes:
    """Frame records as a writer does whose file has ``start`` bytes."""
    out = bytearray()
    for data in records:
        rest, first = data, True
        while first or rest:
            left = BLOCK - (start + len(out)) % BLOCK
            if left < 7:
                out += bytes(left)
                left = BLOCK
            piece, rest = rest[: left - 7], rest[left - 7 :]
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}
            body = bytes([kind[first, not rest]]) + piece
            out += struct.pack("<IH", zlib.crc32(body), len(piece)) + body
            first = False
    return bytes(out)


def numbered(records: Iterable[bytes]) -> list[bytes]:
    """Give records their numbers, with which they begin."""
    return [number(1, i + 1) + data for i, data in enumerate(records)]


def losses(steps: Iterable[int]) -> list[bytes]:
    """A row a step with its summary, as wandb logs them; the values are powers of two."""
    return [r for s in steps for r in (history(s, loss=2.0 ** -(s % 32)), summary(loss=0.5))]


class WandbLog:
    """A folder ``wandb`` and the source that reads it."""

    def __init__(self, folder: Path, run_id: str = "abc", **options: str):
        self.folder = folder / "wandb"
        self.id = run_id
        self.clock = ManualClock()
        given = WandbFilesSource.Options(path=self.folder, **options)
        self.source = WandbFilesSource("w", given, self.clock)
        self.cursor: Cursor | None = None
        self.begin("offline-run-20260101_000000")

    def begin(self, directory: str) -> None:
        """Start a process that writes a directory of its own."""
        self.directory = self.folder / f"{directory}-{self.id}"
        self.directory.mkdir(parents=True)
        self.file = self.directory / f"run-{self.id}.wandb"
        self.file.write_bytes(HEADER)

    def write(self, *records: bytes) -> None:
        """Append records."""
        self.append(framed(numbered(records), self.file.stat().st_size))

    def append(self, data: bytes) -> None:
        """Append bytes."""
        with self.file.open("ab") as file:
            file.write(data)

    def run(self) -> Run:
        """The only run there is."""
        (found,) = self.source.runs()
        return found

    def read(self, limit: int = 10_000) -> list[Batch]:
        """Read on from where the last read stopped."""
        batches = read_on(self.source, self.run(), self.cursor, limit)
        self.cursor = batches[-1].cursor
        return batches

    def losses(self, metric: str = "loss") -> list[tuple[float, float]]:
        """Read on; step and value of one metric."""
        return [(p.step, p.value) for p in points_of(self.read()) if p.metric == metric]


def shown(points: Iterable[Point]) -> list[tuple[str, float, str]]:
    """Points with a value, NaN equal to NaN."""
    return [(p.metric, p.step, repr(p.value)) for p in points if p.metric != ROW_LOGGED]


NAN = math.nan
