"""What people ask: that an alert was seen, that its level is the new normal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import structlog

from wtwin_watch.alerting import lifecycle
from wtwin_watch.errors import StoreError
from wtwin_watch.ingest.saving import Saver
from wtwin_watch.model import Acknowledgement, Alert, Family, Run, RunKey
from wtwin_watch.protocols import Clock
from wtwin_watch.store import Answer, Request, Store, Verb

if TYPE_CHECKING:
    from wtwin_watch.ingest.poller import Poller

log = structlog.get_logger("wtwin_watch.ingest")

NO_LEVEL = (
    "an alert of the kind {kind} is about no level that could be the new normal;"
    " 'wtwin-watch ack' stops its repeats, 'wtwin-watch silence' keeps it quiet for a time"
)
UNWATCHED = "the source of the alert is not watched any more"
OVER = "the alert is over"
OF_RECEIVER = (
    "an alert about a receiver isn't repeated, and ends when the receiver takes something again"
)


class RequestDesk:
    """Answers requests on the engine's thread. What comes of one is saved together with its answer."""

    def __init__(
        self,
        store: Store,
        saver: Saver,
        clock: Clock,
        pollers: Mapping[str, Poller],
    ) -> None:
        self._store = store
        self._saver = saver
        self._clock = clock
        self._pollers = pollers
        self._answered: set[int] = set()
        """Answered, and perhaps not saved yet, so that the store still lists them."""
        self._failing = False

    def serve(self) -> None:
        """Take up what was asked since the last time. To be followed by writing what is to be saved."""
        try:
            requests = self._store.requests()
            self._answered &= {request.seq for request in requests}
            for request in requests:
                if request.seq not in self._answered:
                    self._take(request)
            self._failing = False
        except StoreError as error:
            if not self._failing:
                log.error("requests can't be read, trying again", error=str(error))
            self._failing = True

    def _take(self, request: Request) -> None:
        alert = self._store.alert(request.alert_id)
        poller = None if alert is None else self._pollers.get(alert.run.source)
        if alert is not None and alert.family is Family.RECEIVER:
            self._refuse(request, OF_RECEIVER)
        elif alert is None or poller is None:
            self._refuse(request, UNWATCHED)
        elif alert.run.run:
            self._take_about_run(request, alert, poller)
        else:
            self._take_about_source(request, alert, poller)

    def _take_about_run(self, request: Request, asked: Alert, poller: Poller) -> None:
        run = poller.roster.known(asked.run.run)
        alert = None if run is None else run.alerts.get(asked.family)
        if run is None or alert is None or not _is_open(alert, asked):
            self._refuse(request, OVER)
            return
        now = self._clock.time()
        if request.verb is not Verb.ACCEPT:
            moved = run.acknowledge(asked.id, _seen(request), now)
            if not moved:
                self._refuse(request, _why_unmoved(request, alert))
                return
            outcome = _outcome(request)
        elif run.backlog:
            return  # Its history is being read, and only its end is the present level.
        else:
            outcome = _outcome(request)
            accepted = run.accept(asked.family, outcome, now, poller.rules)
            if accepted is None:
                self._refuse(request, NO_LEVEL.format(kind=alert.kind))
                return
            moved, alert = accepted, run.alerts[asked.family]
            if alert.open:
                outcome += f" The alert goes on, since there is more: {alert.detection.summary}"
        poller.roster.checkpoint(run, moved, answers=[self._answer(request, outcome)])

    def _take_about_source(self, request: Request, asked: Alert, poller: Poller) -> None:
        health = poller.health
        alert = health.alerts.get(asked.family)
        if alert is None or not _is_open(alert, asked):
            self._refuse(request, OVER)
        elif request.verb is Verb.ACCEPT:
            self._refuse(request, NO_LEVEL.format(kind=alert.kind))
        else:
            now = self._clock.time()
            alerts, moved = lifecycle.acknowledge(health.alerts, asked.id, _seen(request), now)
            health.alerts = dict(alerts)
            if moved:
                about = Run(RunKey(poller.name, ""), poller.name)
                answer = self._answer(request, _outcome(request))
                self._saver.add(about, moved, answers=[answer])
            else:
                self._refuse(request, _why_unmoved(request, alert))

    def _answer(self, request: Request, outcome: str) -> Answer:
        self._answered.add(request.seq)
        log.info("request done", verb=request.verb.value, alert=request.alert_id, by=request.by)
        return Answer(request.seq, outcome)

    def _refuse(self, request: Request, why: str) -> None:
        self._answered.add(request.seq)
        self._saver.refuse(Answer(request.seq, why, refused=True))
        log.info(
            "request refused",
            verb=request.verb.value,
            alert=request.alert_id,
            by=request.by,
            reason=why,
        )


def _is_open(alert: Alert, asked: Alert) -> bool:
    """Whether ``alert`` is the one that was ``asked`` about, and not a later one, and not over."""
    return alert.id == asked.id and alert.open


def _seen(request: Request) -> Acknowledgement | None:
    if request.verb is Verb.UNACKNOWLEDGE:
        return None
    return Acknowledgement(request.by, request.at, request.until, request.comment)


def _outcome(request: Request) -> str:
    match request.verb:
        case Verb.ACKNOWLEDGE:
            return f"acknowledged by {request.by}"
        case Verb.UNACKNOWLEDGE:
            return "no longer acknowledged"
        case Verb.ACCEPT:
            said = f": {request.comment}" if request.comment else "."
            return f"Accepted as the new normal by {request.by}{said}"


def _why_unmoved(request: Request, alert: Alert) -> str:
    if alert.quiet:
        return "nobody is told of this alert: it lies in the history before the run was first seen"
    if request.verb is Verb.UNACKNOWLEDGE:
        return "the alert isn't acknowledged"
    return "the alert is acknowledged so already"
