"""``wtwin-watch demo``: see it catch a failing training."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from wtwin_watch.cli.options import json_option
from wtwin_watch.cli.output import print_json

if TYPE_CHECKING:
    from wtwin_watch.demo.show import Result

LARGEST_SEED = 2**32 - 1


@click.command("demo")
@click.option(
    "--seed",
    type=click.IntRange(0, LARGEST_SEED),
    metavar="NUMBER",
    help="What the training's randomness comes from. [default: another one each time]",
)
@click.option("--healthy", is_flag=True, help="Leave the labels clean: nothing must be told.")
@click.option("--keep", is_flag=True, help="Keep the logs, settings and state, and say where.")
@json_option
def command(seed: int | None, healthy: bool, keep: bool, as_json: bool) -> int:
    """Train a small model whose labels rot, watch it, and receive the alert, in four processes.

    Takes about half a minute, needs no account and no key, and talks to this machine alone.

    \b
    Example:
      wtwin-watch demo --seed 7

    Exit code 0 what should be told was told, and only that; 1 something was missing or too much.
    """
    import secrets

    from wtwin_watch.demo.screen import Screen
    from wtwin_watch.demo.show import play

    screen = Screen(sys.stderr if as_json else sys.stdout)
    seed = secrets.randbelow(10_000) if seed is None else seed
    result = play(seed, healthy, keep, screen)
    for complaint in result.complaints:
        screen.say("demo", complaint, good=False)
    if result.good:
        screen.say("demo", _praise(result), good=True)
    if result.folder is not None:
        screen.say("demo", f"its files are in {result.folder}")
    if as_json:
        print_json(_plain(result))
    return 0 if result.good else 1


def _praise(result: Result) -> str:
    if result.healthy:
        return "nothing was told about a healthy run, as it should be"
    return "the rotting run was told once for each of its two logs and again as it got worse, as it should be"


def _plain(result: Result) -> dict[str, Any]:
    return {
        "ok": result.good,
        "seed": result.seed,
        "healthy": result.healthy,
        "complaints": list(result.complaints),
        "followed_to": dict(result.followed_to),
        "rot_began_at": result.rot_began_at,
        "deliveries": [
            {"id": d.id, "at": d.at, "type": d.type, "family": d.family, "source": d.source}
            for d in result.deliveries
        ],
        "seconds": round(result.seconds, 1),
        "folder": None if result.folder is None else str(result.folder),
    }
