"""A receiver that notifications can't be brought to is reported to the others, as an alert about it.

It fires when a notification to the receiver is parked, and ends when the receiver takes one again. As the
others hear of it through the outbox, the report is as sure to arrive as any alert.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Sequence

import structlog

from wtwin_watch.alerting import lifecycle
from wtwin_watch.alerting.lifecycle import Policy, Reason, Transition
from wtwin_watch.errors import OwnershipLost, StoreError
from wtwin_watch.model import Alert, Detection, Family, Run, RunKey, Severity
from wtwin_watch.protocols import Clock
from wtwin_watch.store import Checkpoint, OutboxEntry, Store

log = structlog.get_logger("wtwin_watch.notify")

QUIET_S = 3600.0
"""A receiver that refuses now and then is reported once in this time."""
REMOVED = "The receiver is no longer configured."


class Refusals:
    """Knows which of ``receivers`` is in trouble, and says so to the others; ``told`` wakes them.

    `parked` and `taken` are called from the thread of the receiver they are about.
    """

    def __init__(
        self, store: Store, clock: Clock, receivers: Sequence[str], told: Callable[[], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._receivers = tuple(receivers)
        self._told = told
        self._open: dict[str, Alert] = {
            alert.run.source: alert for alert in store.open_alerts(Family.RECEIVER)
        }
        self._ended_at: dict[str, float] = {}

    def leave_others(self, known: Iterable[str]) -> None:
        """End what is open about receivers other than ``known``."""
        for about in self._open.keys() - {_about(receiver) for receiver in known}:
            alerts = {Family.RECEIVER: self._open.pop(about)}
            now = self._clock.time()
            _, ended = lifecycle.close(alerts, alerts, REMOVED, Reason.UNWATCHED, now)
            self._say(about, ended, self._receivers)

    def parked(self, receiver: str, error: str) -> None:
        """A notification to ``receiver`` waits for a person to change something; ``error`` says what."""
        about = _about(receiver)
        since = self._clock.monotonic() - self._ended_at.get(about, -math.inf)
        if about in self._open or since < QUIET_S:
            return
        summary = (
            f"Notifications don't reach the receiver {receiver}: {error}."
            " 'wtwin-watch outbox' lists them and tries them again."
        )
        self._step(receiver, _detection(summary, active=True))

    def taken(self, receiver: str) -> None:
        """``receiver`` took a notification."""
        about = _about(receiver)
        if about not in self._open:
            return
        self._step(
            receiver,
            _detection(f"The receiver {receiver} takes notifications again.", active=False),
        )
        self._ended_at[about] = self._clock.monotonic()

    def _step(self, receiver: str, detection: Detection) -> None:
        about = _about(receiver)
        known = self._open.get(about)
        alerts, transitions = lifecycle.step(
            RunKey(about, ""),
            {Family.RECEIVER: known} if known else {},
            [detection],
            self._clock.time(),
            Policy(for_s=0.0, cooldown_s=0.0),
            _new_id,
        )
        others = [name for name in self._receivers if name != receiver]
        if not self._say(about, transitions, others):
            return
        alert = alerts[Family.RECEIVER]
        if alert.open:
            self._open[about] = alert
        else:
            del self._open[about]

    def _say(self, about: str, transitions: Sequence[Transition], others: Sequence[str]) -> bool:
        """Write down what changed, and what the others are owed for it; whether that could be done."""
        run, now = Run(RunKey(about, ""), about), self._clock.time()
        owed = tuple(
            OutboxEntry(_new_id(), name, transition.event, transition.alert, run, now, next_at=now)
            for transition in transitions
            if transition.event is not None
            for name in others
        )
        try:
            self._store.save([Checkpoint(None, tuple(transitions), owed)], now)
        except OwnershipLost:
            raise
        except StoreError as error:
            log.error("trouble of a receiver not saved", about=about, error=str(error))
            return False
        self._told()
        return True


def _about(receiver: str) -> str:
    """What stands in the place of a source in an alert about a receiver."""
    return f"receiver {receiver}"


def _detection(summary: str, *, active: bool) -> Detection:
    return Detection(
        family=Family.RECEIVER,
        kind="undelivered",
        active=active,
        severity=Severity.WARNING,
        summary=summary,
        detector="outbox",
    )


def _new_id() -> str:
    return uuid.uuid4().hex
