"""Which folders are runs, and how a run goes on over several event files."""

import os
import stat

import pytest

from tests.support.writers import (
    EventLog,
    scalar,
    scalars,
    session_start,
    skipped_of,
    unprivileged,
    version,
)
from wtwin_adapters.tensorboard import TensorBoardSource
from wtwin_watch.errors import SourceError
from wtwin_watch.testing import ManualClock, read_on


@pytest.fixture
def log(tmp_path):
    log = EventLog(tmp_path / "run")
    log.write(version())
    return log


def source(path, clock=None):
    options = TensorBoardSource.Options(path=path)
    return TensorBoardSource("tb", options, clock) if clock else TensorBoardSource("tb", options)


def ids(opened):
    return [run.key.run for run in opened.runs()]


def steps(batches):
    return [p.step for batch in batches for p in batch.points]


def test_every_folder_with_event_files_is_a_run(tmp_path):
    for folder in ("", "a", "b/train", "b/.hidden"):
        EventLog(tmp_path / folder).write(version())
    (tmp_path / "a" / "events.out.tfevents.1.host.profile-empty").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "events.out.tfevents.1.host.profile-empty").touch()
    (tmp_path / "notes.txt").write_text("events")

    runs = list(source(tmp_path).runs())

    assert [run.key.run for run in runs] == ["a", "b/train", "."]
    assert [run.name for run in runs] == ["a", "b/train", tmp_path.name]


def test_an_event_file_given_by_itself_is_a_run(tmp_path):
    log = EventLog(tmp_path)
    log.write(version(), scalar(1, 0.5))
    log.begin("1700000001.host.2.0")
    log.write(version(), scalar(9, 0.25))
    opened = source(log.file)

    (run,) = opened.runs()

    assert run.key.run == log.file.name
    assert steps(read_on(opened, run)) == [9.0]


def test_a_pattern_names_folders_of_runs(tmp_path):
    for folder in ("exp1/a", "exp2/a", "other/a"):
        EventLog(tmp_path / folder).write(version())

    assert ids(source(f"{tmp_path}/exp*")) == ["exp1/a", "exp2/a"]


def test_links_in_a_circle_end(tmp_path):
    EventLog(tmp_path / "a").write(version())
    os.symlink("..", tmp_path / "a" / "up")

    assert ids(source(tmp_path)) == ["a"]


def test_only_what_is_new_is_read(log):
    log.write(scalars(range(1, 4)))
    assert steps(log.read()) == [1, 2, 3]

    log.write(scalars(range(4, 6)))

    assert steps(log.read()) == [4, 5]
    assert steps(log.read()) == []


def test_files_that_appear_later_are_read_on(log):
    log.write(scalars(range(1, 4)))
    log.read()
    log.begin("1700000001.host.2.0")
    log.write(version(), scalars(range(4, 6)))

    (batch,) = log.read()

    assert (steps([batch]), batch.restart) == ([4, 5], None)


def test_a_new_file_whose_steps_go_back_restarts_the_run_there(log):
    log.write(scalars(range(1, 8)))
    log.read()
    log.begin("1700000001.host.2.0")
    log.write(version())
    log.read()  # the file is there before its first point is
    log.write(scalars(range(5, 9)))

    (batch,) = log.read()

    assert batch.restart is not None
    assert (batch.restart.step, steps([batch])) == (5.0, [5, 6, 7, 8])


def test_a_history_of_restarts_is_read_in_the_order_of_the_files(log):
    log.write(scalars(range(1, 5)))
    log.begin("1700000001.host.2.0")
    log.write(version(), scalars(range(3, 6)))
    log.begin("1700000002.host.3.0")
    log.write(version(), session_start(5), scalars(range(5, 8)))

    batches = log.read()

    restarts = [batch.restart and batch.restart.step for batch in batches]
    assert restarts == [None, 3.0, 5.0]
    assert [steps([batch]) for batch in batches] == [[1, 2, 3, 4], [3, 4, 5], [5, 6, 7]]


