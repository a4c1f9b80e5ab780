"""Which files a path names, what they are called, and what it costs to look again."""

import os
import stat
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.support.writers import unprivileged
from wtwin_adapters.tabular import TabularSource
from wtwin_watch.errors import SourceError
from wtwin_watch.testing import ManualClock, read_on

CSV = "step,loss\n1,0.5\n"


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CSV)


def source(path, clock=None):
    options = TabularSource.Options(path=path)
    return TabularSource("logs", options, clock) if clock else TabularSource("logs", options)


def ids(opened) -> list[str]:
    return [run.key.run for run in opened.runs()]


def test_a_file_is_a_run_named_with_its_folder(tmp_path):
    make(tmp_path, "run7/metrics.csv")

    (run,) = source(tmp_path / "run7" / "metrics.csv").runs()

    assert (run.key.source, run.key.run, run.name) == ("logs", "metrics.csv", "run7/metrics")
    assert run.last_activity == (tmp_path / "run7/metrics.csv").stat().st_mtime


def test_a_file_given_by_itself_may_have_any_extension(tmp_path):
    make(tmp_path, "train.log")

    assert ids(source(tmp_path / "train.log")) == ["train.log"]


def test_a_folder_is_searched_at_any_depth_for_logs_by_extension(tmp_path):
    make(tmp_path, "a.csv", "b/c.tsv", "b/d/e.jsonl", "f.ndjson", "notes.txt", "state.db")

    assert ids(source(tmp_path)) == ["a.csv", "b/c.tsv", "b/d/e.jsonl", "f.ndjson"]


def test_hidden_files_and_folders_are_passed_over(tmp_path):
    make(tmp_path, "a.csv", ".b.csv", ".git/c.csv", "lost+found/d.csv")

    assert ids(source(tmp_path)) == ["a.csv"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.csv", ["a.csv"]),
        ("*/*.csv", ["r1/m.csv", "r2/m.csv"]),
        ("r[1]/m.csv", ["r1/m.csv"]),
        ("**/m.csv", ["r1/m.csv", "r2/m.csv", "r2/x/m.csv"]),
        ("r2/**", ["m.csv", "x/m.csv"]),
        ("r*", ["r1/m.csv", "r2/m.csv", "r2/x/m.csv"]),
        ("*/x", ["r2/x/m.csv"]),
        ("r?/*.log", ["r2/n.log"]),
        ("none*", []),
    ],
)
def test_a_pattern_names_files_or_folders(tmp_path, pattern, found):
    make(tmp_path, "a.csv", "r1/m.csv", "r2/m.csv", "r2/x/m.csv", "r2/n.log", "r2/state.db-wal")

    assert ids(source(f"{tmp_path}/{pattern}")) == found


def test_a_name_that_looks_like_a_pattern_is_a_name_if_it_is_there(tmp_path):
    make(tmp_path, "run[1]/m.csv", "run1/m.csv")

    assert ids(source(tmp_path / "run[1]")) == ["m.csv"]


def test_several_paths_share_the_folder_that_ids_are_relative_to(tmp_path):
    make(tmp_path, "a/m.csv", "b/m.csv", "c/x.csv")
    paths = [str(tmp_path / "a"), f"{tmp_path}/b/*.csv", str(tmp_path / "c" / "x.csv")]

    assert ids(source(paths)) == ["a/m.csv", "b/m.csv", "c/x.csv"]


def test_a_file_that_several_paths_name_is_listed_once(tmp_path):
    make(tmp_path, "a/m.csv")
    os.symlink("a/m.csv", tmp_path / "latest.csv")
    os.symlink("a", tmp_path / "also")
    os.link(tmp_path / "a/m.csv", tmp_path / "a/n.csv")

    assert ids(source([str(tmp_path), f"{tmp_path}/*/m.csv"])) == ["a/m.csv"]


def test_links_in_a_circle_end(tmp_path):
    make(tmp_path, "a/m.csv")
    os.symlink("..", tmp_path / "a" / "up")
    os.symlink("loop", tmp_path / "loop")

    assert ids(source(tmp_path)) == ["a/m.csv"]


def test_a_link_to_a_folder_elsewhere_is_followed(tmp_path):
    make(tmp_path, "store/m.csv")
    (tmp_path / "logs").mkdir()
    os.symlink(tmp_path / "store", tmp_path / "logs" / "run")

    assert ids(source(tmp_path / "logs")) == ["run/m.csv"]


