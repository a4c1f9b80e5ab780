"""Long stretches of like records, which are read at once; what is different among them is not overlooked."""

import math

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from tests.support.writers import EventLog, framed, record, scalar, skipped_of, tensor, version
from wtwin_adapters.tfalike import Form, read_alike
from wtwin_watch.testing import points_of

LIKE = 60
"""Records before and after the one that is different."""


@pytest.fixture
def log(tmp_path):
    log = EventLog(tmp_path / "run")
    log.write(version())
    return log


def like(steps, tag="loss"):
    return [scalar(step, 0.5, tag) for step in steps]


def new_style(step, plugin="scalars", tag="loss"):
    return tensor(step, tag, plugin, dtype=1, tensor_shape={}, float_val=[0.5])


def steps(batches):
    return [p.step for p in points_of(batches)]


def changed(data, old, new):
    """A record with other bytes of the same length in its event; its checksums fit."""
    assert data.count(old) == 1
    return framed(data[12:-4].replace(old, new))


@pytest.mark.parametrize("first", [0, 100, 16_350, 2_097_100, 268_435_400])
@pytest.mark.parametrize("stride", [0, 1, 3])
def test_steps_of_any_size_are_read_over_the_borders_of_their_bytes(log, first, stride):
    expected = [first + stride * i for i in range(3 * LIKE)]
    log.write(*like(expected))

    assert steps(log.read()) == expected


def test_steps_that_go_back_among_like_records_are_a_restart(log):
    log.write(*like(range(200, 300)), *like(range(250, 350)))

    batches = log.read()

    assert [batch.restart and batch.restart.step for batch in batches] == [None, 250.0]
    assert steps(batches) == [*range(200, 300), *range(250, 350)]


def test_steps_that_go_back_after_like_records_are_a_restart(log):
    log.write(*like(range(200, 300)))
    log.read()
    log.write(scalar(250, 0.5))

    (batch,) = log.read()

    assert batch.restart is not None
    assert (batch.restart.step, steps([batch])) == (250.0, [250.0])


def test_like_records_that_begin_before_the_last_step_are_a_restart(log):
    # Steps up to 127 take a byte, later ones two: the restart is where one stretch follows another.
    log.write(*like(range(300)), *like(range(50, 120)))

    batches = log.read()

    assert [batch.restart and batch.restart.step for batch in batches] == [None, 50.0]
    assert steps(batches) == [*range(300), *range(50, 120)]


@pytest.mark.parametrize("wall", [math.nan, math.inf, -1.0, 1e13])
def test_a_time_that_makes_no_sense_among_like_records_is_none(log, wall):
    odd = scalar(200 + LIKE, 0.5, wall_time=wall)
    log.write(*like(range(200, 200 + LIKE)), odd, *like(range(201 + LIKE, 200 + 2 * LIKE)))

    points = points_of(log.read())

    assert [p.wall_time for p in points] == [1.7e9] * LIKE + [None] + [1.7e9] * (LIKE - 1)


@pytest.mark.parametrize("wall", [0.0, 5.0, 1e10])
def test_times_of_any_size_are_times(log, wall):
    log.write(*[scalar(step, 0.5, wall_time=wall) for step in range(200, 300)])

    assert {p.wall_time for p in points_of(log.read())} == {wall}


def test_another_tag_of_the_same_length_among_like_records_is_another_metric(log):
    records = like(range(200, 300))
    records[LIKE] = scalar(200 + LIKE, 0.5, "lr/x")
    records[LIKE + 2] = scalar(202 + LIKE, 0.25, "LOSS")
    log.write(*records)

    points = points_of(log.read())

    assert len(points) == 99
    assert [(p.metric, p.step) for p in points if p.metric != "loss"] == [("LOSS", 262.0)]


def test_another_plugin_among_like_records_is_no_scalar(log):
    records = [new_style(step) for step in range(200, 300)]
    records[LIKE] = new_style(200 + LIKE, "hparams")
    log.write(*records)

    # After that the tag belongs to the other plugin, until it is said otherwise: here at once.
    assert steps(log.read()) == [step for step in range(200, 300) if step != 200 + LIKE]


