"""The migration page: its imports import, its commands run, its code runs."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support.classic_series import benchmark_curve
from tests.support.command_line import CommandLine
from wtwin_watch.demo import show
from wtwin_watch.demo.show import Result

PAGE = (Path(__file__).parents[2] / "docs" / "migration.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", PAGE, flags=re.M)
IMPORTS = [row for row in ROWS if row[0].startswith("from ")]
COMMANDS = [row for row in ROWS if not row[0].startswith("from ")]
CODE = re.findall(r"^```python\n(.*?)```", PAGE, flags=re.M | re.DOTALL)
COLUMNS = "step,loss,wtwin_D,wtwin_Q,wtwin_T,wtwin_W,wtwin_alert"


def imported(line: str) -> list[str]:
    return line.split(" import ")[1].split(", ")


@pytest.mark.parametrize(("published", "here"), IMPORTS)
def test_an_import_finds_the_same_names(published: str, here: str):
    found: dict[str, object] = {}
    exec(here, found)

    assert imported(published) == imported(here)
    assert [name for name in imported(here) if name not in found] == []


@pytest.mark.parametrize(("published", "here"), COMMANDS)
def test_a_command_runs_with_the_options_it_had(
    published: str,
    here: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wtwin_watch: CommandLine,
):
    losses = benchmark_curve("spike", 0)
    rows = [f"{step},{loss}" for step, loss in enumerate(losses, 1)]
    (tmp_path / "run.csv").write_text("\n".join(["step,train_loss", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    played = Result(1, False, None, (), {}, (), 1.0, None)  # what it does has tests of its own
    monkeypatch.setattr(show, "play", lambda *_: played)
    program, *arguments = shlex.split(here)

    ran = wtwin_watch(*arguments)

    assert program == "wtwin-watch"
    assert arguments[: len(shlex.split(published))] == shlex.split(published)
    assert set(arguments) - set(shlex.split(published)) <= {"--detector", "classic"}
    assert ran.code == (0 if published == "demo" else 1), ran.err
    if "--json" in arguments:
        assert json.loads(ran.out)["detector"] == "classic"
    if "--output" in arguments:
        assert (tmp_path / "scores.csv").read_text().splitlines()[0] == COLUMNS


def test_the_maps_have_all_that_was_there():
    names = {name for published, _ in IMPORTS for name in imported(published)}
    commands = {published.split()[0] for published, _ in COMMANDS}
    options = {
        word for published, _ in COMMANDS for word in published.split() if word.startswith("--")
    }

    assert names == {
        "BaseBaseline", "PowerLawBaseline", "Suggestion", "WTwinMonitor", "WTwinState", "suggest",
    }  # fmt: skip
    assert commands == {"monitor", "suggest", "demo"}
    assert options == {
        "--loss-col", "--step-col", "--alpha", "--warmup", "--n-consec", "--mad-window", "--tau", "--output",
        "--json",
    }  # fmt: skip


@pytest.mark.parametrize("code", CODE)
def test_the_code_of_the_page_runs(code: str, capsys: pytest.CaptureFixture[str]):
    losses = [*benchmark_curve("spike", 0)]

    exec(code, {"training": lambda: enumerate(losses, 1)})

    assert ("alert at step" in capsys.readouterr().out) == ("print" in code)
