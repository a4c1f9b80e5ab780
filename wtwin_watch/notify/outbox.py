"""The outbox: one thread a receiver delivers what waits for it, and a dead receiver delays nobody else.

Delivery is at least once: a notification is marked sent after the receiver took it, so a crash between
the two sends it again, with the same idempotency key.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from wtwin_watch.backoff import delay_s
from wtwin_watch.errors import DeliveryError, OwnershipLost, StoreError
from wtwin_watch.model import Event, Notification, Receipt
from wtwin_watch.notify import render
from wtwin_watch.notify.refusals import Refusals
from wtwin_watch.protocols import Clock, Coalescing, Notifier, Renewing
from wtwin_watch.store import OutboxEntry, Store

log = structlog.get_logger("wtwin_watch.notify")

DAY_S = 86_400.0
BACKOFF_S = 2.0
BACKOFF_CAP_S = 600.0
"""Who comes back within a day hears what waits within this time; after a day delays go on growing."""
HOLD_CAP_S = 60.0
"""A receiver that failed is left alone this long at most before the next notification is tried."""
OUTAGE = 3
"""After so many failures in a row a success means that the receiver is back."""
GIVE_UP_S = 3 * DAY_S
LEAST_FAILURES = 10
IDLE_S = 30.0
MOST_TOGETHER = 40
"""So many notifications are told in one message at most: so few that each has a line in it."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again after ``delay_s``; the receiver as a whole is left alone for ``hold_s``."""

    delay_s: float
    hold_s: float


def after_failure(
    error: DeliveryError, failures: int, in_a_row: int, age_s: float, chance: float
) -> Retry | None:
    """Decide what follows the ``failures``-th failure of a notification; None: park it, no use in trying.

    ``in_a_row``: how often the receiver has failed since it last took anything; the hold grows with that,
    so that one that is down is asked no more often because much waits for it.

    Retry-After is believed up to a day. Without it the delay doubles from `BACKOFF_S` to `BACKOFF_CAP_S`;
    of a notification older than a day it is as long as the time since then, a day at most.
    ``chance`` in [0, 1) is its jitter. One older than `GIVE_UP_S` is parked after
    `LEAST_FAILURES`, so that a start without a network costs none.
    """
    if error.permanent or (age_s > GIVE_UP_S and failures >= LEAST_FAILURES):
        return None
    if error.retry_after_s is not None:
        wait = min(max(error.retry_after_s, 0.0), DAY_S)
        return Retry(wait, wait)
    cap = min(max(BACKOFF_CAP_S, age_s - DAY_S), DAY_S)
    hold = delay_s(in_a_row, BACKOFF_S, HOLD_CAP_S, chance)
    return Retry(delay_s(failures, BACKOFF_S, cap, chance), hold)


