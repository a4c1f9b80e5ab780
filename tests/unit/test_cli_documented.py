import json
import re
from pathlib import Path

import click
import pytest

from tests.support.command_line import CommandLine
from wtwin_watch import cli

DOCUMENT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()


def section(name: str) -> str:
    parts = re.split(r"^## (.+)$", DOCUMENT, flags=re.M)
    [text] = [
        body for head, body in zip(parts[1::2], parts[2::2], strict=True) if f"`{name}" in head
    ]
    return text


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_a_section(name: str):
    assert section(name).strip()


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_option_of_its_own_is_documented(name: str):
    def options(command: str) -> set[str]:
        found = cli.group.get_command(click.Context(cli.group), command)
        assert found is not None
        return {opt for param in found.params for opt in param.opts if opt.startswith("--")}

    own = options(name) if name == "run" else options(name) - options("run") - {"--json"}

    assert {option for option in own if f"`{option}" not in section(name)} == set()


def test_the_commands_with_json_are_those_that_are_said_to_have_it():
    without = [
        name
        for name in cli.COMMANDS
        if (command := cli.group.get_command(click.Context(cli.group), name)) is not None
        and not any("--json" in param.opts for param in command.params)
    ]

    assert without == ["run"]
    assert "Every command but `run` has `--json`" in DOCUMENT


def test_the_json_of_inspect_is_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wtwin_watch: CommandLine
):
    [shown] = re.findall(r"```json\n(.*?)```", section("inspect"), re.DOTALL)
    (tmp_path / "runs").mkdir()
    lines = [f"{step},{2.13 if step == 1200 else 3.0},0.1" for step in range(1, 1201)]
    lines[100:100] = ["101,?,0.1", "101,?,0.1"]
    (tmp_path / "runs" / "a.csv").write_text("\n".join(["step,train_loss,lr", *lines]) + "\n")
    monkeypatch.chdir(tmp_path)

    assert wtwin_watch("inspect", "runs/a.csv", "--json").json == json.loads(shown)


def test_every_exit_code_is_documented():
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", DOCUMENT, flags=re.M)}

    assert codes == {0, 1, 2, 69, 70, 78, 130, 141}
