"""``python -m benchmarks.crash``: the real daemon is killed again and again, and nothing is lost.

Logs grow on disk while it lives and while it doesn't; half of the kills happen at chosen points on a point's
way, half at random moments. The receivers drop connections, answer late or not at all, or refuse for a while.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from benchmarks.crash.plan import lives
from benchmarks.crash.stage import SLACK, Stage
from benchmarks.crash.verdict import judge
from benchmarks.progress import Progress
from benchmarks.report import Measure, main

SEED = 500


def measure(quick: bool) -> Iterator[Measure]:
    """Kill, and count; ``quick``: 24 kills over 6 runs with two episodes each."""
    kills, runs, episodes = (24, 6, 2) if quick else (500, 50, 4)
    chance = random.Random(SEED)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        stage = Stage(Path(name), runs, chance, stack)
        stage.see()
        progress = Progress("kills", kills)
        for life in lives(kills, runs, episodes, chance):
            stage.live(life)
            progress.step()
        stage.finish()
        yield from _measures(stage, kills, time.monotonic() - began)


def _measures(stage: Stage, kills: int, took_s: float) -> Iterator[Measure]:
    receivers = list(stage.receivers.all)
    told = judge(
        stage.logs.episodes,
        receivers,
        stage.notices(),
        stage.receivers.deliveries(),
        stage.noted_in,
    )
    yield Measure(
        "kills",
        stage.at_points + stage.at_random,
        at_least=kills,
        note=f"{stage.at_points} at fault points, {stage.at_random} at random moments, in {took_s:.0f} s",
    )
    yield Measure("daemons that ended by themselves", stage.ended_alone, at_most=0)
    yield Measure(
        "notifications that never arrived",
        told.missing,
        at_most=0,
        note=f"of {told.notifications:,}: {len(stage.logs.episodes)} episodes, their beginning and"
        f" their end, {len(receivers)} receivers",
    )
    yield Measure("deliveries out of order", told.disorderly, at_most=0)
    yield Measure("deliveries of what didn't happen", told.unknown, at_most=0)
    yield Measure("deliveries", told.deliveries, note=f"{stage.receivers.failed:,} more refused")
    yield Measure(
        "second deliveries, killed before the answer was noted",
        sum(told.after_kill.values()),
        note=_each(told.after_kill),
    )
    yield Measure(
        "second deliveries, answer lost by the receiver",
        sum(told.after_lost_answer.values()),
        note=_each(told.after_lost_answer),
    )
    yield Measure("second deliveries without a lost answer", told.unexplained, at_most=0)
    yield Measure("second deliveries with another key", told.new_keys, at_most=0)
    yield Measure("episodes known otherwise than logged", stage.wrongly_known(), at_most=0)
    yield Measure("runs whose rows didn't count once each", stage.miscounted(), at_most=0)
    mistakes = stage.receivers.slack.mistakes
    yield Measure(
        "messages that Slack refuses for their form",
        len(mistakes),
        at_most=0,
        note="; ".join(mistakes[:3]),
    )
    messages = len(stage.receivers.slack.parents)
    yield Measure(
        "messages in the Slack channel", messages, note="an answer lost makes another one"
    )


def _each(counts: Mapping[str, int]) -> str:
    webhooks = sum(count for name, count in counts.items() if name != SLACK)
    return f"webhooks {webhooks}, Slack {counts.get(SLACK, 0)}; the key is the same each time"


if __name__ == "__main__":
    sys.exit(main("crash", measure))
