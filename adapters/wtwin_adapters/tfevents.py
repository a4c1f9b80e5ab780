"""Decoding TensorBoard events: the few fields of the protocol buffers that hold scalars.

Everything here is bounded by the record and raises ValueError on bytes that are no event. Field numbers
are those of tensorflow's event.proto, summary.proto and tensor.proto.
"""

# Field numbers are written as numbers: the names of the fields stand in the protos.
# ruff: noqa: PLR2004

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from wtwin_adapters.wire import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    as_signed,
    fields,
    float32,
    float64,
    varint,
)

_SESSION_START = 1


@dataclass(slots=True)
class Event:
    """What an event says as far as monitors are concerned."""

    wall_time: float = 0.0
    step: int = 0
    starts_session: bool = False
    values: list[tuple[bytes, float]] = field(default_factory=list)


def decode(
    data: bytes, start: int, end: int, wanted: Callable[[bytes], bool], others: set[bytes]
) -> Event:
    """Decode the event in ``data[start:end]``, values of ``wanted`` tags alone.

    ``others`` holds the tags that belong to another plugin than scalars, and learns from this event:
    writers say it only with the first value of a tag. Raises ValueError.
    """
    event = Event()
    summaries = []
    for number, wire, a, b in fields(data, start, end):
        if number == 1 and wire == FIXED64:
            event.wall_time = float64(data, a)[0]
        elif number == 2 and wire == VARINT:
            event.step = as_signed(a)
        elif number == 5 and wire == BYTES:
            summaries.append((a, b))
        elif number == 7 and wire == BYTES:
            status = [v for n, w, v, _ in fields(data, a, b) if n == 1 and w == VARINT]
            event.starts_session = status[-1:] == [_SESSION_START]
    for a, b in summaries:
        for number, wire, c, d in fields(data, a, b):
            if number == 1 and wire == BYTES:
                tag, value = _value(data, c, d, wanted, others)
                if value is not None:
                    event.values.append((tag, value))
    return event


def plugin_of(data: bytes, start: int, end: int) -> bytes:
    """The plugin that a summary's metadata names, empty if none."""
    name = b""
    for number, wire, a, b in fields(data, start, end):
        if number == 1 and wire == BYTES:
            for inner, inner_wire, c, d in fields(data, a, b):
                if inner == 1 and inner_wire == BYTES:
                    name = data[c:d]
    return name


def _value(
    data: bytes, start: int, end: int, wanted: Callable[[bytes], bool], others: set[bytes]
) -> tuple[bytes, float | None]:
    tag, simple, tensor, plugin = b"", None, None, None
    for number, wire, a, b in fields(data, start, end):
        if number == 1 and wire == BYTES:
            tag = data[a:b]
        elif number == 2 and wire == FIXED32:
            simple = float32(data, a)[0]
        elif number == 8 and wire == BYTES:
            tensor = (a, b)
        elif number == 9 and wire == BYTES:
            plugin = plugin_of(data, a, b)
    if not wanted(tag):
        return tag, None
    if plugin is not None:
        (others.discard if plugin in (b"", b"scalars") else others.add)(tag)
    if simple is not None:
        return tag, simple
    if tensor is None or tag in others:
        return tag, None
    return tag, _scalar(data, *tensor)


# How a scalar of a data type lies in tensor_content, and in which field otherwise.
_FORMATS = {
    1: ("<f", 5),
    2: ("<d", 6),
    3: ("<i", 7),
    4: ("<B", 7),
    5: ("<h", 7),
    6: ("<b", 7),
    9: ("<q", 10),
    17: ("<H", 7),
    22: ("<I", 16),
    23: ("<Q", 17),
}
_BFLOAT16, _HALF = 14, 19
_HALF_FIELD = 13


def _scalar(data: bytes, start: int, end: int) -> float | None:
    """The number in a tensor of rank 0, or None if it is something else."""
    kind, content = 0, b""
    filled: dict[int, tuple[int, int, int]] = {}
    for number, wire, a, b in fields(data, start, end):
        if number == 1 and wire == VARINT:
            kind = a
        elif number == 2 and wire == BYTES:
            if any(n in (2, 3) for n, *_ in fields(data, a, b)):
                return None
        elif number == 4 and wire == BYTES:
            content = data[a:b]
        else:
            filled[number] = (wire, a, b)
    if kind in (_BFLOAT16, _HALF):
        bits = _integer(data, filled.get(_HALF_FIELD), signed=False)
        raw = content or (b"" if bits is None or bits >> 16 else bits.to_bytes(2, "little"))
        # A bfloat16 is the upper half of a float.
        return _unpack("<e", raw) if kind == _HALF else _unpack("<f", b"\0\0" + raw)
    if kind not in _FORMATS:
        return None
    form, number = _FORMATS[kind]
    if content:
        return _unpack(form, content)
    if form in ("<f", "<d"):
        _, a, b = filled.get(number, (0, 0, 0))
        return _unpack(form, data[a:b])
    integer = _integer(data, filled.get(number), signed=form not in ("<I", "<Q"))
    return None if integer is None else float(integer)


def _unpack(form: str, raw: bytes) -> float | None:
    """The only number in ``raw``, or None if that isn't what it holds."""
    return float(struct.unpack(form, raw)[0]) if len(raw) == struct.calcsize(form) else None


def _integer(data: bytes, where: tuple[int, int, int] | None, *, signed: bool) -> int | None:
    if where is None:
        return None
    wire, a, b = where
    if wire == BYTES:
        a, after = varint(data, a, b)
        if after != b:
            return None
    elif wire != VARINT:
        return None
    return as_signed(a) if signed else a
