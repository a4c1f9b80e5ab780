"""Running commands inside a test, apart from the settings of the machine the tests run on."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from wtwin_watch import cli


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """Put logging back as it was: commands set it up for the whole process."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.root.handlers[:], logging.root.level = handlers, level


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A home without settings, and no environment variable of ours."""
    for name in list(os.environ):
        if name.startswith(("WTWIN_WATCH_", "SLACK_", "XDG_")) and name != "WTWIN_WATCH_CORPUS":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    # `--debug` sets it for the rest of the process.
    monkeypatch.setenv("WTWIN_WATCH_DEBUG", "")


@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *args: str | Path) -> Done:
        self._capsys.readouterr()
        code = cli.main([str(arg) for arg in args])
        shown = self._capsys.readouterr()
        return Done(code, shown.out, shown.err)


@pytest.fixture
def wtwin_watch(
    no_settings: None, logging_as_before: None, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    """The program."""
    return CommandLine(capsys)
