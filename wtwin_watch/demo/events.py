"""TensorBoard event files with scalars, written without TensorBoard.

A file is a row of records, framed as TFRecord does it: the length as a little-endian 64-bit number, a masked
CRC-32C of those 8 bytes, the data, a masked CRC-32C of the data. The data is a protocol-buffer ``Event``, of
which only the fields that scalars need are written here::

    Event   { 1: double wall_time  2: int64 step  3: string file_version  5: Summary summary }
    Summary { 1: Value { 1: string tag  2: float simple_value } }
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from pathlib import Path

_FIXED64, _BYTES, _FIXED32, _VARINT = 1, 2, 5, 0


class EventWriter:
    """Writes one event file into ``folder``; each record is in the file when the call returns.

    Values are stored as 32-bit floats; steps must be at least 0. The file's name is as TensorBoard
    expects it: ``events.out.tfevents.<seconds>.<name>``.
    """

    def __init__(self, folder: Path, name: str = "demo") -> None:
        now = time.time()
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"events.out.tfevents.{int(now):010d}.{name}"
        self._file = self.path.open("xb", buffering=0)
        self._file.write(record(event(now, file_version="brain.Event:2")))

    def add(self, step: int, values: Mapping[str, float], wall_time: float) -> None:
        """Append one event with a scalar for each tag in ``values``."""
        self._file.write(record(event(wall_time, step=step, values=values)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def record(data: bytes) -> bytes:
    """Frame ``data`` as one TFRecord."""
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def event(
    wall_time: float,
    step: int = 0,
    values: Mapping[str, float] | None = None,
    file_version: str | None = None,
) -> bytes:
    """Encode an ``Event``: a file's first has ``file_version``, the others ``step`` and ``values``."""
    message = _field(1, _FIXED64, struct.pack("<d", wall_time))
    if step:
        message += _field(2, _VARINT, _varint(step))
    if file_version is not None:
        message += _text(3, file_version.encode())
    if values:
        message += _text(5, b"".join(_text(1, _value(*item)) for item in values.items()))
    return message


def crc32c(data: bytes) -> int:
    """The CRC-32C (Castagnoli) of ``data``, as RFC 3720 defines it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _value(tag: str, value: float) -> bytes:
    return _text(1, tag.encode()) + _field(2, _FIXED32, struct.pack("<f", value))


def _field(number: int, wire_type: int, encoded: bytes) -> bytes:
    return _varint(number << 3 | wire_type) + encoded


def _text(number: int, content: bytes) -> bytes:
    return _field(number, _BYTES, _varint(len(content)) + content)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >> 7:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    # TFRecord stores it rotated and shifted, so that a checksum of data holding checksums stays good.
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_CRC_TABLE = _crc_table()
