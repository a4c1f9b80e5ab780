import importlib
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import wtwin_watch
import wtwin_watch.daemon
from tests.support.plugin_site import installed
from wtwin_watch import cli, logs
from wtwin_watch.errors import DeliveryError, SettingsError, SourceError, StoreError, UsageError

HEAVY = ["wandb", "mlflow", "tensorboard", "scipy", "matplotlib", "numpy", "sqlalchemy"]


pytestmark = pytest.mark.usefixtures("no_settings", "logging_as_before")


def in_python(*args: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environ},
    )


def raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command ``check`` end with ``error``."""

    @click.command("check")
    def command() -> None:
        raise error

    monkeypatch.setattr("wtwin_watch.cli.check.command", command)


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_shows_the_commands_the_options_of_run_and_an_example(flag: str, capsys):
    assert cli.main([flag]) == 0

    shown = capsys.readouterr().out
    for command in cli.COMMANDS:
        assert f"\n  {command} " in shown
    for option in ("--csv PATTERN", "--once", "--dry-run", "--slack-channel ID", "--log-format"):
        assert option in shown
    assert "wtwin-watch --csv 'runs/*.csv'" in shown


@pytest.mark.parametrize("command", ["", "run", "check"])
def test_help_says_which_options_want_an_adapter_that_is_not_there(
    command: str, tmp_path: Path, capsys
):
    lacking = "(adapter not in this version)"

    def told(option: str) -> bool:
        assert cli.main([*command.split(), "--help"]) == 0
        _, own = capsys.readouterr().out.split(f"\n  {option} ")
        return lacking in " ".join(own.split("\n  --")[0].split())

    options = ("--csv", "--project", "--mlflow", "--experiment")
    assert [told(option) for option in options] == [False, False, True, True]

    with installed(tmp_path / "site", modules={}, adapters={"mlflow": "acme:Source"}):
        assert [told(option) for option in options] == [False, False, False, False]


def test_help_loads_nothing_heavy():
    program = (
        "import sys; from wtwin_watch.cli import main; code = main(['--help'])\n"
        f"heavy = [name for name in {HEAVY} if name in sys.modules]\n"
        "assert not heavy, heavy\n"
        "sys.exit(code)"
    )

    done = in_python("-W", "error", "-c", program)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_listed_command_can_be_imported_and_has_help_with_an_example(name: str, capsys):
    module = importlib.import_module(f"wtwin_watch.cli.{name.replace('-', '_')}")
    assert isinstance(module.command, click.Command)

    assert cli.main([name, "--help"]) == 0
    assert f"wtwin-watch {name}" in capsys.readouterr().out


def test_the_version_is_told():
    assert in_python("-m", "wtwin_watch", "--version").stdout == (
        f"wtwin-watch {wtwin_watch.__version__}\n"
    )


@pytest.mark.parametrize(
    "args",
    [
        ["--csv", "x.csv", "--once"],
        ["run", "--csv", "x.csv", "--once"],
        ["--debug", "--csv", "x.csv", "--once"],
    ],
)
def test_run_is_the_command_if_none_is_named(args: list[str], monkeypatch: pytest.MonkeyPatch):
    seen = []

    @click.command("run")
    @click.option("--csv")
    @click.option("--once", is_flag=True)
    def command(csv: str, once: bool) -> int:
        seen.append((csv, once))
        return 69

    monkeypatch.setattr("wtwin_watch.cli.run.command", command)

    assert cli.main(args) == 69
    assert seen == [("x.csv", True)]


@pytest.mark.usefixtures("toy_adapter")
def test_run_hands_settings_and_options_to_the_daemon(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys
):
    config = tmp_path / "c.toml"
    config.write_text('[[source]]\nadapter = "toy"\npath = "x"\n')
    seen = []
    monkeypatch.setattr(wtwin_watch.daemon, "run", lambda *given: seen.append(given) or 1)
    flags = ["--once", "--fresh", "--dry-run", "--alpha", "3", "--warmup", "9", "--n-consec", "2"]
    flags += ["--mad-window", "7", "--tau", "0.5", "--state", "s.db", "--interval", "1m"]

    assert cli.main(["--config", str(config), *flags]) == 1

    [(settings, options)] = seen
    assert (options.once, options.fresh, options.dry_run) == (True, True, True)
    assert settings.detector.model_dump(exclude_defaults=True) == {
        "name": "classic",
        "alpha": 3.0,
        "warmup_steps": 9,
        "n_consec": 2,
        "mad_window": 7,
        "tau": 0.5,
    }
    assert (settings.state, settings.sources[0].interval_s) == ("s.db", 60.0)
    err = capsys.readouterr().err
    assert "no receiver is given" in err
    assert "--alpha is a parameter of the detector 'classic', so that one is used" in err


def test_without_settings_and_flags_an_example_is_shown(capsys):
    assert cli.main([]) == 2

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("wtwin-watch: error: nothing to watch.")
    assert "wtwin-watch --csv 'runs/*.csv'" in told.err


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["insepct"], "no such command: 'insepct'; did you mean 'inspect'?"),
        (["xyz"], "no such command: 'xyz'; there is: run, monitor,"),
        (["run", "--nonsense"], "error: no such option '--nonsense'"),
        (["--nonsense"], "error: no such option '--nonsense'"),
        (["inspect"], "error: missing argument 'PATH...'"),
        (
            ["--csv", "x", "--alpha", "high"],
            "error: invalid value for '--alpha': 'high' is not a valid float",
        ),
        (["--csv", "x", "-q", "-v"], "--verbose and --quiet exclude each other"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_exit_code_2(args: list[str], told: str, capsys):
    assert cli.main(args) == 2

    error = capsys.readouterr().err
    assert error.startswith("wtwin-watch: error: ")
    assert told in error
    assert "--help'" in error


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (UsageError("asked wrongly"), 2, "asked wrongly"),
        (SettingsError(["a:1: x: one"]), 78, "a:1: x: one"),
        (
            SettingsError(["a:1: x: one", "a:2: y: two"]),
            78,
            "2 mistakes in the settings:\n  a:1: x: one\n  a:2: y: two",
        ),
        (SourceError("can't read"), 69, "can't read"),
        (StoreError("no state"), 69, "no state"),
        (click.ClickException("DNS is down"), 2, "DNS is down"),
        (UsageError("a\x1b[2Jb"), 2, "a\\x1b[2Jb"),
        (DeliveryError("no Slack"), 1, "no Slack"),
        (
            ZeroDivisionError("by zero"),
            70,
            "unexpected ZeroDivisionError: by zero\n"
            "  This is a mistake in wtwin-watch; --debug before the command shows where.",
        ),
        (click.FileError("x", "gone"), 2, "could not open file 'x': gone"),
    ],
)
def test_an_error_is_a_line_on_stderr_and_an_exit_code(
    error: Exception, code: int, told: str, monkeypatch: pytest.MonkeyPatch, capsys
):
    raising(error, monkeypatch)

    assert cli.main(["check"]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == f"wtwin-watch: error: {told}\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interruption_is_exit_code_130_without_a_word(error, monkeypatch, capsys):
    raising(error, monkeypatch)

    assert cli.main(["check"]) == 130
    assert capsys.readouterr().err.strip() == ""


def test_a_traceback_is_shown_on_demand_with_secrets_masked(
    monkeypatch: pytest.MonkeyPatch, capsys
):
    monkeypatch.setenv("WTWIN_WATCH_DEBUG", "1")
    logs.hide(["hunter22"])
    raising(UsageError("wrong: hunter22"), monkeypatch)

    assert cli.main(["check"]) == 2

    told = capsys.readouterr().err
    assert told.startswith("Traceback (most recent call last)")
    assert told.endswith("wtwin-watch: error: wrong: (hidden)\n")
    assert "hunter22" not in told


def test_nobody_reading_on_is_no_reason_to_complain():
    done = subprocess.run(
        f"{sys.executable} -m wtwin_watch check --schema | head -c 1; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert done.stderr == b""
    assert done.returncode in {0, 141}  # 0 where the pipe took all before it was closed
