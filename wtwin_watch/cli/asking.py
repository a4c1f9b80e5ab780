"""Asking the daemon about alerts, waiting for its answer, and saying what it was."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from wtwin_watch.cli.output import print_json, table

if TYPE_CHECKING:
    from wtwin_watch.store.records import Answer, Verb
    from wtwin_watch.store.requests import Asked

PATIENCE_S = 10.0
SAY_AFTER_S = 2.0
LOOK_EVERY_S = 0.1
DONE, REFUSED, UNANSWERED = 0, 2, 69


def ask(
    state: str,
    verb: Verb,
    ids: Sequence[str],
    *,
    by: str,
    until: float | None,
    comment: str,
    as_json: bool,
) -> int:
    """Ask for ``verb`` on alerts, print the answers, and return the exit code."""
    from wtwin_watch.store import requests

    asked = requests.ask(state, verb, ids, by=by, now=time.time(), until=until, comment=comment)
    answers = _awaited(state, asked) if asked.watched else {}
    if as_json:
        print_json(_plain(asked, answers))
    else:
        click.echo("\n".join(_shown(asked, answers)))
    if any(answer.refused for answer in answers.values()):
        return REFUSED
    return UNANSWERED if asked.watched and len(answers) < len(asked.requests) else DONE


def _awaited(state: str, asked: Asked) -> dict[int, Answer]:
    """The answers that come within `PATIENCE_S`."""
    from wtwin_watch.store import requests

    began, said = time.monotonic(), False
    while True:
        answers = requests.answers(state, asked.requests)
        waited = time.monotonic() - began
        if len(answers) == len(asked.requests) or waited >= PATIENCE_S:
            return answers
        if waited >= SAY_AFTER_S and not said:
            said = True
            click.echo("waiting for the daemon to answer …", err=True)
        time.sleep(LOOK_EVERY_S)


def _shown(asked: Asked, answers: dict[int, Answer]) -> list[str]:
    rows = []
    for request in asked.requests:
        answer = answers.get(request.seq)
        if answer is not None:
            how = f"not done: {answer.outcome}" if answer.refused else answer.outcome
        elif asked.watched:
            how = "not answered yet; the daemon does it when it can"
        else:
            how = "no daemon is running; it is done when one starts"
        rows.append((request.alert_id[:8], how))
    return table(rows, indent="")


def _plain(asked: Asked, answers: dict[int, Answer]) -> list[dict[str, Any]]:
    plain = []
    for request in asked.requests:
        answer = answers.get(request.seq)
        state = "waiting" if answer is None else "refused" if answer.refused else "done"
        plain.append(
            {
                "alert": request.alert_id,
                "verb": request.verb.value,
                "by": request.by,
                "until": request.until,
                "comment": request.comment,
                "state": state,
                "outcome": None if answer is None else answer.outcome,
                "daemon": asked.watched,
            }
        )
    return plain
