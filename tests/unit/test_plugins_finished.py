from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.plugin_site import TOY, installed
from wtwin_watch.errors import UsageError
from wtwin_watch.ingest import finished
from wtwin_watch.ingest.finished import FinishedRun, find_logs, read_log
from wtwin_watch.metrics import Names
from wtwin_watch.model import Point


@pytest.fixture(autouse=True)
def toys(tmp_path_factory: pytest.TempPathFactory):
    site = tmp_path_factory.mktemp("site")
    with installed(site, modules={"acme_toy": TOY}, adapters={"toy": "acme_toy:ToySource"}):
        yield


def read_logs(
    path: Path, names: Names, talk: Callable[[str], None] | None = None
) -> list[FinishedRun]:
    """Read what can be read at ``path``."""
    logs = [log for log in find_logs(path, names) if log.recognition.refused is None]
    return [run for log in logs for run in read_log(log, names, talk)]


def test_a_finished_log_is_read_to_its_end(tmp_path: Path):
    path = tmp_path / "run7.toy"
    path.write_text("1 9.5\n2 9.0\njunk\n3 8.5\njunk\n")

    [run] = read_logs(path, Names(loss="my loss"))

    assert run.points == [
        Point("my loss", 1, 9.5),
        Point("my loss", 2, 9.0),
        Point("my loss", 3, 8.5),
    ]
    assert (run.log, run.name, run.format) == (str(path), "run7", "toy")
    assert (run.step_name, run.skipped, run.restarts) == ("line", {"junk": 2}, 0)


def test_points_that_a_restart_replaces_are_left_out(tmp_path: Path):
    path = tmp_path / "run.toy"
    path.write_text("1 9\n2 8\n3 7\nback 2\n2 8.5\n3 7.5\n")

    [run] = read_logs(path, Names())

    assert [(p.step, p.value) for p in run.points] == [(1, 9), (2, 8.5), (3, 7.5)]
    assert run.restarts == 1


def test_a_log_that_begins_anew_forgets_what_was_before(tmp_path: Path):
    path = tmp_path / "run.toy"
    path.write_text("1 9\n2 8\nanew\n1 5\n")

    [run] = read_logs(path, Names())

    assert [(p.step, p.value) for p in run.points] == [(1, 5)]


def test_a_folder_gives_every_log_in_it_and_passes_over_the_rest(tmp_path: Path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "b.toy").write_text("1 1\n")
    (tmp_path / "README.md").write_text("no log")
    (tmp_path / "x.bad").write_text("")
    (tmp_path / ".git" / "hidden.toy").write_text("1 1\n")
    (tmp_path / "deep" / "er" / "a.toy").write_text("1 2\n")

    runs = read_logs(tmp_path, Names())

    assert [run.name for run in runs] == ["b", "a"]
    assert [log.path.name for log in find_logs(tmp_path, Names())] == [
        "b.toy",
        "x.bad",
        "a.toy",
    ]


def test_what_lies_in_a_folder_that_is_itself_a_log_is_read_once(tmp_path: Path):
    (tmp_path / "box" / "sub").mkdir(parents=True)
    (tmp_path / "box" / "toys").write_text("1 1\n")
    (tmp_path / "box" / "part.toy").write_text("1 1\n")
    (tmp_path / "box" / "sub" / "part.toy").write_text("1 1\n")
    (tmp_path / "c.toy").write_text("1 3\n")

    runs = read_logs(tmp_path, Names())

    assert [(run.name, run.format) for run in runs] == [("c", "toy"), ("toys", "toybox")]


def test_a_folder_itself_can_be_one_log(tmp_path: Path):
    (tmp_path / "toys").write_text("1 1\n2 2\n")

    [run] = read_logs(tmp_path, Names())

    assert run.format == "toybox"
    assert len(run.points) == 2


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("absent.toy", None, "No such file or directory; check the path"),
        ("thing.zzz", "hello", "not a log this program knows"),
        ("thing.toy", "1 1\nbroken\n", "the toy is broken"),
    ],
)
def test_a_path_that_is_no_readable_log_is_refused_with_the_reason(
    tmp_path: Path, name: str, content: str | None, reason: str
):
    if content is not None:
        (tmp_path / name).write_text(content)

    with pytest.raises(UsageError, match=reason):
        read_logs(tmp_path / name, Names())


def test_a_folder_without_logs_is_refused(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("no log")

    with pytest.raises(UsageError, match="no log in this folder"):
        read_logs(tmp_path, Names())


def test_a_long_reading_is_talked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(finished, "QUIET_S", 0.0)
    path = tmp_path / "run.toy"
    path.write_text("1 9\n2 8\n3 7\n")
    talk: list[str] = []

    read_logs(path, Names(), talk.append)

    assert talk == [f"reading {path}: run 'run', 2 points", ""]


def test_a_log_refused_for_want_of_a_loss_is_read_where_the_loss_is_named(tmp_path: Path):
    path = tmp_path / "x.bad"
    path.write_text("1 9\n")

    [run] = read_logs(path, Names(loss="mine"))

    assert run.points == [Point("mine", 1, 9)]


def test_a_run_that_cannot_be_read_costs_no_other(tmp_path: Path):
    two = TOY.replace(
        'yield Run(RunKey(self.name, "r"), name=Path(self.options.path).stem)',
        """
        yield Run(RunKey(self.name, "good"), name="good")
        yield Run(RunKey(self.name, "bad"), name="bad")
""",
    ).replace(
        "    def fetch(self, run, cursor, limit):\n",
        """    def fetch(self, run, cursor, limit):
        if run.name == "bad":
            raise SourceError("it may not be read")
""",
    )
    path = tmp_path / "runs.two"
    path.write_text("1 9\n")
    source = two.replace('".toy"', '".two"')
    with installed(
        tmp_path / "site", modules={"acme_two": source}, adapters={"two": "acme_two:ToySource"}
    ):
        good, bad = read_logs(path, Names())

    assert (good.name, good.error, len(good.points)) == ("good", None, 1)
    assert (bad.name, bad.error, bad.points) == ("bad", "it may not be read", [])


def test_a_last_line_without_its_end_counts_though_it_was_written_a_moment_ago(tmp_path: Path):
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n1,2.5\n2,2.25")

    (run,) = read_logs(path, Names())

    assert [point.value for point in run.points] == [2.5, 2.25]
