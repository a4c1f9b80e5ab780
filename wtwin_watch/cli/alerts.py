"""``wtwin-watch alerts``: the alerts there were, and the story of one."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from wtwin_watch.cli.marks import maintenance_now, marks, silence_as_json
from wtwin_watch.cli.options import json_option, place_options
from wtwin_watch.cli.output import moment, number, print_json, table
from wtwin_watch.errors import UsageError

if TYPE_CHECKING:
    from wtwin_watch.settings import Flags
    from wtwin_watch.store.history import Story

MOST = 50


@click.command("alerts")
@click.argument("action", type=click.Choice(["list", "show"]), default="list")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--open", "open_only", is_flag=True, help="Only those that are not resolved.")
@click.option(
    "--most",
    type=click.IntRange(1),
    default=MOST,
    show_default=True,
    metavar="N",
    help="So many at most, the latest first.",
)
@place_options
@json_option
def command(
    flags: Flags, action: str, ids: tuple[str, ...], open_only: bool, most: int, as_json: bool
) -> int:
    """List the latest alerts, or show why one fired, when, and who was told.

    An ID may be cut to its first characters.

    \b
    Examples:
      wtwin-watch alerts --open
      wtwin-watch alerts show 3f2a

    Exit code 0, also where there is none; 2 if there is no such alert; 69 without a state.
    """
    from wtwin_watch.settings import load_state
    from wtwin_watch.store import history

    state, now = load_state(flags, os.environ), time.time()
    quiet = maintenance_now(flags, now)
    if action == "list":
        if ids:
            raise UsageError("list takes no ID; 'wtwin-watch alerts show ID' tells about one")
        stories = history.read_alerts(state, now, open_only=open_only, most=most, also=quiet)
    elif ids:
        stories = [history.read_story(state, now, id_, quiet) for id_ in ids]
    else:
        raise UsageError("show wants the ID of an alert; 'wtwin-watch alerts' lists them")
    if as_json:
        print_json([_plain(story, whole=action == "show") for story in stories])
    elif action == "list":
        click.echo("\n".join(_listed(stories, now)))
    else:
        click.echo("\n\n".join("\n".join(_shown(story, now)) for story in stories))
    return 0


def _name(story: Story) -> str:
    return story.run.name if story.run is not None else str(story.alert.run)


def _listed(stories: list[Story], now: float) -> list[str]:
    if not stories:
        return ["no alerts"]
    return table(
        [
            (
                story.alert.id[:8],
                _state(story, now),
                story.alert.severity.value,
                story.alert.kind,
                _name(story),
                moment(story.alert.started_at),
                story.alert.outcome or story.alert.detection.summary,
            )
            for story in stories
        ],
        indent="",
    )


def _state(story: Story, now: float) -> str:
    alert = story.alert
    if alert.quiet:
        return f"{alert.state.value} (history)"
    return ", ".join([alert.state.value, *marks(alert, story.silence, now)])


def _shown(story: Story, now: float) -> list[str]:
    alert, detection = story.alert, story.alert.detection
    facts = [
        ("alert", alert.id),
        ("run", _name(story)),
        ("source", alert.run.source),
        ("kind", f"{alert.kind} ({alert.severity.value})"),
        ("state", _state(story, now)),
        ("what", detection.summary),
        ("since step", number(detection.onset_step)),
        ("seen at step", number(detection.step)),
        ("last healthy step", number(detection.last_healthy_step)),
        ("observed", number(detection.observed)),
        ("expected", number(detection.expected)),
        ("evidence", "; ".join(detection.evidence) or "-"),
    ]
    if alert.acknowledged is not None and alert.acknowledged.comment:
        facts.append(("said of it", f"{alert.acknowledged.by}: {alert.acknowledged.comment}"))
    if story.silence is not None:
        why = f"{story.silence.author}: {story.silence.comment} ({story.silence.id[:8]})"
        facts.append(("silenced by", why))
    if alert.outcome:
        facts.append(("ended", alert.outcome))
    lines = [*table(facts, indent=""), "", "how it went"]
    lines += table(
        (
            moment(c.at),
            c.state,
            c.reason,
            f"told: {c.event}" if c.event else "nobody told",
            c.summary,
        )
        for c in story.changes
    )
    lines += ["", "what was decided about telling people"]
    decided = table(
        (moment(d.at), d.receiver or "everybody", d.decision, d.text) for d in story.decisions
    )
    lines += decided or ["  nothing"]
    lines += ["", "what was sent"]
    told = table(
        (
            moment(n.created_at),
            n.receiver,
            n.event,
            n.state,
            f"{n.attempts} attempts",
            n.error or "",
        )
        for n in story.told
    )
    return lines + (told or ["  nobody"])


def _plain(story: Story, *, whole: bool) -> dict[str, Any]:
    alert = {
        **asdict(story.alert),
        "fingerprint": story.alert.fingerprint,
        "name": _name(story),
        "silenced": silence_as_json(story.silence),
    }
    if not whole:
        return alert
    changes = [asdict(change) for change in story.changes]
    told, decisions = map(asdict, story.told), map(asdict, story.decisions)
    return {**alert, "changes": changes, "decisions": [*decisions], "told": [*told]}
