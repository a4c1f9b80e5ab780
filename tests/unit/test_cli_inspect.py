import os
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("toy_adapter")


def test_a_log_is_described_for_a_program(wtwin_watch: CommandLine, tmp_path: Path):
    path = tmp_path / "run7.toy"
    path.write_text("10 9.5\njunk\n20 nan\n30 8.25\n")

    done = wtwin_watch("inspect", path, "--json")

    assert done.code == 0
    assert done.json == [
        {
            "path": str(path),
            "format": "toy",
            "runs": [
                {
                    "name": "run7",
                    "step": "line",
                    "loss": "loss",
                    "lr": None,
                    "grad_norm": None,
                    "points": 3,
                    "skipped": {"junk": 1},
                    "first_step": 10.0,
                    "last_step": 30.0,
                    "last_loss": 8.25,
                }
            ],
            "refused": None,
        }
    ]


def test_a_loss_that_is_no_number_is_shown_as_such(wtwin_watch: CommandLine, tmp_path: Path):
    path = tmp_path / "run.toy"
    path.write_text("1 9\n2 nan\n")

    assert wtwin_watch("inspect", path, "--json").json[0]["runs"][0]["last_loss"] == "NaN"
    assert "last nan" in wtwin_watch("inspect", path).out


def test_a_log_is_described_for_a_person(wtwin_watch: CommandLine, tmp_path: Path):
    path = tmp_path / "run7.toy"
    path.write_text("10 9.5\njunk\n20 8.25\n")

    assert wtwin_watch("inspect", path).out.splitlines() == [
        f"{path}: toy",
        "  run      run7",
        "  step     line",
        "  loss     loss: 2 points, steps 10 to 20, last 8.25",
        "  skipped  1 junk",
    ]


def test_a_log_without_a_loss_is_told_how_to_name_it(wtwin_watch: CommandLine, tmp_path: Path):
    path = tmp_path / "run.toy"
    path.write_text("1 9\n2 8\n")

    done = wtwin_watch("inspect", path, "--loss-col", "nowhere")
    assert (done.code, "nowhere: 2 points" in done.out) == (0, True)

    path.write_text("junk\n")
    done = wtwin_watch("inspect", path)
    assert (done.code, "none found; name it with --loss-col" in done.out) == (0, True)


def test_what_cannot_be_read_in_a_folder_is_told_beside_the_rest(
    wtwin_watch: CommandLine, tmp_path: Path
):
    (tmp_path / "a.toy").write_text("1 9\n")
    (tmp_path / "b.bad").write_text("")
    (tmp_path / "c.toy").write_text("broken\n")

    done = wtwin_watch("inspect", tmp_path, "--json")

    assert done.code == 0
    assert [(Path(log["path"]).name, len(log["runs"]), log["refused"]) for log in done.json] == [
        ("a.toy", 1, None),
        ("b.bad", 0, "it is bad"),
        ("c.toy", 0, "the toy is broken"),
    ]


def test_a_path_that_cannot_be_read_is_exit_code_2_and_the_others_are_shown(
    wtwin_watch: CommandLine, tmp_path: Path
):
    good = tmp_path / "good.toy"
    good.write_text("1 9\n")
    bad = tmp_path / "x.bad"
    bad.write_text("")

    done = wtwin_watch("inspect", tmp_path / "missing.toy", good, bad)

    assert done.code == 2
    assert f"{good}: toy" in done.out
    assert f"{bad}: toy, can't be read: it is bad" in done.out
    assert "missing.toy: can't be read: No such file or directory" in done.err
    assert "x.bad: it is bad" in done.err


def test_a_pipe_is_refused_and_not_waited_for(wtwin_watch: CommandLine, tmp_path: Path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)

    ended = wtwin_watch("inspect", str(pipe))

    assert ended.code == 2
    assert "is a pipe or a device, not a file; write the log to a file first" in ended.err


def test_a_name_in_a_log_cannot_steer_the_terminal(wtwin_watch: CommandLine, tmp_path: Path):
    path = tmp_path / "\x1b[2Jx.toy"
    path.write_text("1 9\n")

    assert "\x1b" not in wtwin_watch("inspect", path).out


def test_a_pattern_of_ones_own_can_be_tried(wtwin_watch: CommandLine, tmp_path: Path):
    log = tmp_path / "train.log"
    log.write_text("it 5 > 2.5\nit 6 > 2.25\n")

    good = wtwin_watch("inspect", log, "--pattern", r"it (?P<step>\d+) > (?P<loss>\S+)", "--json")
    bad = wtwin_watch("inspect", log, "--pattern", "(?P<loss>")
    folder = wtwin_watch("inspect", tmp_path, "--pattern", "(?P<loss>x)")

    (found,) = good.json
    (run,) = found["runs"]
    assert (good.code, found["format"]) == (0, "text: own pattern")
    assert (run["step"], run["loss"], run["points"], run["last_loss"]) == ("step", "loss", 2, 2.25)
    assert bad.code == folder.code == 2
    assert "is no regular expression" in bad.err
    assert "is no file; a pattern is for the lines of one" in folder.err