@pytest.mark.parametrize("ends", [b"\x04\x02", b"\x84\x82"])
def test_a_step_that_is_no_number_among_like_records_is_no_event(log, ends):
    records = like(range(200, 300))
    records[LIKE] = changed(records[LIKE], b"\x10\x84\x02", b"\x10" + ends)
    log.write(*records)

    batches = log.read()

    assert len(steps(batches)) == 99
    assert skipped_of(batches) == {"record that is no event": 1}


@pytest.mark.parametrize("at", [0, 5, 9])
def test_a_length_that_is_corrupt_among_like_records_ends_the_file(log, at):
    records = like(range(200, 300))
    damaged = bytearray(records[LIKE])
    damaged[at] ^= 1
    log.write(*records[:LIKE], bytes(damaged), *records[LIKE + 1 :])

    batches = log.read()

    assert steps(batches) == list(range(200, 200 + LIKE))
    assert skipped_of(batches) == {"no record here, file given up": 1}


def test_one_tag_in_two_styles_is_one_metric_in_the_order_of_the_file(log):
    old = range(200, 300)
    new = [*range(200, 240), *range(239, 299)]  # from there on it lags behind
    pairs = list(zip(old, new, strict=True))
    log.write(*[r for a, b in pairs for r in (scalar(a, 0.5), new_style(b))])

    batches = log.read()

    assert steps(batches) == [step for pair in pairs for step in pair]
    assert [batch.restart.step for batch in batches if batch.restart] == list(range(239, 299))


def test_groups_of_several_metrics_keep_the_order_of_the_file(log):
    log.write(
        *[
            r
            for step in range(200, 300)
            for r in (scalar(step, 0.5), scalar(step, 0.9, "accuracy"), new_style(step, tag="lr"))
        ]
    )

    points = points_of(log.read())

    assert [(p.metric, p.step) for p in points] == [
        (metric, step) for step in range(200, 300) for metric in ("loss", "lr")
    ]


def test_values_of_every_width_are_their_own(log):
    values = [1 / (i + 1) for i in range(100)]
    for i, value in enumerate(values):
        double = {"dtype": 2, "tensor_shape": {}, "double_val": [value]}
        log.write(scalar(200 + i, value), tensor(200 + i, "lr", "scalars", **double))

    points = points_of(log.read())

    assert [p.value for p in points if p.metric == "lr"] == values
    assert [p.value for p in points if p.metric == "loss"] == pytest.approx(values, rel=2**-24)


def test_metrics_nobody_wants_bring_no_points(log):
    log.write(*like(range(200, 300), "accuracy"), *[new_style(s, tag="f1") for s in range(200)])

    (batch,) = log.read()

    assert (batch.points, batch.position) == ([], "event 301")


@pytest.mark.parametrize("limit", [1, 5, 8, 64, 1000])
def test_no_more_than_the_limit_is_taken_at_once(log, limit):
    log.write(*[r for s in range(200, 300) for r in (scalar(s, 0.5), scalar(s, 0.5, "lr"))])

    batches = log.read(limit)

    assert max(len(batch.points) for batch in batches) <= limit
    assert steps(batches) == [s for s in range(200, 300) for _ in range(2)]


def test_like_records_are_taken_at_once():
    data = b"".join(like(range(200, 300)))
    size = len(data) // 100
    form = Form(size, 2, size - 8, double=False)

    found = read_alike(data, 0, [form], 1000)

    assert found is not None
    assert found.count == 100
    assert found.columns == [([float(s) for s in range(200, 300)], [0.5] * 100, [1.7e9] * 100)]


def test_a_few_like_records_are_left_to_be_read_one_by_one():
    data = b"".join([*like(range(200, 203)), record(Event(step=203, summary=Summary()))])
    size = len(like([200])[0])

    assert read_alike(data, 0, [Form(size, 2, size - 8, double=False)], 1000) is None
