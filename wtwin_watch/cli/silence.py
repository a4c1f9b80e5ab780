"""``wtwin-watch silence``: for a time, tell nobody about the alerts that are meant."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import click

from wtwin_watch.cli.options import json_option, place_options
from wtwin_watch.cli.output import moment, print_json, table
from wtwin_watch.cli.people import (
    moment_option,
    saying_options,
    until_options,
    until_when,
    who,
    why,
)
from wtwin_watch.errors import UsageError

if TYPE_CHECKING:
    from wtwin_watch.alerting.matching import Matcher
    from wtwin_watch.alerting.silences import Silence
    from wtwin_watch.settings import Flags
    from wtwin_watch.store.silences import Covering

ACTIONS = ("add", "list", "end")


@click.command("silence")
@click.argument("words", nargs=-1, metavar="[add|list|end] [MATCHER|ID]...")
@until_options
@moment_option("--start", "Begin at a time with its zone, instead of at once.")
@saying_options(comment="Why, for those who miss the alerts.")
@click.option("--everything", is_flag=True, help="Silence all alerts: no matcher is needed then.")
@click.option("--all", "ended", is_flag=True, help="List those that have ended as well.")
@place_options
@json_option
def command(
    flags: Flags,
    words: tuple[str, ...],
    lasting: float | None,
    until: float | None,
    start: float | None,
    by: str | None,
    comment: str | None,
    everything: bool,
    ended: bool,
    as_json: bool,
) -> int:
    """Tell nobody about some alerts for a time; list the silences there are; end one.

    A silence takes its alerts by matchers such as project=myteam/llm, run=~"sweep-.*", severity!=critical
    or tag=debug; all of them must hold. Watching goes on, and what still fires at its end is told then. The
    word add may be left out. An ID may be cut to its first characters. The maintenance windows of the
    settings are listed too, each with the time that holds or comes next.

    \b
    Examples:
      wtwin-watch silence 'run=~"sweep-.*"' --for 2h --comment 'moving the cluster'
      wtwin-watch silence list
      wtwin-watch silence end 3f2a

    Exit code 0, also where there is none; 2 asked wrongly; 69 without a state.
    """
    from wtwin_watch.settings import load_state
    from wtwin_watch.store import silences

    action, rest = _action(words)
    said = (lasting, until, start, by, comment, everything or None)
    if action != "add" and any(one is not None for one in said):
        raise UsageError(f"{action} takes no option of a new silence")
    if action != "list" and ended:
        raise UsageError(f"--all belongs to list, not to {action}")
    state, now = load_state(flags, os.environ), time.time()
    if action == "add":
        begins = now if start is None else start
        found = [
            silences.add(
                state,
                _matchers(rest, everything=everything),
                starts_at=begins,
                ends_at=_end(lasting, until, begins, now),
                author=who(by),
                comment=why(comment),
                now=now,
            )
        ]
    elif action == "end":
        if not rest:
            raise UsageError("end wants the ID of a silence; 'wtwin-watch silence' lists them")
        _check_ends_no_window(rest, _windows(flags, now))
        found = silences.end(state, rest, now)
    else:
        if rest:
            raise UsageError(f"list takes no {rest[0]!r}; it shows all of them")
        found = silences.read_silences(state, now, ended=ended, also=_windows(flags, now))
    if as_json:
        print_json([_plain(one, now) for one in found])
    else:
        click.echo("\n".join(_shown(found, now)))
    return 0


def _action(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """What is to be done, and with what. A matcher can't be taken for an action: it has an =."""
    if not words:
        return "list", ()
    if words[0] in ACTIONS:
        return words[0], words[1:]
    if "=" in words[0]:
        return "add", words
    raise UsageError(f"{words[0]!r} is neither a matcher nor one of {', '.join(ACTIONS)}")


def _windows(flags: Flags, now: float) -> list[Silence]:
    """The silence that each maintenance window of the settings is now or will be next."""
    from wtwin_watch.alerting.maintenance import next_silence
    from wtwin_watch.settings import load_maintenance

    found = (next_silence(window, now) for window in load_maintenance(flags, os.environ))
    return [silence for silence in found if silence is not None]


def _check_ends_no_window(ids: tuple[str, ...], windows: list[Silence]) -> None:
    for id_ in ids:
        if id_ and any(silence.id.startswith(id_) for silence in windows):
            raise UsageError(f"{id_}: is a [[maintenance]] window of the settings; change it there")


def _matchers(words: tuple[str, ...], *, everything: bool) -> tuple[Matcher, ...]:
    from wtwin_watch.alerting.matching import parse

    try:
        matchers = tuple(matcher for word in words for matcher in parse(word))
        parse(" ".join(map(str, matchers)))  # as they are kept, they may be too long together
    except ValueError as error:
        raise UsageError(f"the matchers: {error}") from None
    if everything and matchers:
        raise UsageError("--everything takes no matchers; leave one of them out")
    if not matchers and not everything:
        raise UsageError(
            "without a matcher all alerts would be silenced; name some, such as"
            " project=myteam/llm, or say --everything"
        )
    return matchers


def _end(lasting: float | None, until: float | None, begins: float, now: float) -> float:
    from wtwin_watch.settings.durations import LONGEST_S

    ends = until_when(lasting, until, begins)
    if ends is None:
        raise UsageError("a silence has an end: say --for DURATION or --until WHEN")
    if ends <= max(now, begins):
        raise UsageError("the silence would have ended before it begins")
    if ends - now > LONGEST_S:
        raise UsageError("a silence ends within 366 days")
    return ends


def _state(one: Covering, now: float) -> str:
    if one.silence.active(now):
        return "active"
    return "ended" if one.silence.ends_at <= now else "pending"


def _shown(found: list[Covering], now: float) -> list[str]:
    if not found:
        return ["nothing is silenced"]
    return table(
        [
            (
                one.silence.id[:8],
                _state(one, now),
                one.silence.what or "everything",
                _when(one, now),
                f"{len(one.alerts)} open alert{'s' * (len(one.alerts) != 1)}",
                f"{one.silence.author}: {one.silence.comment}",
            )
            for one in found
        ],
        indent="",
    )


def _when(one: Covering, now: float) -> str:
    from wtwin_watch.settings.durations import shown_duration

    silence = one.silence
    if _state(one, now) == "pending":
        return f"from {moment(silence.starts_at)} until {moment(silence.ends_at)}"
    if _state(one, now) == "ended":
        return f"until {moment(silence.ends_at)}"
    left = shown_duration(max(1.0, round(silence.ends_at - now)))
    return f"until {moment(silence.ends_at)} ({left})"


def _plain(one: Covering, now: float) -> dict[str, Any]:
    silence = one.silence
    return {
        "id": silence.id,
        "state": _state(one, now),
        "matchers": silence.what,
        "starts_at": silence.starts_at,
        "ends_at": silence.ends_at,
        "author": silence.author,
        "comment": silence.comment,
        "created_at": silence.created_at,
        "alerts": [alert.id for alert in one.alerts],
    }
