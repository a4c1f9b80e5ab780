"""Digests on their way: each goes into the outbox once its time has come, and once only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import structlog

from wtwin_watch.alerting.digest import Digest, Period, last_period
from wtwin_watch.model import (
    Alert,
    AlertState,
    Detection,
    Event,
    Family,
    Message,
    Run,
    RunKey,
    Severity,
)
from wtwin_watch.notify.digest import compose
from wtwin_watch.store import Checkpoint, OutboxEntry, Store

log = structlog.get_logger("wtwin_watch.notify")


class Digests:
    """Looks which digests are due.

    One whose time came before anything was watched isn't made: there would be nothing in it. One that
    fell into a time when no daemon ran is made late; of several of a receiver the latest.
    """

    def __init__(
        self,
        store: Store,
        digests: Sequence[Digest],
        started_at: float,
    ) -> None:
        self._store = store
        self._digests = digests
        self._started_at = started_at
        self._settled: dict[Digest, str] = {}

    def turn(self, now: float) -> bool:
        """Put into the outbox what is due; says whether that was anything. Raises `StoreError`."""
        made = False
        for digest in self._digests:
            period = last_period(digest.schedule, now)
            if self._settled.get(digest) == period.name:
                continue
            made |= self._settle(digest, period, now)
            self._settled[digest] = period.name
        return made

    def _settle(self, digest: Digest, period: Period, now: float) -> bool:
        id_ = digest_id(digest.receiver, period)
        if self._store.knows_notification(id_):
            return False
        if period.end <= self._started_at and not self._store.watched_before(period.end):
            return False
        facts = self._store.facts(period.start, period.end)
        words = compose(facts, digest.schedule.zone)
        entry = _entry(id_, digest.receiver, words, period, now)
        self._store.save([Checkpoint(notifications=(entry,))], now)
        log.info("digest made", receiver=digest.receiver, period=period.name)
        return True


def digest_id(receiver: str, period: Period) -> str:
    """The idempotency key of a receiver's digest about a period: the same over restarts."""
    text = f"{receiver}\x00{period.name}"
    return f"digest-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _entry(id_: str, receiver: str, words: Message, period: Period, now: float) -> OutboxEntry:
    """A digest as a notification: what every notification is about, an alert, is this period here."""
    key = RunKey("wtwin-watch", "")
    detection = Detection(
        Family.SOURCE, "digest", False, Severity.INFO, words.title, detector="digest"
    )
    alert = Alert(
        id=id_,
        run=key,
        family=Family.SOURCE,
        kind="digest",
        severity=Severity.INFO,
        state=AlertState.RESOLVED,
        detection=detection,
        started_at=period.start,
        resolved_at=period.end,
    )
    return OutboxEntry(
        id=id_,
        receiver=receiver,
        event=Event.DIGEST,
        alert=alert,
        run=Run(key, "digest"),
        created_at=now,
        next_at=now,
        message=words,
    )
