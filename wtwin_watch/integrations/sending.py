"""Sends from a training loop: one thread in the background, a bounded queue in memory for each receiver.

What waits in memory is lost if the process is killed; the daemon's outbox, which is on disk, is what
survives that.
"""

from __future__ import annotations

import math
import random
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from wtwin_watch.alerting.matching import labels_of
from wtwin_watch.alerting.routing import receivers_for
from wtwin_watch.backoff import delay_s
from wtwin_watch.errors import DeliveryError
from wtwin_watch.integrations.telling import log
from wtwin_watch.logs import masked
from wtwin_watch.model import WEIGHT, Alert, Event, Notification, Receipt, Run
from wtwin_watch.notify import render
from wtwin_watch.plugins import load_notifier
from wtwin_watch.protocols import Renewing
from wtwin_watch.settings import ReceiverSettings, Settings

MOST_WAITING = 256
"""So many notifications wait for a receiver at most; one more takes the place of the oldest."""
BACKOFF_S, BACKOFF_CAP_S = 1.0, 60.0
EXIT_S = 10.0
"""So long the end of the program waits for what is to be delivered."""


class Sender:
    """Delivers to the receivers of ``settings``, to each in the order in which things happened.

    Who is told that an alert fires is decided by the routes and each receiver's least severity, as in the
    daemon; who was told that is told what becomes of it. A receiver that can't be reached is tried again,
    and what it is owed waits. One that hangs delays the others by the half minute that a delivery takes
    at most, and the training not at all. Raises `SettingsError` for a receiver whose notifier can't be had.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._receivers = [_Receiver(receiver) for receiver in settings.receivers]
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._busy = False

    def __reduce__(self) -> tuple[type[Sender], tuple[Settings]]:
        return Sender, (self._settings,)

    def tell(self, event: Event, alert: Alert, run: Run) -> None:
        """Queue ``event`` for those who are to be told, whatever they do: this waits for none of them."""
        now = time.time()
        named = receivers_for(self._settings.routing, labels_of(alert, run))
        with self._news:
            for receiver in self._receivers:
                told = receiver.event_for(event, alert, named)
                if told is not None:
                    words = render.message(told, alert, run)
                    receiver.owe(
                        Notification(uuid.uuid4().hex, receiver.name, told, alert, run, words, now)
                    )
            if self._thread is None and self._owes:
                self._start()
            self._news.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Wait until nothing is left to send, at most ``timeout_s`` seconds; whether that was so."""
        with self._news:
            return self._news.wait_for(lambda: not self._busy and not self._owes, timeout_s)

    def close(self, timeout_s: float) -> None:
        """`flush`, say how much is left, and stop. A delivery that hangs is left to the program's end."""
        done = self.flush(timeout_s)
        with self._news:
            for receiver in self._receivers:
                receiver.give_up()
            thread, self._thread = self._thread, None
            self._stop.set()
            self._news.notify_all()
        if thread is not None and done:
            thread.join()
            for receiver in self._receivers:
                receiver.close()

    def state(self) -> dict[str, dict[str, Any]]:
        """Which receiver was told of which open alert, and what it answered: JSON-able."""
        with self._news:
            return {receiver.name: receiver.state() for receiver in self._receivers}

    def recall(self, state: Mapping[str, Mapping[str, Any]]) -> None:
        """Go on from a `state`, so that what was sent before is edited or ended, not sent anew."""
        with self._news:
            for receiver in self._receivers:
                receiver.recall(state.get(receiver.name, {}))

    def _start(self) -> None:
        stop = threading.Event()
        thread = threading.Thread(
            target=self._run, args=(stop,), name="wtwin-watch sender", daemon=True
        )
        thread.start()
        self._thread, self._stop = thread, stop
        _close_at_exit(self)

    def _run(self, stop: threading.Event) -> None:
        while True:
            with self._news:
                while not stop.is_set() and self._next.due_at > time.monotonic():
                    self._news.wait(self._until_next())
                if stop.is_set():
                    return
                receiver = self._next
                taken = receiver.take()
                self._busy = True
            put_back = receiver.attempt(taken)
            with self._news:
                if put_back is not None:
                    receiver.owe_still(put_back)
                self._busy = False
                self._news.notify_all()

    @property
    def _owes(self) -> bool:
        return any(receiver.waiting for receiver in self._receivers)

    @property
    def _next(self) -> _Receiver:
        """Whose turn it is: of those that are due the one that was served longest ago."""
        return min(self._receivers, key=lambda receiver: receiver.due_at)

    def _until_next(self) -> float | None:
        due_at = self._next.due_at
        return None if due_at == math.inf else max(0.0, due_at - time.monotonic())


