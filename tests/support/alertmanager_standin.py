"""A strict stand-in for the API of Alertmanager on loopback: what it takes, Alertmanager takes."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime
from typing import Any

from tests.support.faulty_http import Answer, Request, StandIn

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
# As the genuine Alertmanager posts them; `tests/integration/test_alertmanager.py` compares.
_PAYLOAD = {
    *("receiver", "status", "alerts", "groupLabels", "commonLabels", "commonAnnotations"),
    *("externalURL", "version", "groupKey", "truncatedAlerts"),
}
_ALERT = {
    *("status", "labels", "annotations", "startsAt", "endsAt", "generatorURL", "fingerprint"),
}


class AlertmanagerStandIn(StandIn):
    """Takes alerts at `url`; `pushed` holds what each request had, oldest first."""

    def __init__(self, *, port: int = 0, token: str | None = None) -> None:
        super().__init__(port=port)
        self.pushed: list[list[dict[str, Any]]] = []
        self.mistakes: list[str] = []
        self._token = token

    def answer(self, request: Request) -> Answer:
        if request.path != "/api/v2/alerts":
            return Answer(404)
        if self._token and request.headers.get("authorization") != f"Bearer {self._token}":
            return Answer(401)
        alerts = request.json()
        mistakes = [m for alert in alerts for m in _mistakes(alert)] if alerts else ["no alerts"]
        if mistakes:
            self.mistakes += mistakes
            return Answer(400, json.dumps(mistakes[0]).encode())
        self.pushed.append(alerts)
        return Answer(200)

    @property
    def firing(self) -> list[dict[str, str]]:
        """The labels of what fires now, after all pushes."""
        last = {
            json.dumps(alert["labels"], sort_keys=True): alert
            for alerts in self.pushed
            for alert in alerts
        }
        now = time.time()
        return [a["labels"] for a in last.values() if _time(a["endsAt"]).timestamp() > now]


class AlertmanagerHookStandIn(StandIn):
    """A receiver of Alertmanager's webhooks, version 4; `payloads` holds what it took."""

    def __init__(self, *, port: int = 0) -> None:
        super().__init__(port=port)
        self.payloads: list[dict[str, Any]] = []
        self.mistakes: list[str] = []

    def answer(self, request: Request) -> Answer:
        payload = request.json()
        mistakes = [] if set(payload) == _PAYLOAD else [f"fields: {sorted(payload)}"]
        mistakes += [
            f"fields of an alert: {sorted(alert)}"
            for alert in payload["alerts"]
            if set(alert) != _ALERT
        ]
        if payload["version"] != "4":
            mistakes.append("version")
        if mistakes:
            self.mistakes += mistakes
            return Answer(400)
        self.payloads.append(payload)
        return Answer(200)


def _mistakes(alert: Any) -> list[str]:
    mistakes = []
    if set(alert) - {"labels", "annotations", "startsAt", "endsAt", "generatorURL"}:
        mistakes.append(f"unknown fields: {sorted(alert)}")
    labels = alert.get("labels", {})
    if not re.fullmatch(r"([A-Z][a-z0-9]+)+", labels.get("alertname", "")):
        mistakes.append("alertname is no CamelCase name")
    for kind in ("labels", "annotations"):
        for name, value in alert[kind].items():
            if not _NAME.fullmatch(name) or not isinstance(value, str) or not value:
                mistakes.append(f"{kind}: {name!r} = {value!r}")
    if _time(alert["endsAt"]) < _time(alert["startsAt"]):
        mistakes.append("it ends before it starts")
    return mistakes


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    assert moment.tzinfo is not None
    return moment