def test_a_name_that_is_no_unicode_still_makes_a_run_that_can_be_read(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.csv"
    Path(os.fsdecode(path)).write_text(CSV)
    opened = source(tmp_path)

    (run,) = opened.runs()

    assert run.key.run == "caf\\xe9.csv"
    assert len(read_on(opened, run)[0].points) == 1


@pytest.mark.parametrize("missing", ["none.csv", "none/*.csv", "none/none.csv"])
def test_a_path_that_is_not_there_is_an_error_with_the_cure(tmp_path, missing):
    with pytest.raises(
        SourceError, match=r"none.* can't be read: No such file or directory; create"
    ):
        source(tmp_path / missing).runs()


def test_one_missing_path_among_several_is_an_error(tmp_path):
    make(tmp_path, "a/m.csv")

    with pytest.raises(SourceError, match="none"):
        source([str(tmp_path / "a"), str(tmp_path / "none")]).runs()


def test_a_pipe_is_no_log(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    make(tmp_path, "a.csv")

    assert ids(source(tmp_path)) == ["a.csv"]
    with pytest.raises(SourceError, match="neither a log file nor a folder"):
        source(tmp_path / "pipe.csv").runs()


def test_a_folder_that_may_not_be_read_is_an_error():
    with unprivileged() as folder:
        folder.chmod(0)
        try:
            with pytest.raises(SourceError, match=r"Permission denied; give the user .* the right"):
                source(folder).runs()
        finally:
            folder.chmod(stat.S_IRWXU)


def test_a_file_that_may_not_be_read_is_listed_and_its_fetch_says_why():
    with unprivileged() as folder:
        make(folder, "a.csv", "b.csv")
        (folder / "b.csv").chmod(0)
        opened = source(folder)

        good, bad = opened.runs()

        assert len(read_on(opened, good)[0].points) == 1
        with pytest.raises(SourceError, match=r"b\.csv can't be read: Permission denied"):
            opened.fetch(bad, None, 10)


def test_a_folder_below_that_may_not_be_read_is_not_passed_over_in_silence():
    with unprivileged() as folder:
        make(folder, "a.csv", "locked/b.csv")
        opened = source(folder, ManualClock())
        assert ids(opened) == ["a.csv", "locked/b.csv"]
        (folder / "locked").chmod(0)
        try:
            runs = {run.key.run: run for run in opened.runs()}

            # What was there stays listed: unreadable is not gone.
            assert sorted(runs) == ["a.csv", "locked", "locked/b.csv"]
            assert runs["locked"].version is None
            with pytest.raises(SourceError, match="locked can't be read: Permission denied"):
                opened.fetch(runs["locked"], None, 10)
        finally:
            (folder / "locked").chmod(stat.S_IRWXU)
        assert ids(opened) == ["a.csv", "locked/b.csv"]


def test_new_and_vanished_files_are_seen_at_the_next_look(tmp_path):
    make(tmp_path, "a/m.csv")
    opened = source(tmp_path, ManualClock())
    assert ids(opened) == ["a/m.csv"]

    make(tmp_path, "a/n.csv", "b/c/m.csv")
    assert ids(opened) == ["a/m.csv", "a/n.csv", "b/c/m.csv"]

    (tmp_path / "a" / "m.csv").unlink()
    (tmp_path / "b" / "c" / "m.csv").unlink()
    (tmp_path / "b" / "c").rmdir()
    assert ids(opened) == ["a/n.csv"]


def test_a_file_is_found_within_seconds_where_folder_times_are_late(tmp_path):
    clock = ManualClock()
    make(tmp_path, "a.csv")
    then = tmp_path.stat().st_mtime_ns - 10**10
    os.utime(tmp_path, ns=(then, then))
    opened = source(tmp_path, clock)
    clock.now = tmp_path.stat().st_mtime + 10  # the folder's time is not so fresh as to be doubted
    opened.runs()
    make(tmp_path, "b.csv")
    os.utime(tmp_path, ns=(then, then))

    assert ids(opened) == ["a.csv"]
    clock.advance(5.1)
    assert ids(opened) == ["a.csv", "b.csv"]


def test_the_version_changes_with_the_file_and_only_then(tmp_path):
    make(tmp_path, "a.csv", "b.csv")
    opened = source(tmp_path)
    a, b = opened.runs()

    with (tmp_path / "a.csv").open("a") as file:
        file.write("2,0.25\n")
    a_later, b_later = opened.runs()

    assert a_later.version != a.version
    assert b_later is b


def test_an_empty_file_is_a_run_without_points(tmp_path):
    (tmp_path / "a.csv").touch()
    opened = source(tmp_path)

    (run,) = opened.runs()

    (batch,) = read_on(opened, run)
    assert (batch.points, batch.more, batch.step_name) == ([], False, None)


def test_a_run_can_be_fetched_before_anything_was_listed(tmp_path):
    make(tmp_path, "r/m.csv")
    (run,) = source(tmp_path).runs()

    assert len(read_on(source(tmp_path), run)[0].points) == 1


def test_the_folders_to_be_watched_for_events_are_named(tmp_path):
    make(tmp_path, "a/m.csv", "b/m.csv")

    assert source(tmp_path / "a/m.csv").roots() == [tmp_path / "a"]
    assert source([f"{tmp_path}/*/m.csv", str(tmp_path / "b")]).roots() == [
        tmp_path,
        tmp_path / "b",
    ]


def test_looking_again_at_many_files_costs_little_more_than_a_stat_each(tmp_path, monkeypatch):
    for i in range(50):
        make(tmp_path, *(f"r{i}/m{j}.csv" for j in range(10)))
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

    # 500 files, 50 folders, the root once for itself and once as a folder
    assert calls == {"stat": 552, "scandir": 0, "open": 0}
    assert all(x is y for x, y in zip(first, again, strict=True))


@pytest.mark.parametrize("path", ["", [], [""], 7, None])
def test_a_path_that_names_nothing_is_a_mistake_in_the_settings(path):
    with pytest.raises(ValidationError):
        TabularSource.Options(path=path)
