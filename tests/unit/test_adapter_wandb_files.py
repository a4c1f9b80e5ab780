"""Runs that wandb wrote to disk: which there are, what they are called, and how they ended."""

import os
import stat

import pytest
from pydantic import ValidationError

from tests.support.wandb_writer import (
    HEADER,
    PREEMPTING,
    STATS,
    WandbLog,
    end,
    framed,
    losses,
    numbered,
    run,
)
from tests.support.writers import skipped_of, unprivileged
from wtwin_adapters.wandb_files import WandbFilesSource
from wtwin_adapters.wandb_files_facts import SILENT_S
from wtwin_watch.errors import SourceError
from wtwin_watch.ingest.finished import find_logs
from wtwin_watch.model import RunStatus
from wtwin_watch.testing import read_on


@pytest.fixture
def log(tmp_path):
    return WandbLog(tmp_path)


def source(path, **options):
    return WandbFilesSource("w", WandbFilesSource.Options(path=path, **options))


def ids(opened):
    return [found.key.run for found in opened.runs()]


def steps(batches):
    return [p.step for batch in batches for p in batch.points]


def since_last_write(log, seconds):
    log.clock.now = log.file.stat().st_mtime + seconds


def test_a_run_is_found_from_its_file_its_directory_the_folder_wandb_and_above(tmp_path, log):
    log.write(*losses(range(3)))
    for path, name in (
        (tmp_path, "wandb/abc"),
        (log.folder, "abc"),
        (log.directory, "abc"),
        (log.file, "abc"),
        (f"{log.folder}/offline-run-*", "abc"),
    ):
        opened = source(path)
        assert ids(opened) == [name], path
        (found,) = opened.runs()
        assert steps(read_on(opened, found)) == [0, 1, 2]


def test_a_run_says_what_it_is_called(tmp_path):
    log = WandbLog(tmp_path, base_url="https://wandb.example.org/")
    log.write(run("abc", entity="team", project="my llm", name="brave-sky-7", group="g", tag="big"))

    found = log.run()

    assert (found.name, found.project, found.group, found.tags) == (
        "brave-sky-7",
        "team/my llm",
        "g",
        ("big",),
    )
    assert found.url == "https://wandb.example.org/team/my%20llm/runs/abc"


def test_a_run_without_a_name_is_called_by_its_id(log):
    log.write(run("abc", project="llm"))

    found = log.run()

    assert (found.name, found.project, found.url) == ("abc", "llm", None)


@pytest.mark.parametrize("url", ["wandb.ai", "https://me:secret@wandb.ai", "ftp://wandb.ai"])
def test_an_address_for_links_is_one_that_can_be_shown(tmp_path, url):
    with pytest.raises(ValidationError, match="base_url"):
        source(tmp_path, base_url=url)


@pytest.mark.parametrize(
    ("records", "status", "code"),
    [
        ([end()], RunStatus.FINISHED, 0),
        ([end(1)], RunStatus.FAILED, 1),
        ([end(-9)], RunStatus.FAILED, -9),
        ([PREEMPTING, end(143)], RunStatus.PREEMPTED, 143),
        ([PREEMPTING, end()], RunStatus.FINISHED, 0),
        ([], RunStatus.RUNNING, None),
    ],
)
def test_the_exit_record_says_how_a_run_ended(log, records, status, code):
    log.write(run(), *losses(range(500)), *records)
    since_last_write(log, 1)

    found = log.run()

    assert (found.status, found.exit_code) == (status, code)


@pytest.mark.parametrize(
    ("records", "status"),
    [
        ([STATS, *losses(range(100))], RunStatus.CRASHED),
        ([STATS, PREEMPTING], RunStatus.PREEMPTED),
        ([end(), STATS], RunStatus.FINISHED),
        (losses(range(100)), RunStatus.UNKNOWN),
    ],
)
def test_a_process_that_falls_silent_has_died_if_it_used_to_log_its_machine(log, records, status):
    log.write(run(), *records)

    since_last_write(log, SILENT_S - 1)
    before = log.run().status
    since_last_write(log, SILENT_S + 1)

    assert (before.ended, log.run().status) == (status is RunStatus.FINISHED, status)


def test_a_run_goes_on_in_the_directories_of_the_processes_that_resumed_it(log):
    log.write(run(), *losses(range(10)), end(1))
    assert (log.run().status, steps(log.read())) == (RunStatus.FAILED, list(range(10)))
    log.begin("run-20260101_000500")
    log.write(run(), *losses(range(10, 14)))
    since_last_write(log, 1)

    (batch,) = log.read()

    assert (batch.restart, steps([batch])) == (None, [10, 11, 12, 13])
    assert log.run().status is RunStatus.RUNNING


