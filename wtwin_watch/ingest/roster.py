"""Which runs of a source are known: those in memory, those at rest in the store, and those that are gone."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import structlog

from wtwin_watch.alerting.lifecycle import Reason, Transition
from wtwin_watch.errors import OwnershipLost, SnapshotError, StoreError
from wtwin_watch.ingest.judging import Judging
from wtwin_watch.ingest.resting import FORGOTTEN, Resting, gone_for_good, may_rest
from wtwin_watch.ingest.saving import Saver
from wtwin_watch.ingest.stored import begun_anew, restored
from wtwin_watch.ingest.watched import WatchedRun
from wtwin_watch.model import Alert, Family, Run, RunKey
from wtwin_watch.protocols import Clock
from wtwin_watch.store import Answer, RunRecord, Store

log = structlog.get_logger("wtwin_watch.ingest")


class Roster:
    """The runs of one source. ``stalls`` says whether steps are awaited of them."""

    def __init__(
        self,
        source: str,
        store: Store,
        saver: Saver,
        clock: Clock,
        judging: Judging,
        *,
        stalls: bool,
        forget_after_s: float,
    ) -> None:
        self._source = source
        self._store = store
        self._saver = saver
        self._clock = clock
        self._judging = judging
        self._stalls = stalls
        self._forget_after_s = forget_after_s
        self.awake: dict[str, WatchedRun] = {}
        """Those in memory, by their id."""
        self.resting: dict[str, Resting] = {}
        self._unsettled = False
        self.met_before = False
        """The source was looked at before, so that a run not known yet is a new one."""

    def load(self) -> dict[Family, Alert]:
        """Take up the runs as they were last saved; returns the alerts about the source itself."""
        moment = self._clock.monotonic()
        alerts = self._store.latest_alerts(self._source)
        self.resting = {
            run.key.run: Resting(run.status, run.version, gone_since)
            for run, gone_since in self._store.resting(self._source)
        }
        for record in self._store.run_records(self._source, resting=False):
            run = self._restored(record, alerts.get(record.run.key, {}))
            run.moved_at = moment
            self.awake[record.run.key.run] = run
        self.met_before = bool(self.awake or self.resting)
        return alerts.get(RunKey(self._source, ""), {})

    def __len__(self) -> int:
        return len(self.awake) + len(self.resting)

    def found(self, listed: Run) -> WatchedRun | None:
        """The run that is ``listed``: known, new, or taken out of its rest; None where it goes on resting."""
        name = listed.key.run
        run = self.awake.get(name)
        if run is not None:
            return run
        resting = self.resting.get(name)
        if resting is not None and resting.still(listed):
            return None
        return self._keep_awake(self._begun(listed) if resting is None else self._roused(listed))

    def known(self, name: str) -> WatchedRun | None:
        """The run with this id, taken out of its rest if it rests; None where there is none."""
        if name in self.awake or name not in self.resting:
            return self.awake.get(name)
        record = self._store.run_record(RunKey(self._source, name))
        return None if record is None else self._keep_awake(self._roused(record.run))

    def _keep_awake(self, run: WatchedRun) -> WatchedRun:
        run.moved_at = self._clock.monotonic()
        self.awake[run.run.key.run] = run
        return run

    def _roused(self, listed: Run) -> WatchedRun:
        del self.resting[listed.key.run]
        run = self._as_stored(listed)
        run.dirty = True
        return run

    def as_saved(self, run: WatchedRun) -> WatchedRun:
        """Put ``run`` back to its last checkpoint, since its monitor stopped half-way through a batch."""
        fresh = self._as_stored(run.run)
        fresh.run, fresh.trouble, fresh.moved_at = run.run, run.trouble, run.moved_at
        self.awake[run.run.key.run] = fresh
        return fresh

    def miss(self, listed: AbstractSet[str]) -> None:
        """See to runs that are listed no longer: their alerts end soon, and in the end they are forgotten."""
        now = self._clock.time()
        for name in self.awake.keys() - listed:
            run = self.awake[name]
            run.cadence.blind()
            if run.gone_since is None:
                run.gone_since, run.dirty = now, True
            elif gone_for_good(run.gone_since, now) and not run.fetching:
                ended = run.close(Family, FORGOTTEN, Reason.GONE, now)
                if ended:
                    self.checkpoint(run, ended)
                self.let_rest(run)
        away = [n for n in self.resting.keys() - listed if self.resting[n].gone_since is None]
        before = now - self._forget_after_s
        over = [name for name, one in self.resting.items() if (one.gone_since or now) < before]
        try:
            self._mark_gone(away, now)
            self._forget(over)
        except OwnershipLost:
            raise
        except StoreError as error:
            # Nothing has changed here then, so the next look tries again.
            log.error("runs that are gone not noted", source=self._source, error=str(error))

    def let_rest(self, run: WatchedRun) -> None:
        """Keep ``run`` in the store alone, if nothing is expected of it; to be followed by `settle`."""
        if may_rest(run, self._clock.monotonic(), stalls=self._stalls):
            self.checkpoint(run, [], resting=True)
            name = run.run.key.run
            del self.awake[name]
            self.resting[name] = Resting(run.run.status, run.run.version, run.gone_since)
            self._unsettled = True

    def settle(self) -> None:
        """Write down what went to rest, before the next look may take it up again."""
        if self._unsettled:
            self._unsettled = False
            self._saver.write()

    def checkpoint(
        self,
        run: WatchedRun,
        transitions: Sequence[Transition],
        *,
        resting: bool = False,
        answers: Sequence[Answer] = (),
    ) -> None:
        """Queue what changed about ``run``, with where it stands, and answers to who asked for it."""
        self._saver.add(run.run, transitions, run, resting=resting, answers=answers)
        run.dirty = False
        run.saved_at = self._clock.monotonic()

    def _mark_gone(self, names: Sequence[str], now: float) -> None:
        if names:
            self._store.mark_gone([RunKey(self._source, name) for name in names], now)
        for name in names:
            self.resting[name] = self.resting[name].gone(now)

    def _forget(self, names: Sequence[str]) -> None:
        if names:
            self._store.forget_runs([RunKey(self._source, name) for name in names])
            log.info("runs forgotten that are gone", source=self._source, count=len(names))
        for name in names:
            del self.resting[name]

    def _begun(self, listed: Run) -> WatchedRun:
        log.info("run found", run=listed.name, source=self._source)
        monitor = self._judging.new_monitor()
        run = WatchedRun(listed, self._judging, monitor, self._clock.time())
        run.newborn = self.met_before
        return run

    def _as_stored(self, listed: Run) -> WatchedRun:
        record = self._store.run_record(listed.key)
        if record is None:
            return self._begun(listed)
        alerts = self._store.latest_alerts(self._source, listed.key)
        return self._restored(record, alerts.get(listed.key, {}))

    def _restored(self, record: RunRecord, alerts: dict[Family, Alert]) -> WatchedRun:
        try:
            return restored(record, alerts, self._judging)
        except SnapshotError as error:
            log.warning("history read anew", run=str(record.run.key), reason=str(error))
            return begun_anew(record, alerts, self._judging)