def test_two_writers_at_once_are_no_restarts(log):
    first = log.file
    log.write(scalars(range(1, 4)))
    log.begin("1700000001.host.2.0")
    log.write(version(), scalar(1, 0.5, "val_loss"))
    second = log.file
    log.read()
    restarts = []
    for step in range(4, 8):
        log.file = first
        log.write(scalar(step, 0.5))
        log.file = second
        log.write(scalar(step - 3, 0.5, "val_loss"), scalar(step - 3, 0.5, "loss"))
        restarts += [batch.restart for batch in log.read()]

    assert restarts == [None] * 4


@pytest.mark.parametrize("cut", [0, 10, 60])
def test_a_file_that_was_replaced_or_cut_is_read_anew(log, cut):
    log.write(scalars(range(1, 9)))
    log.read()
    data = version(wall_time=1.8e9) + scalars(range(1, 4))
    log.file.write_bytes(data[:cut] or data + scalars(range(4, 40)))

    (batch,) = log.read()

    assert batch.restart is not None
    assert batch.restart.step is None
    assert batch.restart.reason == f"{log.file.name} was replaced or cut"
    assert steps([batch]) == ([] if cut else list(range(1, 40)))


def test_after_a_replaced_file_all_files_are_read_anew(log):
    log.write(scalars(range(1, 4)))
    log.begin("1700000001.host.2.0")
    log.write(version(), scalars(range(4, 6)))
    log.read()
    log.file.write_bytes(version(wall_time=1.8e9) + scalars(range(4, 5)))

    (batch,) = log.read()

    assert batch.restart is not None
    assert (batch.restart.step, steps([batch])) == (None, [1, 2, 3, 4])


def test_an_old_file_that_is_deleted_changes_nothing(log):
    log.write(scalars(range(1, 4)))
    first = log.file
    log.begin("1700000001.host.2.0")
    log.write(version(), scalars(range(4, 6)))
    log.read()
    first.unlink()
    log.write(scalars(range(6, 7)))

    (batch,) = log.read()

    assert (batch.restart, steps([batch])) == (None, [6])


def test_a_run_that_is_gone_is_an_error(log):
    (run,) = log.source.runs()
    log.file.unlink()
    assert ids(log.source) == []

    with pytest.raises(SourceError, match="holds no event files any more"):
        log.source.fetch(run, None, 10)


def test_a_missing_folder_is_an_error_with_the_cure(tmp_path):
    with pytest.raises(SourceError, match=r"none can't be read: No such file .*; create it or"):
        source(tmp_path / "none").runs()


def test_a_folder_that_may_not_be_read_is_an_error():
    with unprivileged() as folder:
        EventLog(folder / "a").write(version())
        (folder / "a").chmod(0)
        opened = source(folder)
        try:
            (run,) = opened.runs()
            with pytest.raises(SourceError, match="a can't be read: Permission denied"):
                opened.fetch(run, None, 10)
        finally:
            (folder / "a").chmod(stat.S_IRWXU)


def test_a_file_that_may_not_be_read_for_a_while_is_read_on_afterwards():
    with unprivileged() as folder:
        log = EventLog(folder / "a")
        log.source = source(folder)
        log.run = "a"
        log.write(version(), scalars(range(1, 4)))
        log.read()
        log.write(scalars(range(4, 6)))
        log.folder.chmod(0)
        try:
            (run,) = log.source.runs()
            with pytest.raises(SourceError, match="can't be read: Permission denied"):
                log.source.fetch(run, log.cursor, 10)
        finally:
            log.folder.chmod(stat.S_IRWXU)

        (batch,) = log.read()

        assert (steps([batch]), batch.restart) == ([4, 5], None)