def test_a_process_whose_steps_begin_anew_restarts_the_run_there(log):
    log.write(run(), *losses(range(10)))
    log.read()
    log.begin("offline-run-20260101_000500")
    log.write(run(), *losses(range(4, 12)))

    (batch,) = log.read()

    assert batch.restart is not None
    assert (batch.restart.step, steps([batch])) == (4.0, list(range(4, 12)))


def test_a_process_that_dies_soon_each_time_it_begins_anew_loses_no_row(log):
    log.write(*losses(range(3)))
    for i in range(1, 8):
        log.begin(f"offline-run-20260101_00000{i}")
        log.write(*losses(range(3 + i)))

    batches = log.read()

    assert steps(batches) == [step for i in range(8) for step in range(3 + i)]
    assert skipped_of(batches) == {}


def test_two_processes_that_log_to_one_run_at_once_are_no_restarts(log):
    log.write(*losses(range(4)))
    first = log.file
    log.begin("offline-run-20260101_000001")
    log.write(*losses(range(4)))
    second = log.file
    log.read()
    restarts, found = [], []
    for start in (4, 8, 12):
        log.file = first
        log.write(*losses(range(start, start + 4)))
        log.file = second
        log.write(*losses(range(start, start + 4)))
        batches = log.read()
        restarts += [batch.restart for batch in batches]
        found += steps(batches)

    assert restarts == [None] * 3
    assert sorted(found) == sorted([*range(4, 16), *range(4, 16)])


def test_runs_of_several_folders_have_ids_of_their_own(tmp_path):
    for folder in ("a", "b/c"):
        WandbLog(tmp_path / folder).write(*losses(range(2)))

    assert ids(source(tmp_path)) == ["a/wandb/abc", "b/c/wandb/abc"]


def test_a_run_that_is_linked_as_the_latest_is_counted_once(log):
    log.write(*losses(range(3)))
    os.symlink(log.directory.name, log.folder / "latest-run")

    assert ids(log.source) == ["abc"]
    assert ids(source(log.folder / "latest-run")) == ["abc"]


def test_the_link_to_the_latest_run_leads_to_the_next_one(tmp_path, log):
    latest = log.folder / "latest-run"
    os.symlink(log.directory.name, latest)
    opened = source(latest)
    assert ids(opened) == ["abc"]
    other = WandbLog(tmp_path / "elsewhere", "xyz")
    latest.unlink()
    os.symlink(other.directory, latest)

    assert ids(opened) == ["xyz"]


def test_a_file_with_its_header_alone_is_a_run_without_points(log):
    (batch,) = log.read()

    assert (batch.points, batch.more, batch.skipped) == ([], False, {})
    assert log.run().status is RunStatus.RUNNING


@pytest.mark.parametrize("cut", range(len(HEADER)))
def test_a_header_that_is_not_whole_yet_is_waited_for(log, cut):
    log.file.write_bytes(HEADER[:cut])
    assert log.losses() == []

    log.append(HEADER[cut:] + framed(numbered(losses(range(2)))))

    assert log.losses() == [(0, 1.0), (1, 0.5)]


def test_a_file_of_another_kind_is_an_error(log):
    log.file.write_bytes(b"PK\3\4 something else")

    with pytest.raises(SourceError, match=r"run-abc\.wandb doesn't begin as files of wandb do"):
        log.read()


def test_a_run_whose_directory_is_deleted_is_an_error(log):
    found = log.run()
    log.file.unlink()
    assert ids(log.source) == []

    with pytest.raises(SourceError, match="abc is gone"):
        log.source.fetch(found, None, 10)


def test_a_run_that_was_synced_and_cleaned_leaves_the_others(tmp_path, log):
    log.write(*losses(range(3)))
    log.read()
    first = log.file
    log.begin("offline-run-20260101_000500")
    log.write(*losses(range(3, 5)))
    first.unlink()

    (batch,) = log.read()

    assert (batch.restart, steps([batch])) == (None, [3, 4])


