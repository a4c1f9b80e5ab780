"""Checkpoints on their way to the store, and what is owed to receivers because of them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import structlog

from wtwin_watch.alerting.dispatch import Dispatcher
from wtwin_watch.alerting.lifecycle import Reason, Transition
from wtwin_watch.alerting.telling import Outcome
from wtwin_watch.errors import OwnershipLost, StoreError
from wtwin_watch.ingest.stored import record_of
from wtwin_watch.ingest.watched import WatchedRun
from wtwin_watch.model import Run
from wtwin_watch.protocols import Clock
from wtwin_watch.store import Answer, Checkpoint, OutboxEntry, Store

log = structlog.get_logger("wtwin_watch.ingest")

AGAIN_S = 5.0


class Saver:
    """Collects checkpoints, and writes them together.

    The ``dispatcher`` decides what is told because of them, once ``heed`` has let it know of the silences
    that there are; ``told`` is called when that is in the outbox.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        dispatcher: Dispatcher,
        heed: Callable[[], None],
        told: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._dispatcher = dispatcher
        self._heed = heed
        self._told = told
        self._unsaved: list[tuple[WatchedRun | None, Checkpoint]] = []
        self._again_at = 0.0

    def add(
        self,
        about: Run,
        transitions: Sequence[Transition],
        run: WatchedRun | None = None,
        *,
        resting: bool = False,
        answers: Sequence[Answer] = (),
    ) -> None:
        """Queue what changed ``about`` a run, with where it stands; a source has no ``run``.

        ``resting``: the run is not kept in memory from here on. ``answers``: to those who asked for it.
        """
        for transition in transitions:
            _say(transition, about)
        if any(transition.event for transition in transitions):
            # A silence holds from the moment when its author was told that it does.
            with suppress(StoreError):
                self._heed()
        outcome = self._dispatcher.take(about, transitions, self._clock.time())
        checkpoint = replace(self._to_tell(outcome), transitions=tuple(transitions))
        if run is not None:
            record = replace(record_of(run), resting=resting)
            checkpoint = replace(checkpoint, record=record, happened=tuple(run.happened))
            run.happened = []
        self._unsaved.append((run, replace(checkpoint, answers=tuple(answers))))

    def refuse(self, answer: Answer) -> None:
        """Queue an answer that changes nothing."""
        self._unsaved.append((None, Checkpoint(answers=(answer,))))

    def advance(self, *, at_once: bool = False) -> None:
        """Queue what time alone brings; ``at_once``: also what waits to be told with others."""
        outcome = self._dispatcher.advance(self._clock.time(), at_once=at_once)
        if outcome:
            self._unsaved.append((None, self._to_tell(outcome)))

    def _to_tell(self, outcome: Outcome) -> Checkpoint:
        now = self._clock.time()
        entries = [
            OutboxEntry(
                id=new_id(),
                receiver=told.receiver,
                event=told.event,
                alert=told.alert,
                run=told.run,
                created_at=now,
                next_at=now,
                others=told.others,
                size=told.size,
            )
            for told in outcome.told
        ]
        return Checkpoint(notifications=entries, decisions=outcome.decisions, groups=outcome.groups)

    def write(self) -> None:
        """Write what is queued.

        Where that fails, what happened stays queued, in order, and is tried again soon. A
        run that only moved is saved with its next checkpoint, so that a full disk doesn't fill memory.
        Raises `OwnershipLost`.
        """
        if not self._unsaved or self._clock.monotonic() < self._again_at:
            return
        checkpoints = [checkpoint for _, checkpoint in self._unsaved]
        try:
            self._store.save(checkpoints, self._clock.time())
        except OwnershipLost:
            raise
        except StoreError as error:
            log.error("state not saved, trying again", error=str(error), retry_in_s=AGAIN_S)
            self._again_at = self._clock.monotonic() + AGAIN_S
            kept = []
            for run, checkpoint in self._unsaved:
                if _must_be_kept(checkpoint):
                    kept.append((run, checkpoint))
                elif run is not None:
                    run.dirty = True
            self._unsaved = kept
            return
        self._unsaved = []
        if any(checkpoint.notifications for checkpoint in checkpoints):
            self._told()


def _must_be_kept(checkpoint: Checkpoint) -> bool:
    """Whether nobody else has what is in it: a run that only moved is saved again."""
    resting = checkpoint.record is not None and checkpoint.record.resting
    told = checkpoint.notifications or checkpoint.decisions or checkpoint.groups
    said = told or checkpoint.answers
    return bool(checkpoint.transitions or checkpoint.happened or resting or said)


def new_id() -> str:
    """An id that nothing else has: 32 hex digits."""
    return uuid.uuid4().hex


def _say(transition: Transition, about: Run) -> None:
    """Log what people are told, and what they would expect to be told and aren't."""
    if transition.event is not None:
        what = f"alert {transition.event.value}"
    elif transition.reason in {Reason.COOLDOWN, Reason.OLD}:
        what = "alert not told"
    else:
        return
    alert = transition.alert
    log.info(
        what,
        run=about.name,
        source=about.key.source,
        family=alert.family.value,
        kind=alert.kind,
        step=alert.detection.step,
        reason=transition.reason.value,
    )
