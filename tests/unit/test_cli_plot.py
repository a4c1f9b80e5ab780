"""``monitor --plot``: a picture a run, and what is said where there can be none."""

import importlib.util
import math

import pytest

from benchmarks import pictures
from tests.support.command_line import CommandLine

drawn = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="needs the extra plot"
)


@pytest.fixture
def log(tmp_path):
    def write(name, losses):
        path = tmp_path / name
        path.write_text("step,loss\n" + "".join(f"{i},{x}\n" for i, x in enumerate(losses)))
        return path

    return write


@drawn
def test_a_log_is_drawn_and_judged_as_without(wtwin_watch: CommandLine, log, tmp_path):
    path = log("run.csv", [2.0 + 1 / (i + 1) for i in range(200)] + [math.nan] * 5)
    picture = tmp_path / "out.png"

    with_plot = wtwin_watch("monitor", path, "--plot", picture)

    assert with_plot.code == 1
    assert with_plot.out == wtwin_watch("monitor", path).out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"written to {picture}" in with_plot.err


@drawn
def test_each_of_several_runs_has_a_picture_of_its_own(wtwin_watch: CommandLine, log, tmp_path):
    for name in ("a.csv", "b.csv"):
        log(name, [2.0 + 1 / (i + 1) for i in range(100)])

    assert wtwin_watch("monitor", tmp_path, "--plot", tmp_path / "out.png").code == 0

    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["out-1.png", "out-2.png"]


@drawn
@pytest.mark.parametrize("where", ["missing/out.png", "out.jpg"])
def test_a_picture_that_can_not_be_written_is_an_error_that_names_it(
    wtwin_watch: CommandLine, log, tmp_path, where
):
    done = wtwin_watch("monitor", log("run.csv", [1.0] * 9), "--plot", tmp_path / where)

    assert done.code == 2
    assert where in done.err


def test_without_the_extra_the_command_says_what_to_install(
    wtwin_watch: CommandLine, log, tmp_path, monkeypatch
):
    monkeypatch.setattr("wtwin_watch.plot.drawing.find_spec", lambda name: None)

    done = wtwin_watch("monitor", log("run.csv", [1.0] * 9), "--plot", tmp_path / "out.png")

    assert done.code == 2
    assert "pip install" in done.err
    assert "plot]" in done.err
    assert done.out == ""


@drawn
@pytest.mark.usefixtures("no_settings", "logging_as_before")
def test_the_pictures_of_the_documentation_are_made_by_a_command(tmp_path, capsys):
    pictures.main(["--folder", str(tmp_path)])

    made = {path.name for path in tmp_path.iterdir()}
    assert made == {path.name for path in pictures.FOLDER.iterdir()}
    told = capsys.readouterr().out
    assert all(kind in told for kind in ("drift", "spike", "divergence", "nonfinite"))
