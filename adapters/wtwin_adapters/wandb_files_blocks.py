"""The frames of a ``.wandb`` file: blocks of 32 KiB with checked chunks, which together are its records.

A chunk is a CRC-32 (of what follows the length), a length, a kind and a piece of a record; it never
crosses the border of a block. That is why reading finds its way again after damage: at the next block.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator

MAGIC = b":W&B\xe1\xbe\x00"
"""How every file begins."""
BLOCK = 1 << 15
MAX_RECORD = 1 << 24
"""A larger record is passed over, in bytes."""
CORRUPT = "corrupt record"
"""Why something is passed over: bytes that were written otherwise, or never."""
TOO_LARGE = "record over 16 MiB"

_MOST_BLOCKS = 16
_FRAME = struct.Struct("<IHB")
_KIND_AT = 6
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_UNFINISHED, _DAMAGED = -1, -2

Piece = tuple[bytes | str, int]
"""A record, or why there is none (`CORRUPT`, `TOO_LARGE`); and the offset behind it."""


class Blocks:
    """The records of an open file from ``offset`` on, which is where a record begins, or a block.

    Iterating ends where the file does, or where what there is of it isn't whole yet; ``damaged`` then
    says that it ended at bytes that are no chunk. Holds half a MiB of the file, and one record.
    """

    def __init__(self, fd: int, offset: int) -> None:
        self._fd = fd
        self._offset = max(offset, len(MAGIC))
        self.damaged = False

    def __iter__(self) -> Iterator[Piece]:
        """Give the records in their order."""
        parts: list[bytes] | None = None
        held = 0
        for kind, content, start, stop in self._chunks():
            if kind == _DAMAGED:
                parts = None
                yield CORRUPT, stop
                continue
            if kind in (_FULL, _FIRST):
                if parts is not None:
                    # The record before was never written to its end.
                    yield CORRUPT, start
                parts, held = [], 0
            elif parts is None:
                continue
            parts.append(content)
            held += len(content)
            if held > MAX_RECORD:
                parts = None
                yield TOO_LARGE, stop
            elif kind in (_FULL, _LAST):
                yield b"".join(parts), stop
                parts = None

    def _chunks(self) -> Iterator[tuple[int, bytes, int, int]]:
        """Give kind, content, beginning and end of each chunk, and of what is damaged between them."""
        base, whole, blocks = self._offset, True, 1
        while whole:
            want = (base // BLOCK + blocks) * BLOCK - base
            blocks = min(2 * blocks, _MOST_BLOCKS)
            data = os.pread(self._fd, want, base)
            pos, end, whole = 0, len(data), len(data) == want
            while pos < end:
                left = BLOCK - ((base + pos) & (BLOCK - 1))
                if left < _FRAME.size:
                    pos += left
                    continue
                kind, stop = _chunk(data, pos, left)
                if kind == _DAMAGED:
                    there = _next(data, pos, stop, left)
                    if there is None:
                        # Zeros may be bytes that are not there yet, on a network file system.
                        self.damaged = any(data[pos + _FRAME.size : stop])
                        return
                    stop = there
                elif kind == _UNFINISHED:
                    return
                yield kind, data[pos + _FRAME.size : stop], base + pos, base + stop
                pos = stop
            base += end


def _chunk(data: bytes, pos: int, left: int) -> tuple[int, int]:
    """Say what is at ``pos``, ``left`` bytes before its block's end: the kind of a chunk, and its end."""
    content = pos + _FRAME.size
    if content > len(data):
        return _UNFINISHED, content
    crc, length, kind = _FRAME.unpack_from(data, pos)
    stop = content + length
    if not _FULL <= kind <= _LAST or stop > pos + left:
        return _DAMAGED, len(data)
    if stop > len(data):
        return _UNFINISHED, stop
    sound = zlib.crc32(data[pos + _KIND_AT : stop]) == crc
    return (kind if sound else _DAMAGED), stop


def _next(data: bytes, pos: int, stop: int, left: int) -> int | None:
    """Where to go on after a damaged chunk from ``pos`` to ``stop``; None if it may still be written.

    Only what the chunk holds may be wrong: then a sound one follows it. Else what it says of its length
    is worth nothing, and the next block is where the next chunk surely begins.
    """
    over = pos + left
    if stop + _FRAME.size <= min(over, len(data)) and _chunk(data, stop, over - stop)[0] > 0:
        return stop
    return over if over <= len(data) else None