def test_a_compressed_file_is_refused_where_it_is_named(tmp_path):
    (tmp_path / "events.out.tfevents.1.gz").write_bytes(b"\x1f\x8b")
    opened = source(tmp_path / "events.out.tfevents.1.gz")
    (run,) = opened.runs()

    with pytest.raises(SourceError, match="is compressed; unpack it with gunzip"):
        opened.fetch(run, None, 10)


def test_a_compressed_file_in_a_folder_is_skipped_and_counted(tmp_path):
    log = EventLog(tmp_path)
    log.begin("1.host.gz")
    log.write(b"\x1f\x8b")
    alone = log.read()
    log.begin("2.host")
    log.write(version(), scalar(1, 0.5))

    batches = log.read()

    assert skipped_of(alone) == {"compressed file": 1}
    assert (steps(batches), skipped_of(batches)) == ([1.0], {})


def test_a_cursor_stays_small_over_hundreds_of_files(tmp_path):
    log = EventLog(tmp_path)
    for i in range(400):
        log.begin(f"{1_700_000_000 + i}.host.1.0")
        log.write(version(1.7e9 + i), scalars(range(10 * i, 10 * i + 10)))
    assert len(steps(log.read(limit=500))) == 4000
    assert len(repr(log.cursor)) < 40_000

    log.write(scalar(5000, 0.5))

    assert steps(log.read()) == [5000.0]


def test_hundreds_of_files_that_grow_at_once_lose_nothing(tmp_path):
    log = EventLog(tmp_path)
    names = [f"{1_700_000_000 + i}.host.1.0" for i in range(700)]
    read = []
    for step in range(3):
        for name in names:
            log.begin(name)
            log.write(*([] if step else [version()]), scalar(step, 0.5))
        batches = log.read()
        read.append(steps(batches))
        assert [batch.restart for batch in batches] == [None]
        assert len(repr(log.cursor)) < 60_000

    assert read == [[step] * 700 for step in (0.0, 1.0, 2.0)]


def test_an_old_file_among_hundreds_that_was_cut_is_read_anew(tmp_path):
    log = EventLog(tmp_path)
    for i in range(300):
        log.begin(f"{1_700_000_000 + i}.host.1.0")
        log.write(version(), scalar(i, 0.5))
    log.read()
    (tmp_path / "events.out.tfevents.1700000000.host.1.0").write_bytes(version())

    (batch,) = log.read()

    assert batch.restart is not None
    assert batch.restart.reason == "events.out.tfevents.1700000000.host.1.0 was replaced or cut"
    assert steps([batch]) == list(range(1, 300))


def test_a_position_stored_by_another_version_is_read_anew(log):
    log.write(scalars(range(1, 4)))
    log.cursor = {"v": 0}

    (batch,) = log.read()

    assert batch.restart is not None
    assert steps([batch]) == [1, 2, 3]


def test_the_version_changes_with_any_file_of_the_run_and_only_then(log):
    (before,) = log.source.runs()
    (same,) = log.source.runs()
    log.begin("1700000001.host.2.0")
    log.write(version())
    (after,) = log.source.runs()

    assert same is before
    assert after.version != before.version


def test_looking_again_at_ten_thousand_files_costs_a_stat_each(tmp_path, monkeypatch):
    for i in range(100):
        folder = tmp_path / f"r{i}"
        folder.mkdir()
        for j in range(100):
            (folder / f"events.out.tfevents.{j}").touch()
    clock = ManualClock()
    clock.now = tmp_path.stat().st_mtime + 3600
    opened = source(tmp_path, clock)
    first = opened.runs()
    calls = {"stat": 0, "scandir": 0, "open": 0}
    for name in calls:
        real = getattr(os, name)

        def counted(*args, name=name, real=real, **kwargs):
            calls[name] += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(os, name, counted)

    again = opened.runs()

    # the files, their folders, and the root once for itself and once as a folder
    assert calls == {"stat": 10_102, "scandir": 0, "open": 0}
    assert all(x is y for x, y in zip(first, again, strict=True))
