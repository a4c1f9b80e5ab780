"""One source in the hands of the engine: what it lists is fetched, judged, and its failures answered."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from wtwin_watch.alerting.lifecycle import Policy, Reason, Transition
from wtwin_watch.errors import OwnershipLost, SnapshotError, SourceError, StoreError
from wtwin_watch.ingest.ending import BROKEN, LAST_LINES
from wtwin_watch.ingest.health import Health
from wtwin_watch.ingest.plan import Patience, SourcePlan
from wtwin_watch.ingest.resting import FORGOTTEN, Resting, gone_for_good, may_rest
from wtwin_watch.ingest.saving import Saver, new_id
from wtwin_watch.ingest.schedule import Budget, Looks
from wtwin_watch.ingest.trouble import MOST_HUNG
from wtwin_watch.ingest.watched import Judging, Rules, WatchedRun, begun_anew, restored
from wtwin_watch.ingest.workers import Outcome, Workers
from wtwin_watch.logs import masked
from wtwin_watch.model import Alert, Batch, Family, Run, RunKey
from wtwin_watch.monitor.options import DetectorOptions
from wtwin_watch.protocols import Clock, ConsoleSource, Source
from wtwin_watch.store import RunRecord, Store

log = structlog.get_logger("wtwin_watch.ingest")

FETCH_LIMIT = 5_000
"""Points a fetch may bring: about 50 ms of feeding."""
SAVE_EVERY_S = 60.0
NOTE_GAP_S = 5.0
DEADLINE_S = 60.0
WORKERS = 4


@dataclass(frozen=True, slots=True)
class Shared:
    """What the pollers of all sources have in common."""

    store: Store
    clock: Clock
    saver: Saver
    detector: DetectorOptions
    policy: Policy
    patience: Patience
    once: bool
    watch_files: Callable[[str, Sequence[Path]], None]
    """Called with the folders of a source, which may be others now."""


class Poller:
    """Looks at one source, fetches what is new, and keeps its runs.

    ``deliver`` is called from worker threads. Everything else happens on the engine's thread.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        plan: SourcePlan,
        shared: Shared,
        deliver: Callable[[Outcome], None],
    ) -> None:
        self.name = name
        self.source = source
        self.plan = plan
        self._shared = shared
        self._clock = shared.clock
        self._judging = Judging(plan.names, shared.detector, plan.exclude_metrics)
        self._rules = Rules(shared.policy, shared.patience, plan, new_id)
        self.workers = Workers(name, WORKERS, deliver, self._clock.monotonic)
        self.health = Health(name, shared.policy, shared.patience.source_down_after_s)
        self.looks = Looks(plan.interval_s, shared.once, self._clock.monotonic())
        self._budget = Budget(plan.rate)
        self.runs: dict[str, WatchedRun] = {}
        self.resting: dict[str, Resting] = {}
        """Runs that are at rest, kept in the store alone."""
        self.looked = False
        """It has answered, well or badly, since the start."""
        self.moved: dict[RunKey, WatchedRun] = {}
        """Runs that brought something since somebody last asked."""
        self._known_source = False
        """Its runs were watched before."""
        self._look: int | None = None
        """The look in flight."""
        self._fetches: dict[int, WatchedRun] = {}
        """The fetches in flight, by ticket; at most one a run."""
        self._asked: dict[int, WatchedRun] = {}
        """Whose last lines are being read."""
        self._waiting: deque[WatchedRun] = deque()
        """Runs to fetch when the budget allows."""
        self._failing: dict[str, WatchedRun] = {}
        """The runs whose last fetch failed."""
        self._noted_at = -math.inf
        """When it was last written down how it is doing."""
        self._load()

    def _load(self) -> None:
        """Go on where its runs were last saved."""
        store, moment = self._shared.store, self._clock.monotonic()
        alerts = store.latest_alerts(self.name)
        self.health.alerts = alerts.pop(RunKey(self.name, ""), {})
        self.resting = {
            run.key.run: Resting(run.status, run.version, gone_since)
            for run, gone_since in store.resting(self.name)
        }
        for record in store.run_records(self.name, resting=False):
            run = self._restored(record, alerts.get(record.run.key, {}))
            run.moved_at = moment
            self.runs[record.run.key.run] = run
        self._known_source = bool(self.runs or self.resting)

    def _alerts(self, run: RunKey) -> dict[Family, Alert]:
        return self._shared.store.latest_alerts(self.name, run).get(run, {})

    def _restored(self, record: RunRecord, alerts: dict[Family, Alert]) -> WatchedRun:
        try:
            return restored(record, alerts, self._judging)
        except SnapshotError as error:
            log.warning("history read anew", run=str(record.run.key), reason=str(error))
            return begun_anew(record, alerts, self._judging)

    # -- what the engine asks --------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Something is being read now, or waits for it."""
        return bool(self._look is not None or self._fetches or self._asked or self._waiting)

    def wait_s(self, now: float) -> float:
        """How long nothing has to be started here, seconds."""
        until_look = math.inf if self._look is not None else self.looks.next_at - now
        if self._waiting or until_look <= 0.0:
            return self._budget.wait_s()
        return until_look

    def start(self, now: float, hinted: bool) -> bool:
        """Start what is due; whether a look was among it. ``hinted``: there may be something new."""
        if hinted:
            self.looks.hasten()
        while self._waiting and self._budget.take(now):
            self._submit_fetch(self._waiting.popleft())
        if self._look is not None or now < self.looks.next_at or not self._budget.take(now):
            return False
        self.looks.begin(now)
        self._look = self.workers.submit(partial(_look, self.source))
        return True

    def take(self, outcome: Outcome) -> None:
        """Take what a worker brought."""
        if outcome.ticket == self._look:
            self._look = None
            self._take_look(outcome)
        elif (run := self._fetches.pop(outcome.ticket, None)) is not None:
            run.fetching = False
            self._take_fetch(run, outcome)
        elif (run := self._asked.pop(outcome.ticket, None)) is not None:
            self._take_last_lines(run, outcome)

    def routine(self, now: float) -> None:
        """What time alone brings: hung tasks, pending alerts that fire, the checkpoint a minute."""
        late = set(self.workers.give_up(DEADLINE_S))
        error = SourceError(f"no answer within {DEADLINE_S:.0f} s")
        for ticket in late & self._fetches.keys():
            self._fetches[ticket].trouble.hung.append(ticket)
        for ticket in sorted(late):
            self.take(Outcome(ticket, error=error))
        for run in list(self.runs.values()):
            # What can't be read is frozen: time alone changes nothing then.
            frozen = self.looks.failures > 0 or run.trouble.reason is not None
            moved = [] if frozen else run.advance(self._clock.time(), self._rules)
            if moved or (run.dirty and now - run.saved_at >= SAVE_EVERY_S):
                self._checkpoint(run, moved)
        if self.health.problem:
            self._note_health(self.health.problem if self.looks.failures else None)

    def close(self) -> None:
        """Save every run that moved. To be followed by `let_go`."""
        for run in self.runs.values():
            if run.dirty:
                self._checkpoint(run, [])

    def let_go(self) -> None:
        """End the workers and the source."""
        self.workers.close()
        self.source.close()

    # -- looking ---------------------------------------------------------------------------------

    def _take_look(self, outcome: Outcome) -> None:
        now = self._clock.monotonic()
        first, self.looked = not self.looked, True
        if outcome.error is not None:
            retry_after_s = getattr(outcome.error, "retry_after_s", None)
            self.looks.fail(now, random.random(), retry_after_s)
            for run in self.runs.values():
                run.cadence.blind()
            self._note_health(_words(outcome.error))
            return
        self.looks.succeed(now)
        found_runs, roots = outcome.value
        self._shared.watch_files(self.name, roots)
        listed = [found for found in found_runs if not self.plan.excludes(found)]
        if not listed and not self.runs and first:
            log.warning("no runs there yet", source=self.name)
        self._miss({found.key.run for found in listed}, now)
        for found in listed:
            self._see(found, now)
        self._known_source = True
        self._note_health(None)

    def _see(self, found: Run, now: float) -> None:
        resting = self.resting.get(found.key.run)
        if resting is not None and resting.still(found):
            return
        run = self.runs.get(found.key.run)
        if run is None:
            run = self._wake(found) if resting is not None else self._begin(found)
            run.moved_at = now
            self.runs[found.key.run] = run
        if run.see(found, self._clock.time()) and found.status in BROKEN:
            self._ask_last_lines(run)
        if run.wants_fetch(now):
            self._fetch(run)
        elif not run.fetching and run.trouble.reason is None:
            run.cadence.looked(now, self.plan.interval_s)
            self._judge(run)
            self._let_rest(run, now)
        elif run.trouble.reason is not None:
            run.cadence.blind()

    def _begin(self, found: Run) -> WatchedRun:
        log.info("run found", run=found.name, source=self.name)
        monitor = self._judging.new_monitor()
        run = WatchedRun(found, self._judging, monitor, self._clock.time())
        run.newborn = self._known_source
        return run

    def _wake(self, found: Run) -> WatchedRun:
        """Take a run that was at rest out of the store."""
        del self.resting[found.key.run]
        record = self._shared.store.run_record(found.key)
        if record is None:
            return self._begin(found)
        run = self._restored(record, self._alerts(found.key))
        run.dirty = True
        return run

    def _as_saved(self, run: WatchedRun) -> WatchedRun:
        """Put the run back to its last checkpoint, since its monitor stopped half-way through a batch."""
        store, key = self._shared.store, run.run.key
        record = store.run_record(key)
        fresh = (
            self._begin(run.run) if record is None else self._restored(record, self._alerts(key))
        )
        fresh.run, fresh.trouble, fresh.moved_at = run.run, run.trouble, run.moved_at
        self.runs[key.run] = fresh
        return fresh

    # -- runs at rest, and runs that are gone ----------------------------------------------------

    def _miss(self, listed: set[str], now: float) -> None:
        """See to runs that are listed no longer: their alerts end soon, and in the end they are forgotten."""
        time = self._clock.time()
        for gone in self._failing.keys() - listed:
            # What isn't there any more can't be read, and nothing is wrong with that.
            lost = self._failing.pop(gone)
            lost.trouble.over()
            lost.dirty = True
        for name in self.runs.keys() - listed:
            run = self.runs[name]
            run.cadence.blind()
            if run.gone_since is None:
                run.gone_since, run.dirty = time, True
            elif gone_for_good(run.gone_since, time) and not run.fetching:
                moved = run.close(Family, FORGOTTEN, Reason.GONE, time)
                if moved:
                    self._checkpoint(run, moved)
                self._let_rest(run, now)
        for name in self.resting.keys() - listed:
            if self.resting[name].gone_since is None:
                self.resting[name] = self.resting[name].gone(time)
                self._shared.store.mark_gone(RunKey(self.name, name), time)
        before = time - self._shared.patience.forget_after_s
        over = {name for name, one in self.resting.items() if (one.gone_since or time) < before}
        if over:
            self._shared.store.forget_runs([RunKey(self.name, name) for name in over])
            log.info("runs forgotten that are gone", source=self.name, count=len(over))
            for name in over:
                del self.resting[name]

    def _let_rest(self, run: WatchedRun, now: float) -> None:
        """Keep a run of which nothing is expected in the store alone."""
        if not may_rest(run, now, stalls=self.plan.stalls):
            return
        version = run.run.version
        self._checkpoint(run, [], resting=True)
        del self.runs[run.run.key.run]
        self.resting[run.run.key.run] = Resting(run.run.status, version, run.gone_since)

    # -- fetching --------------------------------------------------------------------------------

    def _fetch(self, run: WatchedRun) -> None:
        run.trouble.hung = [ticket for ticket in run.trouble.hung if self.workers.hangs(ticket)]
        if len(run.trouble.hung) >= MOST_HUNG:
            return
        run.fetching = True
        if self._budget.take(self._clock.monotonic()):
            self._submit_fetch(run)
        else:
            self._waiting.append(run)

    def _submit_fetch(self, run: WatchedRun) -> None:
        if run.continued and run.position:
            log.info(f"continuing from {run.position}", run=run.run.name, source=self.name)
        run.continued = False
        run.fetching_version = run.run.version
        task = partial(self.source.fetch, run.run, run.cursor, FETCH_LIMIT)
        self._fetches[self.workers.submit(task)] = run

    def _take_fetch(self, run: WatchedRun, outcome: Outcome) -> None:
        if outcome.error is not None:
            retry_after_s = getattr(outcome.error, "retry_after_s", None)
            self._fetch_failed(run, _words(outcome.error), retry_after_s)
            return
        batch: Batch = outcome.value
        was_backlog, roles = run.backlog, dict(run.monitor.roles)
        try:
            transitions = run.take(batch, self._clock.time(), self._clock.monotonic(), self._rules)
        except Exception as error:
            # One run's data must not stop the others: it is set aside, with its reason shown.
            log.exception("run can't be judged", run=run.run.name, source=self.name)
            run = self._as_saved(run)
            self._fetch_failed(run, f"its monitor failed: {type(error).__name__}", None)
            return
        if run.trouble.reason is not None:
            log.info("run can be read again", run=run.run.name, source=self.name)
        run.trouble.over()
        self._failing.pop(run.run.key.run, None)
        self.moved[run.run.key] = run
        self._tell(run, batch, roles)
        if transitions or (was_backlog and not run.backlog):
            self._checkpoint(run, transitions)
        if transitions:
            # Else with the routine: ten thousand new runs are not ten thousand commits.
            self._shared.saver.write()
        if batch.more:
            self._fetch(run)
        else:
            run.fetched_version = run.fetching_version
            self._judge(run)
            self._note_health(None)

    def _judge(self, run: WatchedRun) -> None:
        """Judge what the points alone don't say, once there is nothing left to read."""
        if run.asking:
            return
        transitions = run.judge(self._clock.time(), self._rules)
        if transitions:
            self._checkpoint(run, transitions)
            self._shared.saver.write()

    def _tell(self, run: WatchedRun, batch: Batch, roles: dict[Any, str]) -> None:
        if dict(run.monitor.roles) != roles:
            chosen = {role.value: name for role, name in run.monitor.roles.items()}
            log.info("following", run=run.run.name, source=self.name, step=run.step_name, **chosen)
        if batch.restart is not None:
            log.info("log restarts", run=run.run.name, reason=batch.restart.reason)
        if batch.skipped:
            log.warning("rows skipped", run=run.run.name, **{"rows": dict(batch.skipped)})

    def _fetch_failed(self, run: WatchedRun, reason: str, retry_after_s: float | None) -> None:
        trouble, was_aside = run.trouble, run.trouble.aside
        if reason != trouble.reason:
            log.warning("run can't be read", run=run.run.name, source=self.name, error=reason)
        trouble.fail(
            reason,
            self._clock.monotonic(),
            self.plan.interval_s,
            random.random(),
            others_are_read=len(self._failing.keys() | {run.run.key.run}) < len(self.runs),
            retry_after_s=retry_after_s,
        )
        if trouble.aside and not was_aside:
            log.warning("run set aside", run=run.run.name, source=self.name, error=reason)
        run.cadence.blind()
        run.dirty = True
        self._failing[run.run.key.run] = run
        self._note_health(None)

    def _ask_last_lines(self, run: WatchedRun) -> None:
        if isinstance(self.source, ConsoleSource):
            run.asking = True
            task = partial(self.source.last_lines, run.run, LAST_LINES)
            self._asked[self.workers.submit(task)] = run

    def _take_last_lines(self, run: WatchedRun, outcome: Outcome) -> None:
        run.asking = False
        if outcome.error is not None:
            text = _words(outcome.error)
            log.warning("no last lines", run=run.run.name, source=self.name, error=text)
        else:
            run.last_lines = tuple(_storable(masked(line)) for line in outcome.value[-LAST_LINES:])
        if not run.fetching:
            self._judge(run)

    # -- health, checkpoints ---------------------------------------------------------------------

    def _note_health(self, look_error: str | None) -> None:
        bad = list(self._failing.values())
        problem, partly = look_error, False
        if problem is None and self.looks.failures == 0 and bad:
            partly = len(bad) < len(self.runs) + len(self.resting)
            count = len(self.runs) + len(self.resting)
            problem = f"{len(bad)} of {count} runs can't be read: {bad[0].trouble.shown}"
        elif problem is None and self.looks.failures:
            return  # the last look failed; a fetch that was still under way doesn't change that
        was = self.health.problem
        moment = self._clock.monotonic()
        news = problem != was
        if problem and was and look_error is None and moment - self._noted_at < NOTE_GAP_S:
            news = False  # one run more or fewer: where thousands fail, each is no news
        if problem and news:
            log.warning("source can't be read", source=self.name, error=problem)
        elif was and not problem:
            log.info("source can be read again", source=self.name)
        transitions = self.health.note(problem, self._clock.time(), new_id, partly)
        if transitions:
            self._shared.saver.add(Run(RunKey(self.name, ""), self.name), transitions)
            self._shared.saver.write()
        if news or moment - self._noted_at >= SAVE_EVERY_S:
            self._noted_at = moment
            self._write_down()

    def _write_down(self) -> None:
        try:
            self._shared.store.save_source(self.health.record(self.plan.adapter))
        except OwnershipLost:
            raise
        except StoreError as error:
            log.error("state not saved, trying again", error=str(error), retry_in_s=SAVE_EVERY_S)

    def _checkpoint(
        self, run: WatchedRun, transitions: Sequence[Transition], *, resting: bool = False
    ) -> None:
        self._shared.saver.add(run.run, transitions, run, resting=resting)
        run.dirty = False
        run.saved_at = self._clock.monotonic()


def _look(source: Source) -> tuple[list[Run], Sequence[Path]]:
    return list(source.runs()), source.roots()


def _words(error: Exception) -> str:
    """What went wrong, in words; of an unexpected error the class alone, since its text may hold anything."""
    if isinstance(error, SourceError):
        return _storable(str(error))
    log.error("adapter failed", exc_info=error)
    return f"the adapter failed: {type(error).__name__}"


def _storable(text: str) -> str:
    """``text`` with what is no Unicode written out: a file's name may hold such bytes, what is sent can't."""
    return text.encode("utf-8", "backslashreplace").decode()
