"""What docs/service.md tells to write is right, and its parts fit each other."""

import re
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine

ROOT = Path(__file__).parents[2]
SERVICE = (ROOT / "docs" / "service.md").read_text()
UNIT = (ROOT / "config" / "wtwin-watch.service").read_text()


def example(language: str) -> str:
    [shown] = re.findall(rf"```{language}\n(.*?)```", SERVICE, re.DOTALL)
    return shown


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The settings shown, with logs that are there, and the secret in a file beside them."""
    config = tmp_path / "config.toml"
    config.write_text(example("toml").replace("/home/*/runs", str(tmp_path)))
    (tmp_path / "slack-token").write_text("xoxb-not-a-real-token\n")
    return config


def test_the_settings_that_are_shown_can_be_checked_in_a_shell(
    config: Path, wtwin_watch: CommandLine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    done = wtwin_watch("check", "--config", config)
    assert done.code == 78
    assert "'slack-token' needs $CREDENTIALS_DIRECTORY" in done.err
    assert "elsewhere set it to the folder of the file 'slack-token'" in done.err

    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(config.parent))
    done = wtwin_watch("check", "--config", config)
    assert (done.code, done.err) == (0, "")
    assert "state: /var/lib/wtwin-watch/state.db\n" in done.out


def test_the_secret_that_is_named_is_the_one_that_the_service_gets():
    [named] = re.findall(r'credential = "(.+)"', example("toml"))
    [(given, path)] = re.findall(r"^LoadCredential=(.+?):(.+)$", example("ini"), re.M)

    assert given == named
    # A shell finds it too: the file is called as the credential, in the folder that is exported.
    assert f"export CREDENTIALS_DIRECTORY={path.removesuffix('/' + named)} " in SERVICE
    assert f"/dev/stdin {path} " in SERVICE


def test_commands_in_a_shell_mean_the_state_and_settings_of_the_service():
    [state] = re.findall(r'^state = "(.+)"$', example("toml"), re.M)

    [folder] = re.findall(r"^StateDirectory=(.+)$", UNIT, re.M)
    assert state == f"/var/lib/{folder}/state.db"
    assert f"status --state {state}\n" in SERVICE
    [config] = re.findall(r"^ExecStart=.* --config (\S+)$", UNIT, re.M)
    assert re.findall(r"wtwin-watch (\S+) --config (\S+)", SERVICE) == [
        ("check", config),
        ("test-notify", config),
    ]
