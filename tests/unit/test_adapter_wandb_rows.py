"""What a row in a ``.wandb`` file means, and what is read where the file is damaged."""

import math
import os
import struct
import zlib

import pytest

from tests.support.wandb_writer import (
    BLOCK,
    HEADER,
    WandbLog,
    double,
    framed,
    history,
    item,
    losses,
    message,
    number,
    numbered,
    run,
    shown,
    summary,
)
from tests.support.writers import skipped_of
from wtwin_watch.model import ROW_LOGGED
from wtwin_watch.testing import points_of


@pytest.fixture
def log(tmp_path):
    return WandbLog(tmp_path)


def points(log):
    return shown(points_of(log.read()))


def values(log):
    return [float(value) for _, _, value in points(log)]


def rewrite(log, data):
    log.file.write_bytes(data)


def test_a_row_gives_the_metrics_that_a_monitor_may_want(log):
    log.write(history(3, loss=0.5, lr=0.1, accuracy=0.9, epoch=1), summary(loss=0.5))

    assert points(log) == [("loss", 3.0, "0.5"), ("lr", 3.0, "0.1")]


def test_points_have_the_time_their_row_was_logged_at(log):
    log.write(history(0, loss=0.5, _timestamp=1.7e9), history(1, loss=0.5, _timestamp="x"))

    assert [p.wall_time for p in points_of(log.read())] == [1.7e9, None]


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("1", 1.0),
        ("-2.5e-7", -2.5e-7),
        ("NaN", math.nan),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ('"NaN"', math.nan),
        ('"-Infinity"', -math.inf),
        ("9007199254740993", 9007199254740992.0),
        ("1e999", math.inf),
    ],
)
def test_numbers_are_read_as_wandb_writes_them(log, raw, value):
    log.write(history(0, item("loss", raw)))

    assert points(log) == [("loss", 0.0, repr(value))]


@pytest.mark.parametrize("raw", ["true", '"0.5"', "[1, 2]", "", "nonsense"])
def test_what_is_no_number_is_counted(log, raw):
    log.write(history(0, item("loss", raw)), history(1, loss=0.5))

    batches = log.read()

    assert (shown(points_of(batches)), skipped_of(batches)) == (
        [("loss", 1.0, "0.5")],
        {"not a number": 1},
    )


def test_a_null_is_a_row_without_the_value(log):
    log.write(history(0, item("loss", "null"), lr=0.1), history(1, item("loss", "null")))

    found = [(p.metric, p.step) for p in points_of(log.read())]

    assert found == [("lr", 0.0), (ROW_LOGGED, 1.0)]


def test_a_row_of_other_metrics_says_that_it_was_logged(log):
    log.write(history(4, accuracy=0.5))

    assert [(p.metric, p.step) for p in points_of(log.read())] == [(ROW_LOGGED, 4.0)]


def test_nested_keys_are_joined_by_dots(log):
    log.write(history(0, item(["train", "loss"], "0.5")))

    assert points(log) == [("train.loss", 0.0, "0.5")]


@pytest.mark.parametrize("order", [1, -1])
def test_a_name_spelt_out_wins_over_the_same_name_by_nesting(log, order):
    items = [item(["train", "loss"], "0.5"), item("train.loss", "0.25")][::order]
    log.write(history(0, *items))

    assert points(log) == [("train.loss", 0.0, "0.25")]


def test_keys_of_older_versions_are_read(log):
    old = message(1, message(1, "loss") + message(16, "0.5"))
    nested = message(1, message(1, "train") + message(16, '{"loss": NaN, "deep": {"x": 1}}'))
    step = message(1, message(1, "_step") + message(16, "7"))
    log.write(message(2, old + nested + step))

    assert points(log) == [("loss", 7.0, "0.5"), ("train.loss", 7.0, "nan")]


