"""Event files: what counts as a scalar, and what damage costs."""

import math
import struct

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

from tests.support.writers import (
    EventLog,
    framed,
    record,
    scalar,
    scalars,
    session_start,
    skipped_of,
    tensor,
    version,
)
from wtwin_watch.model import Point

RANK_0 = TensorShapeProto()
FLOAT, DOUBLE, INT32, UINT8, INT64, BOOL, BFLOAT16, HALF, UINT32, UINT64 = (
    1, 2, 3, 4, 9, 10, 14, 19, 22, 23,
)  # fmt: skip


@pytest.fixture
def log(tmp_path):
    log = EventLog(tmp_path / "run")
    log.write(version())
    return log


def test_a_scalar_is_a_point_with_its_time(log):
    log.write(scalar(7, 0.5, wall_time=1.7e9 + 3))

    (batch,) = log.read()

    assert batch.points == [Point("loss", 7.0, 0.5, 1.7e9 + 3)]
    assert (batch.step_name, batch.position) == ("step", "event 2")


def test_only_metrics_that_a_monitor_may_want_are_read(log):
    log.write(scalar(1, 0.5, "train/loss"), scalar(1, 9.0, "gpu/temperature"), scalar(1, 0.1, "lr"))

    assert [p.metric for p in log.read()[0].points] == ["train/loss", "lr"]


def test_a_metric_can_be_named(tmp_path):
    log = EventLog(tmp_path, loss="objective")
    log.write(version(), scalar(1, 0.5, "objective"))

    assert log.losses("objective") == [(1.0, 0.5)]


@pytest.mark.parametrize(
    "step", [0, 1, 127, 128, 16383, 16384, 2**21, 2**28, 2**35, 2**40, -1, -(2**40)]
)
def test_steps_of_every_size_and_sign_are_steps(log, step):
    log.write(scalar(step, 0.5), scalar(step, 0.25))

    assert log.losses() == [(float(step), 0.5), (float(step), 0.25)]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_points(log, value):
    log.write(scalar(1, value), tensor(2, dtype=DOUBLE, tensor_shape=RANK_0, double_val=[value]))

    values = [v for _, v in log.losses()]

    assert list(map(repr, values)) == [repr(value)] * 2


@pytest.mark.parametrize(
    "proto",
    [
        {"dtype": FLOAT, "float_val": [0.5]},
        {"dtype": FLOAT, "tensor_content": struct.pack("<f", 0.5)},
        {"dtype": DOUBLE, "double_val": [0.5]},
        {"dtype": DOUBLE, "tensor_content": struct.pack("<d", 0.5)},
        {"dtype": HALF, "half_val": [0x3800]},
        {"dtype": HALF, "tensor_content": struct.pack("<e", 0.5)},
        {"dtype": BFLOAT16, "half_val": [0x3F00]},
        {"dtype": BFLOAT16, "tensor_content": b"\x00\x3f"},
    ],
)
@pytest.mark.parametrize("plugin", ["scalars", "", None])
def test_a_tensor_of_rank_0_is_a_scalar_in_every_width(log, proto, plugin):
    log.write(*(tensor(i, plugin=plugin, tensor_shape=RANK_0, **proto) for i in range(1, 4)))

    assert log.losses() == [(1.0, 0.5), (2.0, 0.5), (3.0, 0.5)]


@pytest.mark.parametrize(
    ("proto", "value"),
    [
        ({"dtype": INT32, "int_val": [-3]}, -3.0),
        ({"dtype": UINT8, "int_val": [200]}, 200.0),
        ({"dtype": INT64, "int64_val": [-(2**40)]}, -(2.0**40)),
        ({"dtype": INT64, "tensor_content": struct.pack("<q", -5)}, -5.0),
        ({"dtype": UINT32, "uint32_val": [2**32 - 1]}, 2.0**32 - 1),
        ({"dtype": UINT64, "uint64_val": [2**63]}, 2.0**63),
    ],
)
def test_a_whole_number_is_a_scalar(log, proto, value):
    log.write(tensor(1, tensor_shape=RANK_0, **proto))

    assert log.losses() == [(1.0, value)]


@pytest.mark.parametrize(
    "proto",
    [
        {"dtype": FLOAT, "tensor_shape": {"dim": [{"size": 2}]}, "float_val": [0.5, 0.25]},
        {"dtype": FLOAT, "tensor_shape": {"unknown_rank": True}, "float_val": [0.5]},
        {"dtype": FLOAT, "tensor_shape": RANK_0},
        {"dtype": FLOAT, "tensor_shape": RANK_0, "tensor_content": b"\0\0\0"},
        {"dtype": BOOL, "tensor_shape": RANK_0, "bool_val": [True]},
        {"dtype": HALF, "tensor_shape": RANK_0, "half_val": [1 << 20]},
    ],
)
def test_a_tensor_that_is_no_single_number_is_no_point(log, proto):
    log.write(tensor(1, plugin="scalars", **proto), scalar(2, 0.5))

    assert log.losses() == [(2.0, 0.5)]


def test_metadata_may_stand_in_the_first_event_of_a_tag_alone(log):
    kind = {"dtype": FLOAT, "tensor_shape": RANK_0}
    log.write(
        tensor(1, "loss", "scalars", float_val=[0.5], **kind),
        tensor(1, "val_loss", "histograms", float_val=[7.0], **kind),
    )
    first = log.read()
    log.write(
        tensor(2, "loss", float_val=[0.25], **kind), tensor(2, "val_loss", float_val=[8], **kind)
    )

    second = log.read()

    assert [(p.metric, p.step) for p in first[0].points + second[0].points] == [
        ("loss", 1.0),
        ("loss", 2.0),
    ]


