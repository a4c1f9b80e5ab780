import re
from pathlib import Path

import click
import pytest

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


def test_every_exit_code_is_documented():
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", DOCUMENT, flags=re.M)}

    assert codes == {0, 1, 2, 69, 70, 78, 130, 141}
