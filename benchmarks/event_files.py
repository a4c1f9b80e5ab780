"""Large event files, made in seconds: records of one length, their checksums computed side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto

Bytes = NDArray[np.uint8]
_FIRST_STEP = 1 << 14
"""From here to 2^21 a step takes three bytes."""
_WALL_AT, _STEP_AT = 1, 10
_AT_ONCE = 1 << 16


def write_scalars(path: Path, count: int, *, new_style: bool) -> None:
    """Write ``count`` scalars of one tag, a step each, as ``add_scalar`` does with its old or new style."""
    value = Summary.Value(tag="train/loss")
    if new_style:
        tensor = TensorProto(dtype=1, tensor_shape={}, float_val=[1.0])
        value.tensor.CopyFrom(tensor)
        value.metadata.plugin_data.plugin_name = "scalars"
    else:
        value.simple_value = 1.0
    event = Event(wall_time=1.7e9, step=_FIRST_STEP, summary=Summary(value=[value]))
    template = event.SerializeToString()
    value_at = template.index(np.float32(1.0).tobytes())
    first = Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString()
    with path.open("wb") as file:
        file.write(_framed(np.frombuffer(first, np.uint8)[None]).tobytes())
        for start in range(0, count, _AT_ONCE):
            numbers = np.arange(start, min(start + _AT_ONCE, count))
            events = np.tile(np.frombuffer(template, np.uint8), (len(numbers), 1))
            _put(events, _WALL_AT, 1.7e9 + numbers * 0.1)
            _put(events, value_at, (2 + 3 / np.sqrt(1 + numbers)).astype("<f4"))
            steps = _FIRST_STEP + numbers
            for i, more in enumerate((128, 128, 0)):
                events[:, _STEP_AT + i] = steps >> 7 * i & 127 | more
            file.write(_framed(events).tobytes())


def _put(events: Bytes, at: int, values: NDArray[np.float64] | NDArray[np.float32]) -> None:
    raw = values.reshape(-1, 1).view(np.uint8)
    events[:, at : at + raw.shape[1]] = raw


def _framed(events: Bytes) -> Bytes:
    """Frame each row as a TFRecord."""
    count, length = events.shape
    header = np.frombuffer(length.to_bytes(8, "little"), np.uint8)[None]
    parts = [header, _masked_crc(header), events, _masked_crc(events)]
    return np.concatenate([np.broadcast_to(part, (count, part.shape[1])) for part in parts], axis=1)


def _masked_crc(rows: Bytes) -> Bytes:
    """CRC-32C of each row, masked, as four bytes."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ 0x82F63B78, table >> 1).astype(np.uint32)
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in rows.T:
        crc = crc >> 8 ^ table[(crc ^ column) & 255]
    crc ^= np.uint32(0xFFFFFFFF)
    masked = (crc >> 15 | crc << 17) + np.uint32(0xA282EAD8)
    return masked.astype("<u4").reshape(-1, 1).view(np.uint8)
