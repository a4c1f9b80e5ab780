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

from wtwin_watch.alerting.lifecycle import Policy
from wtwin_watch.errors import SourceError
from wtwin_watch.ingest.ending import BROKEN, LAST_LINES
from wtwin_watch.ingest.health import Health, HealthDesk
from wtwin_watch.ingest.judging import Judging, Rules
from wtwin_watch.ingest.plan import Patience, SourcePlan
from wtwin_watch.ingest.roster import Roster
from wtwin_watch.ingest.saving import Saver, new_id
from wtwin_watch.ingest.schedule import Budget, Looks
from wtwin_watch.ingest.trouble import MOST_HUNG
from wtwin_watch.ingest.watched import WatchedRun
from wtwin_watch.ingest.workers import Outcome, Workers
from wtwin_watch.logs import masked
from wtwin_watch.model import Batch, Run, RunKey
from wtwin_watch.monitor.options import DetectorOptions
from wtwin_watch.protocols import Clock, ConsoleSource, Source
from wtwin_watch.store import Store

log = structlog.get_logger("wtwin_watch.ingest")

FETCH_LIMIT = 5_000
"""Points a fetch may bring: about 50 ms of feeding."""
SAVE_EVERY_S = 60.0
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
        self.rules = Rules(shared.policy, shared.patience, plan, new_id)
        self.workers = Workers(name, WORKERS, deliver, self._clock.monotonic)
        self.health = Health(name, shared.policy, shared.patience.source_down_after_s)
        self.looks = Looks(plan.interval_s, shared.once, self._clock.monotonic())
        self._budget = Budget(plan.rate)
        self.roster = Roster(
            name,
            shared.store,
            shared.saver,
            shared.clock,
            Judging(plan.names, shared.detector, plan.exclude_metrics),
            stalls=plan.stalls,
            forget_after_s=shared.patience.forget_after_s,
        )
        self.looked = False
        """It has answered, well or badly, since the start."""
        self.moved: dict[RunKey, WatchedRun] = {}
        """Runs that brought something since somebody last asked."""
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
        self.health.alerts = self.roster.load()
        self._desk = HealthDesk(
            name, plan.adapter, self.health, shared.store, shared.saver, shared.clock
        )

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
        for run in list(self.roster.awake.values()):
            # What can't be read is frozen: time alone changes nothing then.
            frozen = self.looks.failures > 0 or run.trouble.reason is not None
            moved = [] if frozen else run.advance(self._clock.time(), self.rules)
            if moved or (run.dirty and now - run.saved_at >= SAVE_EVERY_S):
                self.roster.checkpoint(run, moved)
        if self.health.problem:
            self._note_health(self.health.problem if self.looks.failures else None)

    def close(self) -> None:
        """Save every run that moved. To be followed by `let_go`."""
        for run in self.roster.awake.values():
            if run.dirty:
                self.roster.checkpoint(run, [])

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
            for run in self.roster.awake.values():
                run.cadence.blind()
            self._note_health(_words(outcome.error))
            return
        self.looks.succeed(now)
        found_runs, roots = outcome.value
        self._shared.watch_files(self.name, roots)
        listed = [found for found in found_runs if not self.plan.excludes(found)]
        if not listed and not self.roster.awake and first:
            log.warning("no runs there yet", source=self.name)
        ids = {found.key.run for found in listed}
        for gone in self._failing.keys() - ids:
            # What isn't there any more can't be read, and nothing is wrong with that.
            lost = self._failing.pop(gone)
            lost.trouble.over()
            lost.dirty = True
        self.roster.miss(ids)
        for found in listed:
            self._see(found, now)
        self.roster.met_before = True
        self.roster.settle()
        self._note_health(None)

    def _see(self, found: Run, now: float) -> None:
        run = self.roster.found(found)
        if run is None:
            return
        if run.see(found, self._clock.time()) and found.status in BROKEN:
            self._ask_last_lines(run)
        if run.wants_fetch(now):
            self._fetch(run)
        elif not run.fetching and run.trouble.reason is None:
            run.cadence.looked(now, self.plan.interval_s)
            self._judge(run)
            self.roster.let_rest(run)
        elif run.trouble.reason is not None:
            run.cadence.blind()

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
            transitions = run.take(batch, self._clock.time(), self._clock.monotonic(), self.rules)
        except Exception as error:
            # One run's data must not stop the others: it is set aside, with its reason shown.
            log.exception("run can't be judged", run=run.run.name, source=self.name)
            run = self.roster.as_saved(run)
            self._fetch_failed(run, f"its monitor failed: {type(error).__name__}", None)
            return
        if run.trouble.reason is not None:
            log.info("run can be read again", run=run.run.name, source=self.name)
        run.trouble.over()
        self._failing.pop(run.run.key.run, None)
        self.moved[run.run.key] = run
        self._tell(run, batch, roles)
        if transitions or (was_backlog and not run.backlog):
            self.roster.checkpoint(run, transitions)
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
        transitions = run.judge(self._clock.time(), self.rules)
        if transitions:
            self.roster.checkpoint(run, transitions)
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
            others_are_read=len(self._failing.keys() | {run.run.key.run}) < len(self.roster.awake),
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

    def _note_health(self, look_error: str | None) -> None:
        if look_error is None and self.looks.failures:
            return  # the last look failed; a fetch that was still under way doesn't change that
        failing = [run.trouble.shown or "" for run in self._failing.values()]
        self._desk.note(look_error, failing, len(self.roster))


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