class Deliverer:
    """Delivers to one receiver, in a thread of its own.

    ``failed`` is called where it can't go on, ``sent`` after each notification that was delivered by
    itself. ``refusals`` hears what the receiver takes and what is parked.
    """

    def __init__(
        self,
        receiver: str,
        notifier: Notifier,
        store: Store,
        clock: Clock,
        failed: Callable[[Exception], None],
        sent: Callable[[Notifier, Notification, Receipt], None] | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        self.receiver = receiver
        self._notifier = notifier
        self._store = store
        self._clock = clock
        self._failed = failed
        self._sent = sent
        self._refusals = refusals
        self._news = threading.Event()
        self._ending = threading.Event()
        self._not_before = 0.0
        self._failures = 0
        """In a row, whatever was sent."""
        self._trouble: str | None = None
        self._together = notifier if isinstance(notifier, Coalescing) else None
        self._renewing = notifier if isinstance(notifier, Renewing) else None
        self._renew_at = -math.inf
        self._renewed = True
        self._log = log.bind(receiver=receiver)
        self._thread = threading.Thread(target=self._run, name=f"to {receiver}", daemon=True)

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def wake(self) -> None:
        """There may be something new to deliver. From any thread."""
        self._news.set()

    def stop(self, timeout_s: float) -> None:
        """Stop after the delivery in progress, waiting for it at most ``timeout_s``."""
        self._ending.set()
        self._news.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self._news.clear()
                self._remind()
                entry = self._store.next_notification(self.receiver)
                wait = IDLE_S if entry is None else self._wait_for(entry)
                if entry is None or wait > 0:
                    self._news.wait(min(wait, IDLE_S, self._until_reminder()))
                elif crowd := self._crowd(entry):
                    self.deliver_together(crowd)
                else:
                    self.deliver(entry)
        except OwnershipLost as error:
            self._failed(error)
        except Exception as error:
            self._log.exception("delivery stopped")
            self._failed(error)

    def _wait_for(self, entry: OutboxEntry) -> float:
        now = self._clock.time()
        # Made in the future: the clock was set back since, and `next_at` says nothing. The hold does.
        due = now if entry.created_at > now else entry.next_at
        return max(due - now, self._not_before - self._clock.monotonic(), 0.0)

    def deliver(self, entry: OutboxEntry) -> None:
        """Send one notification and note what came of it."""
        notification = self._notification(entry)
        receipt = self._attempt([entry], lambda: self._notifier.send(notification))
        if receipt is not None and self._sent is not None:
            self._sent(self._notifier, notification, receipt)

    def deliver_together(self, entries: Sequence[OutboxEntry]) -> None:
        """Send several first notifications as one and note what came of it."""
        notifications = [self._notification(entry) for entry in entries]
        together = self._together
        if together is not None:
            self._attempt(entries, lambda: together.send_together(notifications))

    def _crowd(self, entry: OutboxEntry) -> Sequence[OutboxEntry]:
        """What is to be told together with ``entry``, itself included: nothing, unless so many wait."""
        if self._together is None or entry.event is not Event.FIRING:
            return ()
        waiting = self._store.first_notifications(self.receiver, self._clock.time(), MOST_TOGETHER)
        return waiting if len(waiting) >= self._together.together_from else ()

    def _notification(self, entry: OutboxEntry) -> Notification:
        return Notification(
            id=entry.id,
            receiver=self.receiver,
            event=entry.event,
            alert=entry.alert,
            run=entry.run,
            message=entry.message
            or render.message(entry.event, entry.alert, entry.run, entry.others, entry.size),
            created_at=entry.created_at,
            attempt=entry.attempts + 1,
            previous=self._store.receipt(self.receiver, entry.alert.id),
            others=entry.others,
            size=entry.size,
        )

    def _attempt(
        self, entries: Sequence[OutboxEntry], send: Callable[[], Receipt]
    ) -> Receipt | None:
        """Send, and note for each of ``entries`` what came of it; the receipt where it was delivered."""
        try:
            receipt = send()
        except DeliveryError as error:
            failure = error
        except Exception as error:
            # The text of an unexpected error may hold a URL or a token: its class must do.
            failure = DeliveryError(f"the notifier failed: {type(error).__name__}")
        else:
            self._not_before = self._clock.monotonic() + self._notifier.min_interval_s
            self._note_sent(entries, receipt)
            self._well_again()
            return receipt
        chance = random.random()
        self._failures += 1
        for entry in entries:
            self._note_failure(entry, failure, chance)
        return None

    def _well_again(self) -> None:
        """It took something: after an outage all that waits is tried at once, however long its delay was."""
        if self._trouble is not None:
            self._log.info("receiver takes notifications again", failures=self._failures)
        if self._failures >= OUTAGE:
            self._patiently(lambda: self._store.hasten(self.receiver, self._clock.time()))
        self._failures, self._trouble = 0, None
        if self._refusals is not None:
            self._refusals.taken(self.receiver)

    def _until_reminder(self) -> float:
        if self._renewing is None:
            return IDLE_S
        return max(0.0, self._renew_at - self._clock.monotonic())

    def _remind(self) -> None:
        """Remind a receiver that forgets of what fires still, when that is due."""
        if self._renewing is None or self._until_reminder() > 0:
            return
        self._renew_at = self._clock.monotonic() + self._renewing.renew_every_s
        now = self._clock.time()
        firing = [
            Notification(
                id=f"{alert.id}-{int(now)}",
                receiver=self.receiver,
                event=Event.FIRING,
                alert=alert,
                run=run,
                message=render.message(Event.FIRING, alert, run),
                created_at=now,
                previous=receipt,
            )
            for alert, run, receipt in self._store.told_firing(self.receiver)
        ]
        try:
            self._renewing.renew(firing)
        except Exception as error:
            text = str(error) if isinstance(error, DeliveryError) else type(error).__name__
            if self._renewed:
                self._log.warning("receiver not reminded", error=text, alerts=len(firing))
            self._renewed = False
        else:
            self._renewed = True

    def _note_sent(self, entries: Sequence[OutboxEntry], receipt: Receipt) -> None:
        first, *others = entries
        now = self._clock.time()
        self._patiently(lambda: self._store.mark_sent(first, receipt, now, others))
        for entry in entries:
            self._log.info("notification sent", event_told=entry.event.value, run=entry.run.name)

    def _note_failure(self, entry: OutboxEntry, error: DeliveryError, chance: float) -> None:
        now = self._clock.time()
        age_s = now - entry.created_at
        retry = after_failure(error, entry.attempts + 1, self._failures, age_s, chance)
        if retry is None:
            self._patiently(lambda: self._store.mark_parked(entry, str(error), now))
            self._log.error("notification parked", error=str(error), run=entry.run.name)
            if self._refusals is not None:
                self._refusals.parked(self.receiver, str(error))
            return
        self._not_before = self._clock.monotonic() + retry.hold_s
        self._patiently(lambda: self._store.mark_failed(entry, str(error), now + retry.delay_s))
        if str(error) != self._trouble:
            self._trouble = str(error)
            self._log.warning(
                "notification not delivered, trying again",
                error=str(error),
                run=entry.run.name,
                retry_in_s=round(retry.delay_s, 1),
            )

    def _patiently(self, write: Callable[[], None]) -> None:
        """Insist on noting an outcome: were it lost, the notification would be sent again for ever."""
        while True:
            try:
                write()
                return
            except OwnershipLost:
                raise
            except StoreError as error:
                self._log.error("outcome not saved, trying again", error=str(error))
                if self._ending.wait(5.0):
                    return
