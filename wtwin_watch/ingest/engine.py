"""The engine: one thread that owns every monitor, decides when to look, and saves what it decides.

Workers look and fetch; their outcomes come back through one bounded queue. The engine feeds a batch to
its run, and where an alert changed it saves cursor, monitor, alerts and notifications in one transaction
before anything else happens to that run. Otherwise a run is saved about once a minute: a crash then
reads again from the last checkpoint, with the state that belongs to it.
"""

from __future__ import annotations

import contextlib
import math
import queue
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from wtwin_watch.alerting.lifecycle import Policy, Transition
from wtwin_watch.backoff import delay_s
from wtwin_watch.errors import OwnershipLost, SnapshotError, SourceError, StoreError
from wtwin_watch.ingest.events import FileEvents
from wtwin_watch.ingest.health import Health
from wtwin_watch.ingest.saving import Saver, new_id
from wtwin_watch.ingest.watched import Judging, WatchedRun, restored
from wtwin_watch.ingest.workers import Outcome, Workers
from wtwin_watch.metrics import Names
from wtwin_watch.model import Batch, Run, RunKey
from wtwin_watch.monitor.options import DetectorOptions
from wtwin_watch.protocols import Clock, Source
from wtwin_watch.store import Store

log = structlog.get_logger("wtwin_watch.ingest")

FETCH_LIMIT = 5_000
"""Points a fetch may bring: about 50 ms of feeding."""
SAVE_EVERY_S = 60.0
NOTE_GAP_S = 5.0
DEADLINE_S = 60.0
WORKERS = 4
QUEUE_SIZE = 16
HINT_GAP_S = 0.2
"""Looks hastened by file events are at least this far apart, and ten times as far as a look is long."""
RUN_BACKOFF_CAP_S = 300.0
SOURCE_BACKOFF_CAP_S = 60.0


@dataclass(slots=True)
class WatchedSource:
    """A source in the hands of the engine."""

    name: str
    adapter: str
    source: Source
    judging: Judging
    interval_s: float
    workers: Workers
    health: Health
    runs: dict[str, WatchedRun] = field(default_factory=dict)
    ticket: int | None = None
    """The look in flight."""
    fetches: dict[int, WatchedRun] = field(default_factory=dict)
    """The fetches in flight, by ticket; at most one a run."""
    failing: dict[str, WatchedRun] = field(default_factory=dict)
    """The runs whose last fetch failed."""
    looked: bool = False
    """It has answered, well or badly, since the start."""
    noted_at: float = -math.inf
    """When it was last written down how it is doing."""
    look_started: float = 0.0
    look_took_s: float = 0.0
    next_look: float = 0.0
    failures: int = 0


