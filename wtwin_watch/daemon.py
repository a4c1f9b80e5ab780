"""The daemon: builds every part from the settings, keeps them going, and ends them in order.

The only place that knows every part. The main thread turns the engine; receivers have threads of their
own, and so have the sources' workers. At the end: no new looks, every moved run saved, what is under way
to a receiver waited for within a deadline; what isn't delivered stays in the outbox.
"""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import structlog

from wtwin_watch.alerting.lifecycle import Policy
from wtwin_watch.alerting.routing import Recipient, Routing
from wtwin_watch.alerting.telling import Telling, Timing
from wtwin_watch.clock import SystemClock
from wtwin_watch.errors import OwnershipLost, StateDamaged, StoreError
from wtwin_watch.ingest.engine import Engine
from wtwin_watch.ingest.plan import Patience, SourcePlan
from wtwin_watch.notify.outbox import GIVE_UP_S, Deliverer
from wtwin_watch.notify.periodic import Digests
from wtwin_watch.notify.refusals import Refusals
from wtwin_watch.pictures import Pictures
from wtwin_watch.plugins import load_adapter, load_notifier
from wtwin_watch.protocols import Clock, Options
from wtwin_watch.sdnotify import Systemd
from wtwin_watch.settings import (
    AlertSettings,
    ReceiverSettings,
    Settings,
    SourceSettings,
    allowed_false_alarms,
)
from wtwin_watch.store import Store, database, owner

log = structlog.get_logger("wtwin_watch.daemon")

TURN_S = 0.5
DRAIN_S = 10.0
"""How long the end waits for deliveries under way."""
ONCE_DRAIN_S = 60.0
KEEP_S = 90 * 86_400.0
"""How long delivered notifications and resolved alerts are kept."""
PRUNE_EVERY_S = 3600.0
DIGESTS_EVERY_S = 10.0