class _Receiver:
    """What one receiver is owed, and was told. `attempt` is called by one thread, without the lock."""

    def __init__(self, settings: ReceiverSettings) -> None:
        self.name = settings.name
        self.waiting: deque[Notification] = deque(maxlen=MOST_WAITING)
        self._settings = settings
        self._open()
        self._renews_at = math.inf
        self._not_before = 0.0
        self._failures = 0
        self._lost = 0
        self._least = WEIGHT[settings.recipient.least]
        self._told: set[str] = set()
        """The ids of open alerts that it was told of, or will be."""
        self._receipts: dict[str, dict[str, Any]] = {}
        """What it answered last of an alert, by the alert's id."""
        self._firing: dict[str, Notification] = {}
        """What it was last told of alerts that fire, where it forgets them."""

    @property
    def due_at(self) -> float:
        """When there is something to do, by the clock that never goes back; infinity: nothing."""
        sends_at = self._not_before if self.waiting else math.inf
        return min(sends_at, max(self._renews_at, self._not_before))

    def event_for(self, event: Event, alert: Alert, named: Sequence[str]) -> Event | None:
        """What it is to be told of ``event``; ``named`` are those whom the routes name. None: nothing."""
        known = alert.id in self._told
        if not alert.open:
            self._told.discard(alert.id)
            return event if known else None
        if known:
            return event
        if self.name not in named or WEIGHT[alert.severity] < self._least:
            return None
        self._told.add(alert.id)
        return Event.FIRING  # what grew worse is news to it

    def state(self) -> dict[str, Any]:
        """Return what it knows of open alerts."""
        receipts = {id: data for id, data in self._receipts.items() if id in self._told}
        return {"told": sorted(self._told), "receipts": receipts}

    def recall(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self._told = set(state.get("told", ()))
        self._receipts = {id: dict(data) for id, data in state.get("receipts", {}).items()}

    def owe(self, notification: Notification) -> None:
        """Queue one more; the oldest gives way where too many wait."""
        self._lost += len(self.waiting) == MOST_WAITING
        self.waiting.append(notification)

    def owe_still(self, notification: Notification) -> None:
        """Queue again, as the first, what couldn't be delivered."""
        if len(self.waiting) == MOST_WAITING:
            self._lost += 1
        else:
            self.waiting.appendleft(notification)

    def take(self) -> Notification | None:
        """Take out what is to be delivered now; None: it is time to remind it of what fires."""
        return self.waiting.popleft() if self.waiting else None

    def attempt(self, notification: Notification | None) -> Notification | None:
        """Deliver or remind; return what is to be tried again."""
        if notification is None:
            self._remind()
            return None
        known = self._receipts.get(notification.alert.id)
        try:
            receipt = self._notifier.send(replace(notification, previous=known))
        except DeliveryError as error:
            return self._failed(notification, error)
        except Exception as error:
            # The text of an unexpected error may hold a URL or a token: its class must do.
            failure = DeliveryError(f"the notifier failed: {type(error).__name__}")
            return self._failed(notification, failure)
        self._failures = 0
        self._not_before = time.monotonic() + self._notifier.min_interval_s
        self._note(notification, receipt)
        return None

    def give_up(self) -> None:
        """Say how many it will not be told of, and forget them."""
        lost = self._lost + len(self.waiting)
        if lost:
            log.warning("%d notifications were not delivered to %s", lost, self.name)
        self._lost = 0
        self.waiting.clear()
        self._firing.clear()
        self._renews_at = math.inf

    def close(self) -> None:
        """Let go of the connection; what is told later opens another."""
        self._notifier.close()
        self._open()

    def _open(self) -> None:
        settings = self._settings
        self._notifier = load_notifier(settings.notifier)(settings.name, settings.options)
        self._renewing = self._notifier if isinstance(self._notifier, Renewing) else None

    def _note(self, notification: Notification, receipt: Receipt) -> None:
        alert = notification.alert
        if not alert.open:
            self._receipts.pop(alert.id, None)
            self._firing.pop(alert.id, None)
        else:
            if receipt.data:
                self._receipts[alert.id] = dict(receipt.data)
            known = self._receipts.get(alert.id)
            self._firing[alert.id] = replace(notification, previous=known)
        if self._renewing is not None:
            every_s = self._renewing.renew_every_s
            self._renews_at = time.monotonic() + every_s if self._firing else math.inf

    def _failed(self, notification: Notification, error: DeliveryError) -> Notification | None:
        self._failures += 1
        if error.permanent:
            self._failures = 0
            log.error("a notification is not delivered: %s", masked(str(error)))
            self._lost += 1
            return None
        wait_s = delay_s(self._failures, BACKOFF_S, BACKOFF_CAP_S, random.random())
        if error.retry_after_s is not None:
            wait_s = max(0.0, error.retry_after_s)
        self._not_before = time.monotonic() + wait_s
        if self._failures == 1:
            log.warning("a notification is not delivered, trying again: %s", masked(str(error)))
        return replace(notification, attempt=notification.attempt + 1)

    def _remind(self) -> None:
        if self._renewing is None:
            return
        self._renews_at = time.monotonic() + self._renewing.renew_every_s
        try:
            self._renewing.renew(list(self._firing.values()))
        except Exception as error:
            text = masked(str(error)) if isinstance(error, DeliveryError) else type(error).__name__
            log.warning("%s is not reminded of what fires: %s", self.name, text)


_open: weakref.WeakSet[Sender] = weakref.WeakSet()
_guards: list[threading.Thread] = []


def _close_at_exit(sender: Sender) -> None:
    """Have ``sender`` closed when the main thread ends.

    At `atexit` it would be too late: from then on no thread can be started, and deliveries need one.
    """
    _open.add(sender)
    if not _guards:
        guard = threading.Thread(target=_close_all, name="wtwin-watch at exit")
        guard.start()
        _guards.append(guard)


def _close_all() -> None:
    threading.main_thread().join()
    for sender in list(_open):
        sender.close(EXIT_S)