def test_a_summary_may_hold_scalars_among_images_and_histograms(log):
    values = [
        Summary.Value(tag="image", image=Summary.Image(encoded_image_string=b"x" * 5000)),
        Summary.Value(tag="loss", simple_value=0.5),
        Summary.Value(tag="weights", histo={"min": 0, "bucket": [1.0] * 50}),
        Summary.Value(tag="lr", simple_value=0.25),
    ]
    log.write(record(Event(step=3, wall_time=1.7e9, summary=Summary(value=values))))

    assert [p[:3] for p in log.read()[0].points] == [("loss", 3.0, 0.5), ("lr", 3.0, 0.25)]


def test_a_summary_is_read_where_the_limit_is_smaller_than_its_points(log):
    values = [Summary.Value(tag=t, simple_value=1) for t in ("loss", "lr", "grad_norm")]
    log.write(*(record(Event(step=i, summary=Summary(value=values))) for i in (1, 2)))

    batches = log.read(limit=2)

    assert [len(batch.points) for batch in batches] == [2, 1, 2, 1]


def test_steps_that_go_back_are_a_restart_from_there(log):
    log.write(scalars(range(1, 6)), scalars(range(3, 5)))

    first, second = log.read()

    assert (len(first.points), first.restart) == (5, None)
    assert second.restart is not None
    assert (second.restart.step, second.restart.reason) == (3.0, "steps go back from 5 to 3")
    assert [p.step for p in second.points] == [3.0, 4.0]


def test_a_session_that_starts_at_a_step_restarts_the_run_there(log):
    log.write(scalars(range(1, 6)), session_start(4), scalars(range(4, 7)))

    first, second = log.read()

    assert first.restart is None
    assert second.restart is not None
    assert (second.restart.step, second.restart.reason) == (
        4.0,
        "the writer starts again at step 4",
    )
    assert [p.step for p in second.points] == [4.0, 5.0, 6.0]


def test_a_session_that_starts_behind_all_steps_changes_nothing(log):
    log.write(session_start(0), scalars(range(1, 4)), session_start(4), scalars(range(4, 6)))

    (batch,) = log.read()

    assert (len(batch.points), batch.restart) == (5, None)


@pytest.mark.parametrize("missing", [1, 4, 5, 20, -4])
def test_a_record_without_its_end_waits(log, missing):
    whole = scalar(1, 0.5)
    log.write(whole[:-missing] if missing > 0 else whole[: -len(whole) + 4])
    assert log.losses() == []

    log.write(whole[-missing:] if missing > 0 else whole[4:])

    assert log.losses() == [(1.0, 0.5)]


def test_a_tail_of_zeros_waits_without_a_word(log):
    log.write(scalar(1, 0.5))
    size = log.file.stat().st_size
    log.write(bytes(300))
    first = log.read()
    with log.file.open("r+b") as file:
        file.seek(size)
        file.write(scalar(2, 0.25) + scalar(3, 0.125))

    second = log.read()

    assert skipped_of(first + second) == {}
    assert [p.step for batch in first + second for p in batch.points] == [1.0, 2.0, 3.0]


def test_a_record_whose_bytes_come_later_than_its_header_waits(log):
    size = log.file.stat().st_size
    whole = scalar(1, 0.5)
    log.write(whole[:12] + bytes(len(whole) - 12))
    assert log.losses() == []
    with log.file.open("r+b") as file:
        file.seek(size)
        file.write(whole)
    log.write(scalar(2, 0.25))

    assert log.losses() == [(1.0, 0.5), (2.0, 0.25)]


def test_a_corrupt_event_costs_that_event(log):
    bad = bytearray(scalar(2, 0.25))
    bad[12:20] = b"\xff" * 8
    log.write(scalar(1, 0.5), bytes(bad), scalar(3, 0.125))

    batches = log.read()

    assert [p.step for p in batches[0].points] == [1.0, 3.0]
    assert skipped_of(batches) == {"corrupt record": 1}


def test_a_sound_record_that_is_no_event_is_skipped_and_counted(log):
    log.write(scalar(1, 0.5), framed(b"\x00\x00not an event"), scalar(2, 0.25))

    batches = log.read()

    assert [p.step for p in batches[0].points] == [1.0, 2.0]
    assert skipped_of(batches) == {"record that is no event": 1}


def test_where_no_record_begins_the_file_is_given_up_and_said_once(log):
    log.write(scalar(1, 0.5))
    size = log.file.stat().st_size
    log.write(b"\xffgarbage garbage garbage")
    first = log.read()
    log.write(b"and more of it")
    second = log.read()

    assert skipped_of(first) == {"no record here, file given up": 1}
    assert (second[0].points, second[0].skipped) == ([], {})

    # A network file system may have shown other bytes before the right ones.
    with log.file.open("r+b") as file:
        file.seek(size)
        file.write(scalar(2, 0.25))
        file.truncate()
    assert log.losses() == [(2.0, 0.25)]


def test_a_record_beyond_all_reason_is_passed_over_unread(log):
    big = Summary(
        value=[Summary.Value(tag="audio", image={"encoded_image_string": bytes(17 << 20)})]
    )
    length = struct.pack("<Q", big.ByteSize())
    whole = length + struct.pack("<I", masked_crc32c(length)) + big.SerializeToString() + bytes(4)
    log.write(scalar(1, 0.5), whole[:-9])
    assert log.losses() == [(1.0, 0.5)]

    log.write(whole[-9:], scalar(2, 0.25))

    batches = log.read()
    assert [p.step for p in batches[0].points] == [2.0]
    assert skipped_of(batches) == {"record over 16 MiB": 1}