def test_a_media_object_is_no_number(log):
    raw = '{"_type": "histogram", "loss": 0.5, "bins": [1, 2]}'
    log.write(history(0, item("train", raw)), history(1, item("train", "{not json")))

    assert points(log) == []


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        (number(5, 1), -1.0),
        (number(5, 2**64 - 2), 2.0**63 - 1),
        (double(6, 0.5), 0.5),
        (double(6, math.nan), math.nan),
    ],
)
def test_typed_values_are_read_where_there_is_no_json(log, typed, value):
    log.write(history(0, message(1, message(2, "loss") + typed)))

    assert points(log) == [("loss", 0.0, repr(value))]


def test_the_json_of_a_value_goes_before_its_typed_form(log):
    both = [
        message(1, message(2, "loss") + typed + message(16, raw))
        for typed, raw in ((double(6, 0.25), "0.5"), (number(5, 4), "2"))
    ]
    log.write(history(0, both[0]), history(1, both[1]))

    assert points(log) == [("loss", 0.0, "0.5"), ("loss", 1.0, "2.0")]


@pytest.mark.parametrize("typed", [number(4, 1), message(7, "x"), number(3, 0)])
def test_typed_values_that_are_no_numbers_give_no_points(log, typed):
    log.write(history(0, message(1, message(2, "loss") + typed)))

    assert points(log) == []


def test_the_step_may_stand_beside_the_values_alone(log):
    log.write(message(2, item("loss", "0.5") + message(2, number(1, 9))))

    assert points(log) == [("loss", 9.0, "0.5")]


def test_a_row_without_a_step_is_counted(log):
    log.write(history(None, loss=0.5), history(2, loss=0.25))

    batches = log.read()

    assert shown(points_of(batches)) == [("loss", 2.0, "0.25")]
    assert skipped_of(batches) == {"no step": 1}


def test_steps_may_jump(log):
    log.write(history(0, loss=1.0), history(10**12, loss=0.5), history(10**12 + 1, loss=0.25))

    assert [step for _, step, _ in points(log)] == [0.0, 1e12, 1e12 + 1]


def test_another_metric_can_count_the_steps(tmp_path):
    log = WandbLog(tmp_path, step="trainer/global_step")
    rows = [(0, {"trainer/global_step": 50, "loss": 0.5}), (1, {"loss": 0.25})]
    log.write(*(history(step, **values) for step, values in rows))

    batches = log.read()

    assert shown(points_of(batches)) == [("loss", 50.0, "0.5")]
    assert {batch.step_name for batch in batches} == {"trainer/global_step"}


def test_records_may_be_longer_than_a_block(log):
    long_text = item("note", '"' + "x" * 3 * BLOCK + '"')
    log.write(history(0, long_text, loss=0.5), history(1, loss=0.25))

    assert values(log) == [0.5, 0.25]


def test_a_record_beyond_all_reason_is_passed_over(log, monkeypatch):
    monkeypatch.setattr("wtwin_adapters.wandb_files_blocks.MAX_RECORD", 2 * BLOCK)
    log.write(history(0, item("note", "x" * 3 * BLOCK), loss=0.5), history(1, loss=0.25))

    batches = log.read()

    assert (shown(points_of(batches)), skipped_of(batches)) == (
        [("loss", 1.0, "0.25")],
        {"record over 16 MiB": 1},
    )


def test_a_record_that_is_no_record_of_wandb_is_counted(log):
    log.write(b"\xff\xff\xff", message(2, b"\xff"), history(1, loss=0.5))

    batches = log.read()

    assert len(shown(points_of(batches))) == 1
    assert skipped_of(batches) == {"record that is no record of wandb": 2}


def test_a_flipped_byte_costs_one_record(log):
    before, hit, after = (framed([history(i, loss=0.5)]) for i in range(3))
    log.append(before + hit[:-3] + b"\xff" + hit[-2:] + after)

    batches = log.read()

    assert [step for _, step, _ in shown(points_of(batches))] == [0.0, 2.0]
    assert skipped_of(batches) == {"corrupt record": 1}