EXIT_OK, EXIT_FIRING, EXIT_BLIND = 0, 1, 69


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run: ``once`` and end; ``fresh``, all forgotten; ``dry_run``, telling the terminal alone."""

    once: bool = False
    fresh: bool = False
    dry_run: bool = False


def run(settings: Settings, options: RunOptions = RunOptions()) -> int:
    """Watch until told to stop, and return the exit code: 0, or with ``once`` also 1 and 69.

    Raises `StoreError` where the state can't be had, `SettingsError` where a plugin can't.
    """
    clock = SystemClock()
    receivers = _receivers(settings, options)
    url = database.database_url(settings.state)
    if options.dry_run:
        # On a copy of the state: what is shown here alone must still be told by the real daemon.
        with tempfile.TemporaryDirectory(prefix="wtwin-watch-") as folder:
            url = database.copy(url, Path(folder))
            return _run(settings, receivers, _open_store(url, options.fresh, clock), clock, options)
    return _run(settings, receivers, _open_store(url, options.fresh, clock), clock, options)


def _run(
    settings: Settings,
    receivers: Sequence[ReceiverSettings],
    store: Store,
    clock: Clock,
    options: RunOptions,
) -> int:
    try:
        daemon = Daemon(settings, store, receivers, clock, once=options.once)
    except BaseException:
        store.close()
        raise
    with _stop_on_signals(daemon.stop):
        return daemon.once() if options.once else daemon.watch()


class Daemon:
    """The parts, put together. `watch` or `once` is called one time."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        receivers: Sequence[ReceiverSettings],
        clock: Clock,
        once: bool = False,
    ) -> None:
        self._store = store
        self._clock = clock
        self._systemd = Systemd()
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._next_heartbeat = 0.0
        self._next_prune = 0.0
        self._next_digests = 0.0
        self._forget_after_s = settings.alerts.forget_after_s
        self._ready = False
        self._pictures = Pictures(store)
        names = [r.name for r in receivers]
        known = [r.name for r in (*settings.receivers, *receivers)]
        refusals = Refusals(store, clock, names, self._wake_deliverers)
        self._deliverers = [
            Deliverer(
                r.name,
                load_notifier(r.notifier)(r.name, r.options),
                store,
                clock,
                self._fail,
                self._pictures.sent,
                refusals,
            )
            for r in receivers
        ]
        told = {r.name for r in receivers}
        digests = [digest for digest in settings.digests if digest.receiver in told]
        self._digests = Digests(store, digests, clock.time())
        self._engine = Engine(
            store=store,
            clock=clock,
            telling=_telling(settings, receivers),
            detector=settings.detector.options(),
            policy=Policy(settings.alerts.for_s, settings.alerts.cooldown_s),
            patience=_patience(settings.alerts),
            told=self._wake_deliverers,
            once=once,
            allowed=allowed_false_alarms(settings),
            maintenance=settings.maintenance,
        )
        for s in settings.sources:
            source = load_adapter(s.adapter)(s.name, s.options)
            self._engine.add(s.name, source, _plan(s))
        self._engine.leave_others()
        refusals.leave_others(known)
        # What the configured ones are owed waits for them, also while a dry run tells none of them.
        parked = store.park_strangers(known, clock.time())
        if parked:
            log.warning("notifications parked: their receiver is not configured", count=parked)
        now = clock.time()
        retried = store.retry_parked(names, now - GIVE_UP_S, now)
        if retried:
            log.info("parked notifications are tried again", count=retried)

    def watch(self) -> int:
        """Watch until `stop`."""
        self._start()
        try:
            while not self._stopping.is_set():
                self._engine.turn(TURN_S)
                self._keep_up()
        finally:
            self._end(DRAIN_S)
        if self._failure is not None:
            raise self._failure
        return EXIT_OK

    def once(self) -> int:
        """Look once everywhere, deliver, and say by the exit code how it is."""
        self._start()
        try:
            while not self._stopping.is_set():
                self._engine.turn(TURN_S)
                self._keep_up()
                if self._engine.answered and not self._engine.busy:
                    break
            blind, firing = self._engine.blind, self._engine.firing
        finally:
            undelivered = self._end(ONCE_DRAIN_S)
        if self._failure is not None:
            raise self._failure
        if firing:
            return EXIT_FIRING
        return EXIT_BLIND if blind or undelivered or self._stopping.is_set() else EXIT_OK

    def stop(self) -> None:
        """End soon. From any thread or a signal handler."""
        self._stopping.set()

    def _start(self) -> None:
        self._pictures.start()
        for deliverer in self._deliverers:
            deliverer.start()

    def _keep_up(self) -> None:
        """Say to the database and to systemd how it goes; withhold that while nothing is seen."""
        if not self._ready and self._engine.answered:
            self._ready = True
            self._systemd.ready()
            log.info("ready", status=self._engine.status())
        if not self._engine.hopeless:
            self._systemd.watchdog()
        moment = self._clock.monotonic()
        if moment >= self._next_heartbeat:
            self._next_heartbeat = moment + owner.HEARTBEAT_S
            status = self._engine.status()
            self._systemd.status(status)
            with self._survivable("heartbeat"):
                self._store.heartbeat(self._clock.time(), status)
                self._engine.note_progress()
        if moment >= self._next_digests:
            self._next_digests = moment + DIGESTS_EVERY_S
            with self._survivable("digest"):
                if self._digests.turn(self._clock.time()):
                    self._wake_deliverers()
        if moment >= self._next_prune:
            self._next_prune = moment + PRUNE_EVERY_S
            with self._survivable("pruning"):
                now = self._clock.time()
                self._store.prune(now - KEEP_S, now - self._forget_after_s)

    @contextmanager
    def _survivable(self, what: str) -> Iterator[None]:
        try:
            yield
        except OwnershipLost:
            raise
        except StoreError as error:
            log.error(f"{what} not saved", error=str(error))

    def _end(self, drain_s: float) -> int:
        """Save, deliver what can be delivered within ``drain_s``, close. Returns what is undelivered."""
        self._systemd.stopping()
        lost = isinstance(self._failure, OwnershipLost)
        receivers = [deliverer.receiver for deliverer in self._deliverers]
        undelivered = 0
        with suppress(StoreError):
            self._engine.close()
        deadline = self._clock.monotonic() + drain_s
        with suppress(StoreError):
            while not lost and self._store.due(receivers, self._clock.time()):
                if self._clock.monotonic() > deadline or self._failure is not None:
                    break
                self._wake_deliverers()
                time.sleep(0.05)
        for deliverer in self._deliverers:
            deliverer.stop(max(0.1, deadline - self._clock.monotonic()))
        self._pictures.stop(max(0.1, deadline - self._clock.monotonic()))
        with suppress(StoreError):
            undelivered = 0 if lost else self._store.waiting(receivers)
        if undelivered:
            log.warning("notifications wait for the next start", count=undelivered)
        self._store.close()
        log.info("stopped")
        return undelivered

    def _wake_deliverers(self) -> None:
        for deliverer in self._deliverers:
            deliverer.wake()

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._stopping.set()