@pytest.mark.parametrize("size", [0, 3, 60])
def test_a_run_file_that_was_replaced_or_cut_is_read_anew(log, size):
    log.write(run(), *losses(range(9)))
    log.read()
    other = HEADER + framed(numbered([run("other"), *losses(range(4))]))
    log.file.write_bytes(other[:size] or other + framed(numbered(losses(range(4, 40))), len(other)))

    (batch,) = log.read()

    assert batch.restart is not None
    assert batch.restart.step is None
    assert (
        batch.restart.reason == "offline-run-20260101_000000-abc/run-abc.wandb was replaced or cut"
    )
    assert steps([batch]) == ([] if size else list(range(40)))


def test_a_run_directory_that_may_not_be_read_is_an_error():
    with unprivileged() as folder:
        log = WandbLog(folder)
        log.write(*losses(range(3)))
        log.directory.chmod(0)
        try:
            with pytest.raises(SourceError, match="can't be read: Permission denied"):
                log.read()
        finally:
            log.directory.chmod(stat.S_IRWXU)
        assert len(log.losses()) == 3


def test_a_run_file_that_may_not_be_read_is_an_error():
    with unprivileged() as folder:
        log = WandbLog(folder)
        log.write(*losses(range(3)))
        log.file.chmod(0)

        with pytest.raises(SourceError, match="can't be read: Permission denied"):
            log.read()


def test_a_run_file_that_may_be_read_again_says_how_its_run_ended():
    with unprivileged() as folder:
        log = WandbLog(folder)
        log.write(run("abc", name="brave"), end(1))
        log.file.chmod(0)
        before = log.run()
        log.file.chmod(stat.S_IRUSR)

        after = log.run()

    assert (before.status, after.status, after.name) == (
        RunStatus.RUNNING,
        RunStatus.FAILED,
        "brave",
    )


def test_links_in_a_circle_of_runs_end(log):
    os.symlink("..", log.directory / "up")

    assert ids(log.source) == ["abc"]


def test_the_last_lines_of_a_run_are_those_it_printed(log):
    printed = log.directory / "files" / "output.log"
    printed.parent.mkdir()
    printed.write_text("one\n10%\r50%\r100%\n\x1b[31mError\x1b[0m: caf\xe9\n\n")

    assert log.source.last_lines(log.run(), 3) == ["one", "100%", "Error: café"]
    assert log.source.last_lines(log.run(), 1) == ["Error: café"]


def test_a_run_that_printed_nothing_has_no_last_lines(log):
    assert log.source.last_lines(log.run(), 3) == []


@pytest.mark.parametrize(
    ("file", "formats"),
    [
        ("well", ["wandb"]),
        ("damaged", ["wandb", "text: key=value"]),
        ("deleted", ["wandb", "text: key=value"]),
    ],
)
def test_what_a_run_printed_is_a_log_of_its_own_only_where_its_file_cannot_be_read(
    tmp_path, log, file, formats
):
    log.write(*losses(range(3)))
    other = log.folder / "run-20261201_070707-other"
    (other / "files").mkdir(parents=True)
    (other / "files" / "output.log").write_text("step 1 loss 3\nstep 2 loss 2\n")
    if file != "deleted":
        content = log.file.read_bytes() if file == "well" else b"no file of wandb"
        (other / "run-other.wandb").write_bytes(content)

    assert [entry.recognition.format for entry in find_logs(tmp_path)] == formats


def test_what_a_run_has_is_told_by_its_content(tmp_path, log):
    (tmp_path / "notes.wandb").write_text("no")
    renamed = tmp_path / "renamed.bin"
    renamed.write_bytes(HEADER)
    (tmp_path / "empty").mkdir()
    found = {
        path.name: WandbFilesSource.recognise(path)
        for path in (log.file, log.directory, log.folder, renamed, tmp_path / "empty")
    }

    assert {name: r and r.format for name, r in found.items()} == {
        "run-abc.wandb": "wandb",
        log.directory.name: "wandb",
        "wandb": "wandb",
        "renamed.bin": "wandb",
        "empty": None,
    }
    refused = WandbFilesSource.recognise(tmp_path / "notes.wandb")
    assert refused is not None
    assert refused.refused == "it doesn't begin as files of wandb do"


def test_nothing_is_read_of_files_that_did_not_change(log, monkeypatch):
    log.write(run(), *losses(range(10)))
    first = log.run()
    opened = []
    monkeypatch.setattr(os, "open", lambda *args, **kwargs: opened.append(args))

    assert log.run() is first
    assert opened == []


def test_a_damaged_file_is_still_listed(log):
    log.append(b"\xff" * 50)
    log.write(end())

    assert log.run().status is RunStatus.RUNNING
    assert skipped_of(log.read()) == {"corrupt record": 1}