def test_a_wrong_length_costs_the_rest_of_its_block(log):
    rows = numbered(losses(range(2000)))
    data = bytearray(HEADER + framed(rows))
    struct.pack_into("<H", data, len(HEADER) + 4, 40_000)
    rewrite(log, bytes(data))

    batches = log.read()

    starts = [len(HEADER) + len(framed(rows[: 2 * i])) for i in range(600)]
    first = min(i for i, start in enumerate(starts) if start >= BLOCK)
    assert [p.step for p in points_of(batches)] == list(range(first, 2000))
    assert skipped_of(batches) == {"corrupt record": 1}


def test_a_block_of_zeros_costs_what_it_held(log):
    data = bytearray(HEADER + framed(numbered(losses(range(2000)))))
    data[BLOCK : 2 * BLOCK] = bytes(BLOCK)
    rewrite(log, bytes(data))

    batches = log.read()

    found = [p.step for p in points_of(batches)]
    assert found[-1] == 1999.0
    assert found == sorted(found)
    assert 1200 < len(found) < 2000
    assert skipped_of(batches) == {"corrupt record": 1}


def test_zeros_at_the_end_are_waited_for_without_a_word(log):
    log.write(*losses(range(2)))
    whole = log.file.read_bytes()
    log.append(bytes(200))
    batches = log.read()
    assert (len(points_of(batches)), skipped_of(batches)) == (2, {})

    rewrite(log, whole + framed(losses(range(2, 4)), len(whole)))

    assert log.losses() == [(2.0, 0.25), (3.0, 0.125)]


def test_damage_at_the_end_is_told_once_and_passed_when_the_file_goes_on(log):
    log.write(history(0, loss=0.5))
    hit = framed([history(1, loss=0.5)])
    log.append(hit[:-1] + b"!")
    assert skipped_of(log.read()) == {"corrupt record": 1}
    assert skipped_of(log.read()) == {}

    log.append(framed([history(2, loss=0.25)]))

    batches = log.read()
    assert (shown(points_of(batches)), skipped_of(batches)) == ([("loss", 2.0, "0.25")], {})


def test_the_tail_that_a_killed_process_leaves_is_no_damage(log):
    log.write(*losses(range(5)))
    log.append(framed([history(5, loss=0.5)])[:-4])

    batches = log.read()

    assert (len(points_of(batches)), skipped_of(batches)) == (5, {})


def test_a_record_that_was_never_written_to_its_end_is_counted(log):
    begun = b"\2" + history(0, loss=0.5)
    log.append(struct.pack("<IH", zlib.crc32(begun), len(begun) - 1) + begun)
    log.append(framed([history(1, loss=0.25)]))

    batches = log.read()

    assert (shown(points_of(batches)), skipped_of(batches)) == (
        [("loss", 1.0, "0.25")],
        {"corrupt record": 1},
    )


def test_a_piece_of_a_record_whose_beginning_is_lost_is_no_record(log):
    rest = b"\4" + history(0, loss=0.5)
    log.append(struct.pack("<IH", zlib.crc32(rest), len(rest) - 1) + rest)
    log.append(framed([history(1, loss=0.25)]))

    assert values(log) == [0.25]


def test_only_what_is_new_is_read(log, monkeypatch):
    log.write(run(), *losses(range(3000)))
    log.read()
    log.write(*losses(range(3000, 3003)))
    read = []
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda *args: read.append(len(data := real(*args))) or data)

    assert [step for _, step, _ in points(log)] == [3000.0, 3001.0, 3002.0]
    assert sum(read) < 50_000


def test_a_position_of_another_version_is_read_anew_and_said(log):
    log.write(*losses(range(3)))
    log.cursor = {"v": 0}

    (batch,) = log.read()

    assert batch.restart is not None
    assert batch.restart.reason == "the position was stored by another version"
    assert len(batch.points) == 3


def test_where_reading_stands_is_said_in_rows(log):
    log.write(*losses(range(3)))

    (batch,) = log.read()

    assert (batch.position, batch.step_name) == ("row 3", "_step")
