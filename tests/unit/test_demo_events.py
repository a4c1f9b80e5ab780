import math
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from wtwin_watch.demo.events import EventWriter, crc32c


@pytest.mark.parametrize(
    ("data", "crc"),
    [  # RFC 3720, appendix B.4
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
    ],
)
def test_the_checksum_is_the_one_of_the_standard(data: bytes, crc: int):
    assert crc32c(data) == crc


def test_tensorboard_reads_what_was_written(tmp_path: Path):
    writer = EventWriter(tmp_path / "run")
    writer.add(1, {"train/loss": 1.5, "lr": 0.25}, wall_time=1000.5)
    writer.add(300, {"train/loss": -0.125}, wall_time=1001.0)
    writer.add(2**40, {"verlust/größe": 3.0}, wall_time=1002.0)
    writer.close()

    first, *events = EventFileLoader(str(writer.path)).Load()

    assert first.file_version == "brain.Event:2"
    assert [(e.wall_time, e.step, _scalars(e)) for e in events] == [
        (1000.5, 1, {"train/loss": 1.5, "lr": 0.25}),
        (1001.0, 300, {"train/loss": -0.125}),
        (1002.0, 2**40, {"verlust/größe": 3.0}),
    ]


def test_tensorboard_finds_the_file_by_its_name(tmp_path: Path):
    from tensorboard.backend.event_processing.io_wrapper import (
        IsTensorFlowEventsFile,
    )

    writer = EventWriter(tmp_path)
    writer.close()

    assert IsTensorFlowEventsFile(str(writer.path))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers_are_written_as_they_are(tmp_path: Path, value: float):
    writer = EventWriter(tmp_path)
    writer.add(7, {"loss": value}, wall_time=1.0)
    writer.close()

    [_, event] = EventFileLoader(str(writer.path)).Load()

    [read] = _scalars(event).values()
    assert read == value or (math.isnan(read) and math.isnan(value))


def test_an_event_can_be_read_as_soon_as_it_is_added(tmp_path: Path):
    writer = EventWriter(tmp_path)
    loader = EventFileLoader(str(writer.path))
    list(loader.Load())

    writer.add(1, {"loss": 2.0}, wall_time=1.0)

    assert [e.step for e in loader.Load()] == [1]
    writer.close()


def _scalars(event) -> dict[str, float]:
    # The loader turns simple values into tensors, as TensorBoard's own pages want them.
    return {value.tag: value.tensor.float_val[0] for value in event.summary.value}
