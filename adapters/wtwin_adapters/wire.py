"""The wire format of protocol buffers: walking the fields of a message without its description."""

# The numbers are those of the format: seven bits of a number a byte, the eighth says that it goes on.
# ruff: noqa: PLR2004

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""The types of a field on the wire."""
_SIGN = 1 << 63
_LONGEST_VARINT = 64

float32 = struct.Struct("<f").unpack_from
float64 = struct.Struct("<d").unpack_from

Field = tuple[int, int, int, int]
"""Number, wire type, then a value and 0, or where the bytes begin and end."""


def fields(data: bytes, start: int, end: int) -> Iterator[Field]:
    """Walk the fields of a message. Raises ValueError where it isn't one."""
    i = start
    while i < end:
        key, i = varint(data, i, end)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise ValueError("field number 0")
        if wire == VARINT:
            value, i = varint(data, i, end)
            yield number, wire, value, 0
            continue
        if wire == BYTES:
            size, i = varint(data, i, end)
        elif wire == FIXED64:
            size = 8
        elif wire == FIXED32:
            size = 4
        else:
            raise ValueError(f"wire type {wire}")
        if size > end - i:
            raise ValueError("a field is longer than its message")
        yield number, wire, i, i + size
        i += size


def varint(data: bytes, i: int, end: int) -> tuple[int, int]:
    """Read a number at ``i``; gives it, and where it ends. Raises ValueError where it doesn't."""
    value = shift = 0
    while i < end and shift < _LONGEST_VARINT:
        byte = data[i]
        i += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (2 * _SIGN - 1), i
        shift += 7
    raise ValueError("a number without an end")


def as_signed(value: int) -> int:
    """What a number means in a field of a signed type."""
    return value - 2 * _SIGN if value >= _SIGN else value
