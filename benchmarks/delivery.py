"""How soon an alert is in Slack once it is committed, while receivers that are slow or down are owed much.

The real outbox on a real SQLite store, with the real notifiers; the receivers are stand-ins in this process.
"""

from __future__ import annotations

import logging
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import structlog

from benchmarks.progress import Progress
from benchmarks.report import Measure, main
from tests.support.faulty_http import Fault
from tests.support.slack_standin import CHANNEL, TOKEN, SlackStandIn
from tests.support.webhook_standin import WebhookStandIn
from wtwin_watch.clock import SystemClock
from wtwin_watch.model import (
    Alert,
    AlertState,
    Detection,
    Event,
    Family,
    Run,
    RunKey,
    Severity,
)
from wtwin_watch.notify.outbox import Deliverer
from wtwin_watch.plugins import load_notifier
from wtwin_watch.store import Checkpoint, OutboxEntry, Store, database

QUEUED = 1_000
CHANNELS = 10
"""They take turns, so that each is idle when its turn comes."""
IDLE_S = 1.2
"""Slack is left alone for a second after each message."""
PATIENCE_S = 120.0

TROUBLES = {
    "down": None,
    "hanging": Fault(hang=True, times=10**6),
    "broken": Fault(status=500, times=10**6),
    "busy": Fault(status=429, headers={"Retry-After": "1"}, times=10**6),
    "slow": Fault(delay_s=0.5, times=10**6),
}
"""The receivers that are owed `QUEUED` alerts each; None refuses connections."""


def measure(quick: bool) -> Iterator[Measure]:
    """Yield the measure; ``quick``: fewer messages."""
    # What the deliverers say of the trouble they are in isn't what this is about.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        waits = sorted(_waits(Path(folder), 100 if quick else 1_000, stack))
    yield Measure(
        "commit to Slack, its channel idle, p99",
        waits[math.ceil(0.99 * len(waits)) - 1],
        at_most=1.0,
        unit="s",
        note=f"median {statistics.median(waits):.3f} s, longest {waits[-1]:.3f} s, {len(waits)} messages;"
        f" {QUEUED:,} alerts wait for each of {len(TROUBLES)} other receivers",
    )


def _waits(folder: Path, count: int, stack: ExitStack) -> Iterator[float]:
    """Seconds from the commit of each of ``count`` alerts to its message."""
    store = Store(database.database_url(str(folder / "state.db")))
    stack.callback(store.close)
    store.claim(time.time())
    slacks = {f"slack {i}": stack.enter_context(SlackStandIn()) for i in range(CHANNELS)}
    hooks = {name: stack.enter_context(WebhookStandIn()) for name in TROUBLES}
    for name, fault in TROUBLES.items():
        if fault is None:
            hooks[name].down()
        else:
            hooks[name].faults.append(fault)
    options = {
        **{
            name: (
                "slack",
                {"token": {"file": _token(folder)}, "channel": CHANNEL, "api_url": s.api_url},
            )
            for name, s in slacks.items()
        },
        **{name: ("webhook", {"url": hook.hook_url}) for name, hook in hooks.items()},
    }
    store.save([_firing(f"queued{i}", *hooks) for i in range(QUEUED)], time.time())
    deliverers = []
    for name, (kind, given) in options.items():
        plugin = load_notifier(kind)
        notifier = plugin(name, plugin.Options.model_validate(given))
        deliverers.append(Deliverer(name, notifier, store, SystemClock(), _fail))
        deliverers[-1].start()
        stack.callback(deliverers[-1].stop, 0.1)
    chance = random.Random(1)
    progress = Progress("messages", count)
    for i in range(count):
        time.sleep(IDLE_S / CHANNELS + chance.uniform(0.0, 0.02))
        name = f"slack {i % CHANNELS}"
        slack, known = slacks[name], i // CHANNELS
        store.save([_firing(f"run{i}", name)], time.time())
        committed = time.time()
        for deliverer in deliverers:
            deliverer.wake()
        if not slack.wait_for(lambda s=slack, n=known: len(s.messages) > n, PATIENCE_S):
            raise TimeoutError(f"no message within {PATIENCE_S:.0f} s")
        yield slack.calls("chat.postMessage")[-1]["time"] - committed
        progress.step()


def _token(folder: Path) -> str:
    path = folder / "token"
    path.write_text(TOKEN)
    return str(path)


def _firing(name: str, *receivers: str) -> Checkpoint:
    """A critical alert about a run, owed to some receivers."""
    now = time.time()
    run = Run(RunKey("logs", name), name)
    detection = Detection(
        Family.NONFINITE, "nonfinite", True, Severity.CRITICAL, "Loss is NaN at step 40.", "rules"
    )
    alert = Alert(
        id=name,
        run=run.key,
        family=Family.NONFINITE,
        kind="nonfinite",
        severity=Severity.CRITICAL,
        state=AlertState.FIRING,
        detection=detection,
        started_at=now,
        fired_at=now,
    )
    owed = [
        OutboxEntry(f"{name} to {receiver}", receiver, Event.FIRING, alert, run, now, next_at=now)
        for receiver in receivers
    ]
    return Checkpoint(notifications=owed)


def _fail(error: Exception) -> None:
    raise error


if __name__ == "__main__":
    sys.exit(main("delivery", measure))
