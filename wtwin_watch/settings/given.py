"""Sources and receivers that are given by flags and environment variables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from wtwin_watch.settings.arguments import secret_in
from wtwin_watch.settings.lines import KeyPath
from wtwin_watch.settings.mistakes import Mistakes, Place, Where
from wtwin_watch.settings.model import Flags

_EVERYTHING = {"severity": "info"}
"""Who is named by a flag or a variable alone is told of everything: there is nothing to say less by."""

# What is no URI, or one of a file, is the folder of a file store.
_SERVER = re.compile(r"databricks$|(?!file:)[a-z][a-z0-9+.-]*:", re.I)


@dataclass(frozen=True, slots=True)
class Entry:
    """A source or receiver before it is checked."""

    values: Mapping[str, Any]
    where: Where

    @property
    def place(self) -> Place:
        """Where the whole of it stands."""
        return self.where(())


def given_sources(flags: Flags, mistakes: Mistakes) -> Iterator[Entry]:
    """List the sources that flags ask for."""
    for pattern in flags.csv:
        yield _entry("--csv", {"adapter": "csv", "path": pattern})
    for pattern in flags.logs:
        yield _entry("--log", {"adapter": "log", "path": pattern})
    for folder in flags.tensorboard:
        yield _entry("--tensorboard", {"adapter": "tensorboard", "path": folder})
    for folder in flags.wandb_dir:
        yield _entry("--wandb-dir", {"adapter": "wandb-files", "path": folder})
    for project in flags.project:
        yield _entry("--project", {"adapter": "wandb", "project": project})
    if flags.mlflow is not None and not _refused("--mlflow", flags.mlflow, mistakes):
        values: dict[str, Any] = (
            {"adapter": "mlflow", "uri": flags.mlflow}
            if _SERVER.match(flags.mlflow)
            else {"adapter": "mlflow-files", "path": flags.mlflow}
        )
        if flags.experiment:
            values["experiments"] = flags.experiment
        yield _entry("--mlflow", values)
    if flags.experiment and flags.mlflow is None:
        mistakes.add(
            Place("--experiment", asked=True), "names an experiment of MLflow; add --mlflow URI"
        )


def given_receivers(
    flags: Flags,
    environ: Mapping[str, str],
    in_file: Collection[str],
    mistakes: Mistakes,
    notes: list[str],
) -> Iterator[Entry]:
    """List the receivers that flags ask for, and those that the environment has credentials for.

    The environment makes a receiver only where the file has none of that kind (``in_file``): there the
    same variable is usually what the file's receiver refers to.
    """
    yield from _webhook(flags, environ, in_file, mistakes)
    yield from _slack(flags, environ, in_file, mistakes, notes)


def terminal() -> Entry:
    """The receiver where none is given: this terminal."""
    return _entry("no receiver is given", {"notifier": "terminal", **_EVERYTHING})


def _webhook(
    flags: Flags, environ: Mapping[str, str], in_file: Collection[str], mistakes: Mistakes
) -> Iterator[Entry]:
    secret = environ.get("WTWIN_WATCH_WEBHOOK_SECRET")
    signed = {"secret": SecretStr(secret)} if secret else {}
    places = {"secret": Place("$WTWIN_WATCH_WEBHOOK_SECRET")}
    if flags.webhook is not None:
        cure = "put it into the environment variable WTWIN_WATCH_WEBHOOK_URL"
        if not _refused("--webhook", flags.webhook, mistakes, cure):
            values = {
                "notifier": "webhook",
                "url": SecretStr(flags.webhook),
                **signed,
                **_EVERYTHING,
            }
            yield _entry("--webhook", values, places)
    elif (url := environ.get("WTWIN_WATCH_WEBHOOK_URL")) and "webhook" not in in_file:
        values = {"notifier": "webhook", "url": SecretStr(url), **signed, **_EVERYTHING}
        yield _entry("$WTWIN_WATCH_WEBHOOK_URL", values, places)


def _slack(
    flags: Flags,
    environ: Mapping[str, str],
    in_file: Collection[str],
    mistakes: Mistakes,
    notes: list[str],
) -> Iterator[Entry]:
    token, hook = environ.get("SLACK_BOT_TOKEN"), environ.get("SLACK_WEBHOOK_URL")
    channel = flags.slack_channel
    api = {"api_url": url} if (url := environ.get("SLACK_API_URL")) else {}
    if channel is not None:
        cure = "put a bot token into the environment variable SLACK_BOT_TOKEN"
        if _refused("--slack-channel", channel, mistakes, cure):
            return
        if not token:
            mistakes.add(
                Place("--slack-channel", asked=True),
                "posting to a channel takes a bot token; set the environment variable SLACK_BOT_TOKEN",
            )
            return
        if hook:
            notes.append("SLACK_WEBHOOK_URL is not used, since --slack-channel says where to post")
        values = {
            "notifier": "slack",
            "token": SecretStr(token),
            "channel": channel,
            **api,
            **_EVERYTHING,
        }
        places = {"token": Place("$SLACK_BOT_TOKEN"), "api_url": Place("$SLACK_API_URL")}
        yield _entry("--slack-channel", values, places)
    elif "slack" in in_file:
        return
    elif hook:
        values = {"notifier": "slack", "webhook": SecretStr(hook), **_EVERYTHING}
        yield _entry("$SLACK_WEBHOOK_URL", values)
    elif token:
        notes.append(
            "SLACK_BOT_TOKEN is set but no channel is named, so Slack is not told;"
            " add --slack-channel ID"
        )


def _entry(
    flag: str, values: Mapping[str, Any], places: Mapping[str, Place] | None = None
) -> Entry:
    whole = Place(flag, asked=flag.startswith("--"))

    def where(path: KeyPath) -> Place:
        return (places or {}).get(str(path[0]), whole) if path else whole

    return Entry(values, where)


def _refused(
    flag: str,
    argument: str,
    mistakes: Mistakes,
    cure: str = "give it by environment variable or in the settings file",
) -> bool:
    """Refuse a secret on the command line, without repeating it."""
    secret = secret_in(argument)
    if secret:
        mistakes.add(
            Place(flag, asked=True),
            f"holds {secret}; every user of this machine can read a command line: {cure}",
        )
    return secret is not None