def _patience(alerts: AlertSettings) -> Patience:
    return Patience(
        old_after_s=alerts.old_after_s,
        source_down_after_s=alerts.source_down_after_s,
        failed_after_s=alerts.failed_after_s,
        stall_after_s=alerts.stall_after_s,
        forget_after_s=alerts.forget_after_s,
        min_steps=alerts.min_steps,
    )


def _telling(settings: Settings, receivers: Sequence[ReceiverSettings]) -> Telling:
    alerts = settings.alerts
    timing = Timing(
        wait_s=alerts.group_wait_s,
        interval_s=alerts.group_interval_s,
        window_s=alerts.group_window_s,
        repeat_s=alerts.repeat_s,
    )
    recipients = tuple(r.recipient for r in receivers)
    # Routes name configured receivers; whoever stands in for them, in a dry run, is told of everything.
    routed = receivers == settings.receivers
    routing = settings.routing if routed else Routing((), tuple(r.name for r in receivers))
    return Telling(recipients, routing, timing)


def _plan(source: SourceSettings) -> SourcePlan:
    table = source.table
    return SourcePlan(
        adapter=source.adapter,
        names=source.options.names,
        interval_s=source.interval_s,
        exclude=table.exclude,
        exclude_metrics=table.exclude_metrics,
        max_severity=table.max_severity,
        stalls=table.stalls,
        rate=table.rate,
    )


def _open_store(url: sa.URL, fresh: bool, clock: Clock) -> Store:
    try:
        store = Store(url)
    except StateDamaged:
        if not fresh:
            raise
        database.remove(url)
        store = Store(url)
    try:
        store.claim(clock.time())
        if fresh:
            store.forget()
    except BaseException:
        store.close()
        raise
    return store


def _receivers(settings: Settings, options: RunOptions) -> Sequence[ReceiverSettings]:
    if not options.dry_run:
        return settings.receivers
    terminal: Options = load_notifier("terminal").Options()
    log.info("dry run: alerts are shown in this terminal alone")
    recipient = Recipient("terminal")
    return [ReceiverSettings("terminal", "terminal", terminal, "--dry-run", recipient)]


@contextmanager
def _stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Stop in order at the first signal to end; a second one ends the program as usual."""
    before: dict[signal.Signals, Any] = {}

    def handle(number: int, _: object) -> None:
        for known, handler in before.items():
            signal.signal(known, handler)
        stop()

    for known in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if known is signal.SIGHUP and signal.getsignal(known) is signal.SIG_IGN:
            continue  # nohup has asked for that
        before[known] = signal.signal(known, handle)
    try:
        yield
    finally:
        for known, handler in before.items():
            signal.signal(known, handler)
