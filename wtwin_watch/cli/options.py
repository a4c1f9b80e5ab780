"""Options that several commands share: what to watch, whom to tell, where the settings are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]
Option = Callable[[Any], Any]


_PLACE = [
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Settings file; else $WTWIN_WATCH_CONFIG, ~/.config/wtwin-watch/config.toml,"
        " /etc/wtwin-watch/config.toml.",
    ),
    click.option(
        "--state",
        metavar="PATH|URL",
        help="Where the state is kept: a file, or a database URL without a password.",
    ),
]
_SOURCES = [
    click.option(
        "--csv",
        multiple=True,
        metavar="PATTERN",
        help="CSV, TSV or JSONL logs to watch; repeatable.",
    ),
    click.option(
        "--log",
        "logs",
        multiple=True,
        metavar="PATTERN",
        help="Logs of any kind in files: tables, text logs, trainer_state.json; repeatable.",
    ),
    click.option(
        "--tensorboard", multiple=True, metavar="DIR", help="TensorBoard log folder; repeatable."
    ),
    click.option(
        "--wandb-dir",
        multiple=True,
        metavar="DIR",
        help="Folder that wandb writes runs to on this machine, offline or not; repeatable.",
    ),
    click.option(
        "--project",
        multiple=True,
        metavar="ENTITY/PROJECT",
        help="W&B project; repeatable.",
    ),
    click.option(
        "--mlflow",
        metavar="URI",
        help="MLflow tracking server: http://HOST:PORT, or databricks; or the folder of a file store.",
    ),
    click.option(
        "--experiment",
        multiple=True,
        metavar="NAME",
        help="MLflow experiment, by name or id; repeatable. [default: all of them]",
    ),
    click.option(
        "--interval", metavar="DURATION", help="Time between two looks, such as 5s or 1m."
    ),
]
_RECEIVERS = [
    click.option(
        "--webhook",
        metavar="URL",
        help="Post alerts to this URL; one with a secret goes into $WTWIN_WATCH_WEBHOOK_URL.",
    ),
    click.option(
        "--slack-channel", metavar="ID", help="Post alerts to this channel, with $SLACK_BOT_TOKEN."
    ),
]
_DETECTOR = [
    click.option(
        "--detector",
        type=click.Choice(["trend", "classic"]),
        help="What judges the loss: its own trend, or the published W-Twin method. [default: trend]",
    ),
    click.option(
        "--far",
        metavar="POINTS|TEXT",
        help="trend: points between two false alarms, or '1% per run of 20000 points'. [default: 1e5]",
    ),
    click.option(
        "--min-effect",
        type=float,
        help="trend: share of the loss below which a rise is none. [default: 0.0005]",
    ),
    click.option("--alpha", type=float, help="classic: threshold of D, in sigma. [default: 2.0]"),
    click.option("--warmup", type=int, help="classic: steps before the fit. [default: 100]"),
    click.option("--n-consec", type=int, help="classic: points in a row to an alert. [default: 5]"),
    click.option("--mad-window", type=int, help="classic: points that sigma is of. [default: 50]"),
    click.option(
        "--tau", type=float, help="classic: scale of the fit's squared error. [default: 0.001]"
    ),
]


def place_options(command: Command) -> Command:
    """Add ``--config`` and ``--state``; the command is called with ``flags``."""
    return _with_flags(command, _PLACE)


def receiver_options(command: Command) -> Command:
    """Add the options that say whom to tell; the command is called with ``flags``."""
    return _with_flags(command, [*_RECEIVERS, *_PLACE])


def watching_options(command: Command) -> Command:
    """Add every option that is a setting; the command is called with ``flags``."""
    return _with_flags(command, [*_SOURCES, *_RECEIVERS, *_PLACE, *_DETECTOR])


def detector_options(command: Command) -> Command:
    """Add the options that choose the detector; the command is called with ``flags``."""
    return _with_flags(command, _DETECTOR)


def json_option(command: Command) -> Command:
    """Add ``--json``; the command is called with ``as_json``."""
    option: Option = click.option(
        "--json", "as_json", is_flag=True, help="Print JSON for a program."
    )
    decorated: Command = option(command)
    return decorated


def _with_flags(command: Command, options: Sequence[Option]) -> Command:
    @wraps(command)
    def collecting(**given: Any) -> Any:
        from wtwin_watch.settings import Flags

        own = {field.name for field in fields(Flags)} & given.keys()
        flags = Flags(**{name: given.pop(name) for name in own})
        return command(flags=flags, **given)

    decorated: Command = collecting
    for option in reversed(options):
        decorated = option(decorated)
    return decorated
