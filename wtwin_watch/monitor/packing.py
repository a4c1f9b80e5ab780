"""Numbers in snapshots: many of them as base64 of little-endian doubles, NaN and infinity included."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterable

from wtwin_watch.errors import SnapshotError


def pack(values: Iterable[float]) -> str:
    """Write ``values`` as text, 10.7 characters a number."""
    numbers = list(values)
    return base64.b64encode(struct.pack(f"<{len(numbers)}d", *numbers)).decode("ascii")


def unpack(text: str) -> list[float]:
    """Read what `pack` wrote. Raises `SnapshotError`."""
    try:
        data = base64.b64decode(text, validate=True)
        return list(struct.unpack(f"<{len(data) // 8}d", data))
    except (binascii.Error, struct.error, TypeError, ValueError) as error:
        raise SnapshotError(f"a packed column of numbers can't be read: {error}") from error
