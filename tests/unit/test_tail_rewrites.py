"""Reading on in a log that was cut, replaced or rewritten: what was read never counts twice."""

import os
import threading
import time

import pytest

from tests.support.writers import Log, skipped_of
from wtwin_watch.errors import SourceError
from wtwin_watch.testing import ManualClock


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path / "metrics.csv")


def rows(steps, shift=0.0):
    return "".join(f"{step},{1 / (step + 1) + shift!r}\n" for step in steps)


def test_only_what_is_new_is_read(log):
    log.write("step,loss\n" + rows(range(3)))
    assert [step for step, _ in log.losses()] == [0, 1, 2]

    log.write(rows(range(3, 5)))

    assert [step for step, _ in log.losses()] == [3, 4]


def test_a_last_line_without_its_end_waits(log):
    log.write("step,loss\n0,1.0\n1,0.5")
    assert log.losses() == [(0.0, 1.0)]

    log.write("25\n")

    assert log.losses() == [(1.0, 0.525)]


def test_a_header_without_its_end_waits(log):
    log.write("step,lo")
    assert log.losses() == []

    log.write("ss\n1,0.5\n")

    assert log.losses() == [(1.0, 0.5)]


def test_a_last_line_without_its_end_is_taken_once_the_file_has_come_to_rest(log):
    log.write("step,loss\n0,1.0\n1,0.5")
    log.come_to_rest()

    assert log.losses() == [(0.0, 1.0), (1.0, 0.5)]
    assert log.losses() == []


def test_a_last_line_without_its_end_counts_in_a_finished_log(log):
    log.source = type(log.source)("logs", log.source.Options(path=log.path, finished=True))
    log.write("step,loss\n0,1.0\n1,0.5")

    assert log.losses() == [(0.0, 1.0), (1.0, 0.5)]


def test_a_file_that_comes_to_rest_is_offered_once_more(log):
    clock = ManualClock()
    log.source = type(log.source)("logs", log.source.Options(path=log.path), clock)
    log.write("step,loss\n0,1.0")
    os.utime(log.path, (clock.now, clock.now))
    (fresh,) = log.source.runs()
    clock.advance(601)

    (resting,) = log.source.runs()

    assert resting.version != fresh.version
    assert log.source.runs() == [resting]


def test_a_line_taken_too_early_is_not_read_as_two(log):
    log.write("step,loss\n0,1.0\n1,0.5")
    log.come_to_rest()
    log.losses()

    log.write("25\n2,0.25\n")

    batches = log.read()
    assert [(p.step, p.value) for p in batches[0].points] == [(2.0, 0.25)]
    assert skipped_of(batches) == {"line was cut": 1}


def test_a_line_taken_early_that_was_whole_leaves_no_trace(log):
    log.write("step,loss\n0,1.0\n1,0.5")
    log.come_to_rest()
    log.losses()

    log.write("\n2,0.25\n")

    batches = log.read()
    assert [(p.step, p.value) for p in batches[0].points] == [(2.0, 0.25)]
    assert skipped_of(batches) == {}


def test_a_header_rewritten_in_place_does_not_count_rows_twice(log):
    # As Lightning's CSVLogger does it when a key comes up for the first time: same inode, more bytes.
    log.write("epoch,step,train_loss\n" + "".join(f",{i},{1 / (i + 1)!r}\n" for i in range(4)))
    inode = log.path.stat().st_ino
    assert len(log.losses("train_loss")) == 4

    log.rewrite(
        "epoch,step,train_loss,val_loss\n"
        + "".join(f",{i},{1 / (i + 1)!r},\n" for i in range(4))
        + "0,3,,0.5\n,4,0.2,\n"
    )

    assert log.path.stat().st_ino == inode
    (batch,) = log.read()
    assert batch.restart is None
    assert [(p.metric, p.step) for p in batch.points] == [("val_loss", 3.0), ("train_loss", 4.0)]
    assert batch.position == "row 6"


def test_columns_in_another_order_are_the_same_rows(log):
    log.write("step,loss,lr\n0,1.0,0.1\n1,0.5,0.1\n")
    log.read()

    log.rewrite("lr,loss,step,val_loss\n0.1,1.0,0,\n0.1,0.5,1,\n0.1,0.25,2,\n")

    (batch,) = log.read()
    assert batch.restart is None
    assert {p.step for p in batch.points} == {2.0}


def test_a_rewrite_caught_half_way_is_waited_for(log):
    log.write("step,loss\n" + rows(range(100)))
    log.read()
    log.rewrite("step,loss,val_loss\n" + rows(range(30)).replace("\n", ",\n"))

    def finish():
        time.sleep(0.05)
        log.write(rows(range(30, 102)).replace("\n", ",\n"))

    writer = threading.Thread(target=finish)
    writer.start()
    batches = log.read()
    writer.join()

    assert [batch.restart for batch in batches] == [None]
    assert [p.step for p in batches[0].points] == [100.0, 101.0]


