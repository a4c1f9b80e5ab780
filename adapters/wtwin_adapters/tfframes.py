"""The frame around a record of a TFRecord file: its length, and the checksums."""

from __future__ import annotations

HEADER, FOOTER = 12, 4
"""Bytes of a record before its data and after it."""
_CHECKED = 1 << 20


def record_length(header: bytes) -> int | None:
    """The length that a record's first twelve bytes tell, or None if no record begins so."""
    if _masked_crc(header[:8]) != int.from_bytes(header[8:], "little"):
        return None
    return int.from_bytes(header[:8], "little")


def is_sound(data: bytes, start: int, stop: int) -> bool:
    """Check the data of the record in ``data[start:stop]``; one over a mebibyte is taken for unsound."""
    if stop - start > _CHECKED:
        return False
    return _masked_crc(data[start:stop]) == int.from_bytes(data[stop : stop + FOOTER], "little")


def _crc_table() -> list[int]:
    table = []
    for i in range(256):
        crc = i
        for _ in range(8):
            crc = (crc >> 1) ^ 0x82F63B78 if crc & 1 else crc >> 1
        table.append(crc)
    return table


_TABLE = _crc_table()


def _masked_crc(data: bytes) -> int:
    """CRC-32C (Castagnoli), rotated and shifted as TFRecord files store it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
