"""The engine: one thread that owns every monitor, decides when to look, and saves what it decides.

Workers look and fetch; their outcomes come back through one bounded queue. The engine feeds a batch to
its run, and where an alert changed it saves cursor, monitor, alerts and notifications in one transaction
before anything else happens to that run. Otherwise a run is saved about once a minute: a crash then
reads again from the last checkpoint, with the state that belongs to it. What it does with one source is
`wtwin_watch.ingest.poller`.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import structlog

from wtwin_watch.alerting import lifecycle
from wtwin_watch.alerting.budget import Budget
from wtwin_watch.alerting.dispatch import Dispatcher
from wtwin_watch.alerting.lifecycle import Policy, Reason
from wtwin_watch.alerting.maintenance import holding
from wtwin_watch.errors import StoreError
from wtwin_watch.ingest.events import FileEvents
from wtwin_watch.ingest.poller import Poller, Shared
from wtwin_watch.ingest.requests import RequestDesk
from wtwin_watch.ingest.saving import Saver
from wtwin_watch.model import Alert, Family, Run
from wtwin_watch.monitor.options import TrendOptions
from wtwin_watch.protocols import Clock, Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wtwin_watch.alerting.maintenance import Window
    from wtwin_watch.alerting.telling import Telling
    from wtwin_watch.ingest.plan import Patience, SourcePlan
    from wtwin_watch.ingest.workers import Outcome
    from wtwin_watch.monitor.options import DetectorOptions
    from wtwin_watch.store import Store

log = structlog.get_logger("wtwin_watch.ingest")

QUEUE_SIZE = 16
ROUTINE_EVERY_S = 0.5
BUDGET_EVERY_S = 10.0
UNWATCHED = "The source is no longer watched: the settings don't name it any more."


class Engine:
    """Brings points from the sources to the monitors, and what follows from them to the store.

    ``telling`` says who is told of what; ``told`` is called when there is something for them in the
    outbox. ``once``: every source is looked at a single time. Schedules go by
    ``clock.monotonic``, what is stored by ``clock.time``. ``allowed``: so many false alarms a second may be
    told of all runs together; None: as many as the detector finds. ``maintenance``: when nobody is to hear
    first of what.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        telling: Telling,
        detector: DetectorOptions,
        policy: Policy,
        patience: Patience,
        told: Callable[[], None],
        once: bool = False,
        allowed: float | None = None,
        maintenance: Sequence[Window] = (),
    ) -> None:
        self._store = store
        self._clock = clock
        self._dispatcher = Dispatcher(telling, store.remembered())
        self._maintenance = maintenance
        self._saver = Saver(store, clock, self._dispatcher, self._heed_silences, told)
        self._shared = Shared(
            store, clock, self._saver, detector, policy, patience, once, self._watch_files
        )
        self._once = once
        self._far = detector.far if isinstance(detector, TrendOptions) else None
        self._allowed = allowed
        self._next_budget = 0.0
        self._pollers: dict[str, Poller] = {}
        self._requests = RequestDesk(store, self._saver, clock, self._pollers)
        self._heed_silences()
        self._inbox: queue.Queue[tuple[str, Outcome | None]] = queue.Queue(QUEUE_SIZE)
        self._hints: set[str] = set()
        self._events = FileEvents()
        self._next_routine = 0.0
        self._budget: Budget | None = None

    # -- what the daemon asks --------------------------------------------------------------------

    def add(self, name: str, source: Source, plan: SourcePlan) -> None:
        """Watch a source, going on where its runs were last saved."""

        def deliver(outcome: Outcome) -> None:
            self._inbox.put((name, outcome))

        self._pollers[name] = Poller(name, source, plan, self._shared, deliver)

    def leave_others(self) -> None:
        """End what is open about sources that are watched no longer. To be called when all are added."""
        now = self._clock.time()
        for name in self._store.source_names():
            if name in self._pollers:
                continue
            about = {run.key: run for run in self._store.leave_source(name, now)}
            for key, alerts in self._store.latest_alerts(name).items():
                run = about.get(key) or Run(key, key.run or name)
                _, ended = lifecycle.close(alerts, Family, UNWATCHED, Reason.UNWATCHED, now)
                self._saver.add(run, ended)
            log.info("source no longer watched", source=name)
        self._saver.write()

    def hint(self, name: str) -> None:
        """Something may be new at this source: look soon. From any thread."""
        self._hints.add(name)

    def turn(self, wait_s: float) -> None:
        """Do what is due, wait up to ``wait_s`` for an outcome, and take those that are there.

        A queueful at most: while a long history is read there is always another one, and the routine,
        the heartbeat and the request to stop can't wait for its end.
        """
        now = self._clock.monotonic()
        for name, poller in self._pollers.items():
            if poller.start(now, name in self._hints):
                self._hints.discard(name)
        now = self._clock.monotonic()
        wait_s = min([wait_s, *(poller.wait_s(now) for poller in self._pollers.values())])
        for taken in range(QUEUE_SIZE):
            try:
                name, outcome = self._inbox.get(block=taken == 0, timeout=wait_s)
            except queue.Empty:
                break
            if outcome is not None:
                self._pollers[name].take(outcome)
        self._routine()

    @property
    def answered(self) -> bool:
        """Every source has answered once, well or badly."""
        return all(poller.looked for poller in self._pollers.values())

    @property
    def busy(self) -> bool:
        """Something is being read now."""
        return any(poller.busy for poller in self._pollers.values())

    @property
    def blind(self) -> list[str]:
        """Sources that can't be read now."""
        return [name for name, poller in self._pollers.items() if poller.health.problem]

    @property
    def hopeless(self) -> bool:
        """So much hangs that only a restart helps."""
        return any(poller.workers.exhausted for poller in self._pollers.values())

    @property
    def firing(self) -> int:
        """How many alerts are firing, those about sources included; history is not counted."""
        sources = [poller.health.alerts.values() for poller in self._pollers.values()]
        return _firing(self._of_runs()) + _firing(alert for alerts in sources for alert in alerts)

    def status(self) -> str:
        """One line for ``systemctl status``."""
        runs = sum(len(p.roster) for p in self._pollers.values())
        firing = _firing(self._of_runs())
        text = f"watching {runs} run{'s' * (runs != 1)}, {firing} firing"
        return text + "".join(f", {name} can't be read" for name in self.blind)

    def note_progress(self) -> None:
        """Write down how far the runs have come that moved since the last time, and the budget."""
        if self._budget is not None:
            self._store.note_budget(self._budget, self._clock.time())
        progress = []
        for poller in self._pollers.values():
            progress += [run.progress() for run in poller.moved.values()]
            poller.moved.clear()
        self._store.note_progress(progress)

    def close(self) -> None:
        """Save every run that moved, and let go of the sources."""
        self._events.close()
        for poller in self._pollers.values():
            poller.close()
        self._saver.advance(at_once=True)
        self._saver.write()
        for poller in self._pollers.values():
            poller.let_go()

    # -- inside ----------------------------------------------------------------------------------

    def _of_runs(self) -> Iterator[Alert]:
        for poller in self._pollers.values():
            for run in poller.roster.awake.values():
                yield from run.alerts.values()

    def _watch_files(self, name: str, roots: Sequence[Path]) -> None:
        self._events.watch(name, roots, partial(self._wake, name))

    def _wake(self, name: str) -> None:
        self.hint(name)
        with contextlib.suppress(queue.Full):  # then the engine is awake already
            self._inbox.put_nowait((name, None))

    def _routine(self) -> None:
        now = self._clock.monotonic()
        if now < self._next_routine:
            return
        self._next_routine = now + ROUTINE_EVERY_S
        for poller in self._pollers.values():
            poller.routine(now)
        if now >= self._next_budget:
            self._next_budget = now + BUDGET_EVERY_S
            self._spend()
        self._requests.serve()
        with contextlib.suppress(StoreError):  # which is told where requests are read
            self._heed_silences()
        self._saver.advance()
        self._saver.write()

    def _heed_silences(self) -> None:
        """Let the silences hold that there are now, maintenance windows among them. Raises `StoreError`."""
        now = self._clock.time()
        self._dispatcher.silence([*self._store.silences(now), *holding(self._maintenance, now)])

    def _spend(self) -> None:
        """See what the budget of false alarms comes to with the runs there are now."""
        if self._allowed is None or self._far is None:
            return
        now = self._clock.time()
        rates = [
            run.points_a_second(now)
            for p in self._pollers.values()
            for run in p.roster.awake.values()
        ]
        live = [rate for rate in rates if rate > 0.0]
        self._budget = Budget(self._allowed, sum(live), len(live), self._far)
        self._dispatcher.spend(self._budget)


def _firing(alerts: Iterable[Alert]) -> int:
    return sum(alert.open and alert.fired_at is not None and not alert.quiet for alert in alerts)