def test_a_log_replaced_by_another_starts_anew(log):
    log.write("step,loss\n" + rows(range(5)))
    log.read()

    log.rewrite("step,loss\n" + rows(range(8), shift=0.5))

    (batch,) = log.read()
    assert batch.restart is not None
    assert batch.restart.step is None
    assert batch.restart.reason == "the log was replaced or cut"
    assert [p.step for p in batch.points] == [0, 1, 2, 3, 4, 5, 6, 7]


def test_a_log_cut_and_grown_past_the_old_end_between_two_looks_starts_anew(log):
    log.write("step,loss\n" + rows(range(5)))
    log.read()

    log.rewrite("")
    log.write("step,loss\n" + rows(range(50), shift=0.25))

    (batch,) = log.read()
    assert batch.restart is not None
    assert batch.restart.step is None
    assert len(batch.points) == 50


def test_a_log_cut_to_nothing_waits_for_its_first_row(log):
    log.write("step,loss\n" + rows(range(5)))
    log.read()

    log.rewrite("")
    (nothing,) = log.read()
    log.write("step,loss\n")
    (header,) = log.read()
    log.write(rows([0], shift=0.25))
    (row,) = log.read()

    assert (nothing.points, nothing.restart, header.points, header.restart) == ([], None, [], None)
    assert row.restart is not None
    assert [p.step for p in row.points] == [0.0]


def test_a_log_cut_to_an_earlier_row_starts_anew(log):
    log.write("step,loss\n" + rows(range(10)))
    log.read()

    log.rewrite("step,loss\n" + rows(range(4)))

    (batch,) = log.read()
    assert batch.restart is not None
    assert batch.restart.step is None
    assert [p.step for p in batch.points] == [0, 1, 2, 3]


def test_a_log_deleted_and_made_again_starts_anew(log):
    log.write("step,loss\n" + rows(range(5)))
    log.read()

    log.path.unlink()
    with pytest.raises(SourceError, match=r"metrics\.csv can't be read: No such file"):
        log.source.runs()
    log.write("step,loss\n" + rows(range(2), shift=0.25))

    (batch,) = log.read()
    assert batch.restart is not None
    assert [p.step for p in batch.points] == [0, 1]


def test_a_copy_moved_over_the_log_is_the_same_log(log):
    log.write("step,loss\n" + rows(range(5)))
    log.read()

    copy = log.path.with_suffix(".new")
    copy.write_text(log.path.read_text() + rows([5]))
    copy.replace(log.path)

    (batch,) = log.read()
    assert batch.restart is None
    assert [p.step for p in batch.points] == [5.0]


def test_a_log_that_held_no_points_yet_is_replaced_without_a_word(log):
    log.write("step,loss\n")
    log.read()

    log.rewrite("step;loss\n1;0.5\n")

    (batch,) = log.read()
    assert batch.restart is None
    assert [(p.step, p.value) for p in batch.points] == [(1.0, 0.5)]


def test_a_replaced_json_log_starts_anew(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    log.write('{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.25}\n')
    log.read()

    log.rewrite('{"step": 1, "loss": 0.75}\n{"step": 2, "loss": 0.25}\n{"step": 3, "loss": 0.1}\n')

    (batch,) = log.read()
    assert batch.restart is not None
    assert len(batch.points) == 3


def test_a_position_stored_by_another_version_is_read_anew(log):
    log.write("step,loss\n" + rows(range(2)))
    log.cursor = {"v": 0, "anything": True}

    (batch,) = log.read()

    assert batch.restart is not None
    assert len(batch.points) == 2


def test_a_cursor_stays_small(log):
    names = [f"note {i}" for i in range(5000)] + ["x" * 5000 + " loss"]
    log.write(",".join(["step", "loss", *names]) + "\n" + ",".join(["1"] * 5003) + "\n")

    (batch,) = log.read()

    assert [p.metric for p in batch.points] == ["loss"]
    assert len(repr(batch.cursor)) < 1000


@pytest.mark.parametrize("room", [100_000, 3_000_000])
@pytest.mark.parametrize("rests", [False, True], ids=["busy", "at rest"])
def test_rows_written_into_room_set_aside_for_them_are_read(log, room, rests):
    log.write("step,loss\n" + rows(range(1000)))
    filled = log.path.stat().st_size
    os.truncate(log.path, room)
    if rests:
        log.come_to_rest()
    first = log.read()
    assert len(log.points()) == 0
    with log.path.open("r+b") as file:
        file.seek(filled)
        file.write(rows(range(1000, 1003)).encode())

    assert sum(len(batch.points) for batch in first) == 1000
    assert skipped_of(first) == {}
    assert [step for step, _ in log.losses()] == [1000, 1001, 1002]


@pytest.mark.parametrize("zeros", [100_000, 3_000_000])
def test_zeros_that_a_crash_left_are_passed_over_when_rows_follow(log, zeros):
    log.write("step,loss\n" + rows(range(10)))
    log.write(bytes(zeros))
    assert len(log.points()) == 10
    log.write("\n" + rows(range(10, 12)))

    assert [step for step, _ in log.losses()] == [10, 11]
