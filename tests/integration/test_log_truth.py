"""Every real log that is at hand is recognised for what a person found in it, wherever it lies."""

import csv
import os
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine

CORPUS = os.environ.get("WTWIN_WATCH_CORPUS")
pytestmark = pytest.mark.skipif(not CORPUS, reason="WTWIN_WATCH_CORPUS doesn't name the corpus")
SAMPLES = Path(CORPUS or ".", "samples")


def truth():
    if not CORPUS:
        return []
    with (SAMPLES / "truth.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", truth(), ids=lambda row: row["file"])
def test_a_log_is_what_a_person_found_in_it(row, tmp_path, wtwin_watch: CommandLine):
    # A copy, just written, under a name that says nothing.
    path = tmp_path / f"copy{Path(row['file']).suffix}"
    shutil.copyfile(SAMPLES / row["file"], path)

    done = wtwin_watch("inspect", "--json", path)
    (log,) = done.json

    if not row["format"]:
        assert (done.code, log["runs"]) == (2, [])
        assert "no line has both a step and a loss" in log["refused"]
        return
    (run,) = log["runs"]
    assert (done.code, log["refused"]) == (0, None)
    assert log["format"] == row["format"]
    assert (run["loss"], run["step"], run["points"]) == (
        row["loss"],
        row["step"],
        int(row["points"]),
    )
    assert run["first_step"] == float(row["first_step"])
    assert run["last_step"] == float(row["last_step"])
    assert run["last_loss"] == float(row["last_loss"])


def test_the_curves_of_the_corpus_are_whole(wtwin_watch: CommandLine):
    with (SAMPLES.parent / "corpus/index.csv").open(newline="") as file:
        rows = {str(SAMPLES.parent / "corpus" / row["file"]): row for row in csv.DictReader(file)}

    done = wtwin_watch("inspect", "--json", *rows)
    found = {log["path"]: log for log in done.json}

    assert done.code == 0
    for path, row in rows.items():
        (run,) = found[path]["runs"]
        assert (found[path]["format"], run["loss"], run["step"]) == ("csv", "loss", "step"), path
        assert run["points"] == int(row["steps"]), path
        ends = run["first_step"], run["last_step"], float(run["last_loss"])
        known = (float(row[key]) for key in ("first_step", "last_step", "last_loss"))
        assert repr(ends) == repr(tuple(known)), path