class Engine:
    """Brings points from the sources to the monitors, and what follows from them to the store.

    ``receivers`` are the names of those who are told; ``told`` is called when there is something for
    them in the outbox. ``once``: every source is looked at a single time. Schedules go by
    ``clock.monotonic``, what is stored by ``clock.time``.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        receivers: Sequence[str],
        detector: DetectorOptions,
        policy: Policy,
        old_after_s: float,
        source_down_after_s: float,
        told: Callable[[], None],
        once: bool = False,
    ) -> None:
        self._store = store
        self._clock = clock
        self._detector = detector
        self._policy = policy
        self._old_after_s = old_after_s
        self._down_after_s = source_down_after_s
        self._saver = Saver(store, clock, receivers, told)
        self._once = once
        self._sources: dict[str, WatchedSource] = {}
        self._inbox: queue.Queue[tuple[str, Outcome | None]] = queue.Queue(QUEUE_SIZE)
        self._hints: set[str] = set()
        self._events = FileEvents()
        self._moved: dict[RunKey, WatchedRun] = {}
        self._next_routine = 0.0

    # -- what the daemon asks --------------------------------------------------------------------

    def add(self, name: str, adapter: str, source: Source, names: Names, interval_s: float) -> None:
        """Watch a source, going on where its runs were last saved."""

        def deliver(outcome: Outcome) -> None:
            self._inbox.put((name, outcome))

        watched = WatchedSource(
            name=name,
            adapter=adapter,
            source=source,
            judging=Judging(names, self._detector),
            interval_s=interval_s,
            workers=Workers(name, WORKERS, deliver, self._clock.monotonic),
            health=Health(name, self._policy, self._down_after_s),
            next_look=self._clock.monotonic(),
        )
        alerts = self._store.latest_alerts(name)
        watched.health.alerts = alerts.pop(RunKey(name, ""), {})
        for record in self._store.run_records(name):
            families = alerts.get(record.run.key, {})
            try:
                run = restored(record, families, watched.judging)
            except SnapshotError as error:
                log.warning("history read anew", run=str(record.run.key), reason=str(error))
                run = self._begin(record.run, watched.judging)
                run.alerts = families
            watched.runs[record.run.key.run] = run
        self._sources[name] = watched

    def hint(self, name: str) -> None:
        """Something may be new at this source: look soon. From any thread."""
        self._hints.add(name)

    def turn(self, wait_s: float) -> None:
        """Do what is due, wait up to ``wait_s`` for an outcome, and take those that are there.

        A queueful at most: while a long history is read there is always another one, and the routine,
        the heartbeat and the request to stop can't wait for its end.
        """
        self._start_looks()
        wait_s = min(wait_s, self._until_next_look())
        for taken in range(QUEUE_SIZE):
            try:
                name, outcome = self._inbox.get(block=taken == 0, timeout=wait_s)
            except queue.Empty:
                break
            if outcome is not None:
                self._take(self._sources[name], outcome)
        self._routine()

    @property
    def answered(self) -> bool:
        """Every source has answered once, well or badly."""
        return all(watched.looked for watched in self._sources.values())

    @property
    def busy(self) -> bool:
        """Something is being read now."""
        return any(
            watched.ticket is not None or watched.fetches for watched in self._sources.values()
        )

    @property
    def blind(self) -> list[str]:
        """Sources that can't be read now."""
        return [name for name, watched in self._sources.items() if watched.health.problem]

    @property
    def hopeless(self) -> bool:
        """So much hangs that only a restart helps."""
        return any(watched.workers.exhausted for watched in self._sources.values())

    def status(self) -> str:
        """One line for ``systemctl status``."""
        runs = [run for watched in self._sources.values() for run in watched.runs.values()]
        open_ = [
            alert
            for run in runs
            for alert in run.alerts.values()
            if alert.open and alert.fired_at is not None and not alert.quiet
        ]
        text = f"watching {len(runs)} run{'s' * (len(runs) != 1)}, {len(open_)} firing"
        return text + "".join(f", {name} can't be read" for name in self.blind)

    def note_progress(self) -> None:
        """Write down how far the runs have come that moved since the last time."""
        moved, self._moved = self._moved, {}
        self._store.note_progress([run.progress() for run in moved.values()])

    @property
    def firing(self) -> int:
        """How many alerts are firing, those about sources included; history is not counted."""
        groups = [
            run.alerts for watched in self._sources.values() for run in watched.runs.values()
        ] + [watched.health.alerts for watched in self._sources.values()]
        return sum(
            alert.open and alert.fired_at is not None and not alert.quiet
            for alerts in groups
            for alert in alerts.values()
        )

    def close(self) -> None:
        """Save every run that moved, and let go of the sources."""
        self._events.close()
        for watched in self._sources.values():
            for run in watched.runs.values():
                if run.dirty:
                    self._checkpoint(run, [])
        self._saver.write()
        for watched in self._sources.values():
            watched.workers.close()
            watched.source.close()

    # -- looking ---------------------------------------------------------------------------------

    def _until_next_look(self) -> float:
        now = self._clock.monotonic()
        due = [w.next_look for w in self._sources.values() if w.ticket is None]
        return max(0.0, min(due, default=now + 1.0) - now)

    def _start_looks(self) -> None:
        now = self._clock.monotonic()
        for watched in self._sources.values():
            if watched.name in self._hints and watched.failures == 0 and not self._once:
                soon = watched.look_started + max(HINT_GAP_S, 10.0 * watched.look_took_s)
                watched.next_look = min(watched.next_look, soon)
            if watched.ticket is None and now >= watched.next_look:
                self._hints.discard(watched.name)
                watched.look_started = now
                watched.next_look = math.inf if self._once else now + watched.interval_s
                watched.ticket = watched.workers.submit(partial(_look, watched.source))

    def _take(self, watched: WatchedSource, outcome: Outcome) -> None:
        if outcome.ticket == watched.ticket:
            watched.ticket = None
            self._take_look(watched, outcome)
        elif (run := watched.fetches.pop(outcome.ticket, None)) is not None:
            run.fetching = False
            self._take_fetch(watched, run, outcome)

    def _take_look(self, watched: WatchedSource, outcome: Outcome) -> None:
        now = self._clock.monotonic()
        first, watched.looked = not watched.looked, True
        watched.look_took_s = now - watched.look_started
        if outcome.error is not None:
            watched.failures += 1
            delay = delay_s(
                watched.failures, watched.interval_s, SOURCE_BACKOFF_CAP_S, random.random()
            )
            if not self._once:
                watched.next_look = now + max(delay, watched.interval_s)
            self._note_health(watched, _words(outcome.error))
            return
        watched.failures = 0
        self._events.watch(watched.name, watched.source.roots(), partial(self._wake, watched.name))
        listed = {found.key.run for found in outcome.value}
        for gone in watched.failing.keys() - listed:
            # What isn't there any more can't be read, and nothing is wrong with that.
            lost = watched.failing.pop(gone)
            lost.failures, lost.error, lost.dirty = 0, None, True
        if not outcome.value and not watched.runs and first:
            log.warning("no runs there yet", source=watched.name)
        for found in outcome.value:
            run = watched.runs.get(found.key.run)
            if run is None:
                log.info("run found", run=found.name, source=watched.name)
                run = watched.runs[found.key.run] = self._begin(found, watched.judging)
            run.run = found
            if run.wants_fetch(now):
                self._fetch(watched, run)
        self._note_health(watched, None)

    def _as_saved(self, watched: WatchedSource, run: WatchedRun) -> WatchedRun:
        """Put the run back to its last checkpoint, since its monitor stopped half-way through a batch."""
        fresh = self._begin(run.run, watched.judging)
        for record in self._store.run_records(watched.name):
            if record.run.key == run.run.key:
                alerts = self._store.latest_alerts(watched.name).get(run.run.key, {})
                fresh = restored(record, alerts, watched.judging)
        fresh.run, fresh.failures, fresh.error = run.run, run.failures, run.error
        watched.runs[run.run.key.run] = fresh
        return fresh

    def _begin(self, found: Run, judging: Judging) -> WatchedRun:
        return WatchedRun(found, judging, judging.new_monitor(), self._clock.time())

    def _wake(self, name: str) -> None:
        self.hint(name)
        with contextlib.suppress(queue.Full):  # then the engine is awake already
            self._inbox.put_nowait((name, None))

    # -- fetching --------------------------------------------------------------------------------

    def _fetch(self, watched: WatchedSource, run: WatchedRun) -> None:
        if run.continued and run.position:
            log.info(f"continuing from {run.position}", run=run.run.name, source=watched.name)
        run.continued = False
        run.fetching_version = run.run.version
        run.fetching = True
        task = partial(watched.source.fetch, run.run, run.cursor, FETCH_LIMIT)
        watched.fetches[watched.workers.submit(task)] = run

    def _take_fetch(self, watched: WatchedSource, run: WatchedRun, outcome: Outcome) -> None:
        if outcome.error is not None:
            self._fetch_failed(watched, run, _words(outcome.error))
            return
        if run.error is not None:
            log.info("run can be read again", run=run.run.name, source=watched.name)
        run.failures, run.error = 0, None
        watched.failing.pop(run.run.key.run, None)
        batch: Batch = outcome.value
        try:
            was_backlog, roles = run.backlog, dict(run.monitor.roles)
            transitions = run.take(
                batch, self._clock.time(), self._policy, self._old_after_s, new_id
            )
        except Exception as error:
            # One run's data must not stop the others: it is set aside, with its reason shown.
            log.exception("run can't be judged", run=run.run.name, source=watched.name)
            run = self._as_saved(watched, run)
            self._fetch_failed(watched, run, f"its monitor failed: {type(error).__name__}")
            return
        self._moved[run.run.key] = run
        self._tell(watched, run, batch, roles)
        if transitions or (was_backlog and not run.backlog):
            self._checkpoint(run, transitions)
        if transitions:
            self._saver.write()  # else with the routine: ten thousand new runs are not ten thousand commits
        if batch.more:
            self._fetch(watched, run)
        else:
            run.fetched_version = run.fetching_version
            self._note_health(watched, None)

    def _tell(
        self, watched: WatchedSource, run: WatchedRun, batch: Batch, roles: dict[Any, str]
    ) -> None:
        if dict(run.monitor.roles) != roles:
            chosen = {role.value: name for role, name in run.monitor.roles.items()}
            log.info(
                "following", run=run.run.name, source=watched.name, step=run.step_name, **chosen
            )
        if batch.restart is not None:
            log.info("log restarts", run=run.run.name, reason=batch.restart.reason)
        if batch.skipped:
            log.warning("rows skipped", run=run.run.name, **{"rows": dict(batch.skipped)})

    def _fetch_failed(self, watched: WatchedSource, run: WatchedRun, error: str) -> None:
        run.failures += 1
        delay = delay_s(run.failures, watched.interval_s, RUN_BACKOFF_CAP_S, random.random())
        run.retry_at = self._clock.monotonic() + delay
        if error != run.error:
            log.warning("run can't be read", run=run.run.name, source=watched.name, error=error)
        run.error = error
        run.dirty = True
        watched.failing[run.run.key.run] = run
        self._note_health(watched, None)

    # -- health, checkpoints ---------------------------------------------------------------------

    def _note_health(self, watched: WatchedSource, look_error: str | None) -> None:
        bad = list(watched.failing.values())
        problem, partly = look_error, False
        if problem is None and watched.failures == 0 and bad:
            partly = len(bad) < len(watched.runs)
            problem = f"{len(bad)} of {len(watched.runs)} runs can't be read: {bad[0].error}"
        elif problem is None and watched.failures:
            return  # the last look failed; a fetch that was still under way doesn't change that
        was = watched.health.problem
        moment = self._clock.monotonic()
        news = problem != was
        if problem and was and look_error is None and moment - watched.noted_at < NOTE_GAP_S:
            news = False  # one run more or fewer: where thousands fail, each is no news
        if problem and news:
            log.warning("source can't be read", source=watched.name, error=problem)
        elif was and not problem:
            log.info("source can be read again", source=watched.name)
        now = self._clock.time()
        transitions = watched.health.note(problem, now, new_id, partly)
        if transitions:
            self._saver.add(Run(RunKey(watched.name, ""), watched.name), transitions)
        if transitions:
            self._saver.write()
        if news or moment - watched.noted_at >= SAVE_EVERY_S:
            watched.noted_at = moment
            self._write_down(watched)

    def _write_down(self, watched: WatchedSource) -> None:
        try:
            self._store.save_source(watched.health.record(watched.adapter))
        except OwnershipLost:
            raise
        except StoreError as error:
            log.error("state not saved, trying again", error=str(error), retry_in_s=SAVE_EVERY_S)

    def _checkpoint(self, run: WatchedRun, transitions: Sequence[Transition]) -> None:
        self._saver.add(run.run, transitions, run)
        run.dirty = False
        run.saved_at = self._clock.monotonic()

    def _routine(self) -> None:
        """What time alone brings: pending alerts that fire, hung tasks, the checkpoint a minute."""
        now = self._clock.monotonic()
        if now < self._next_routine:
            return
        self._next_routine = now + 0.5
        for watched in self._sources.values():
            late = set(watched.workers.give_up(DEADLINE_S))
            text = f"no answer within {DEADLINE_S:.0f} s"
            if watched.ticket in late:
                self._take(watched, Outcome(watched.ticket, error=SourceError(text)))
            for ticket in late & watched.fetches.keys():
                self._take(watched, Outcome(ticket, error=SourceError(text)))
            for run in watched.runs.values():
                # What can't be read is frozen: time alone changes nothing then.
                frozen = watched.failures > 0 or run.error is not None
                moved = [] if frozen else run.advance(self._clock.time(), self._policy)
                if moved or (run.dirty and now - run.saved_at >= SAVE_EVERY_S):
                    self._checkpoint(run, moved)
            if watched.health.problem:
                self._note_health(watched, watched.health.problem if watched.failures else None)
        self._saver.write()


def _look(source: Source) -> list[Run]:
    return list(source.runs())


def _words(error: Exception) -> str:
    """What went wrong, in words; of an unexpected error the class alone, since its text may hold anything."""
    if isinstance(error, SourceError):
        # A name of a file may hold bytes that are no Unicode; what is stored and sent can't.
        return str(error).encode("utf-8", "backslashreplace").decode()
    log.error("adapter failed", exc_info=error)
    return f"the adapter failed: {type(error).__name__}"
