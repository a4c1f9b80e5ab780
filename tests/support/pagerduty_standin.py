"""A strict stand-in for PagerDuty's Events API version 2 on loopback: what it takes, PagerDuty takes."""

from __future__ import annotations

import json
from typing import Any

from tests.support.faulty_http import Answer, Request, StandIn

ROUTING_KEY = "R0SeSaMe00112233445566778899aabb"
_ACTIONS = {"trigger", "acknowledge", "resolve"}
_SEVERITIES = {"critical", "error", "warning", "info"}
_TOP = {
    "routing_key",
    "event_action",
    "dedup_key",
    "payload",
    "client",
    "client_url",
    "links",
    "images",
}
_PAYLOAD = {
    *(
        "summary",
        "source",
        "severity",
        "timestamp",
        "component",
        "group",
        "class",
        "custom_details",
    ),
}
_MOST_BYTES = 512 * 1024


class PagerDutyStandIn(StandIn):
    """Takes events at `enqueue_url`; `incidents` has the state of each dedup key."""

    def __init__(self, *, port: int = 0) -> None:
        super().__init__(port=port)
        self.events: list[dict[str, Any]] = []
        self.incidents: dict[str, str] = {}
        self.mistakes: list[str] = []

    @property
    def enqueue_url(self) -> str:
        return self.url + "/v2/enqueue"

    def answer(self, request: Request) -> Answer:
        event = request.json()
        mistakes = _mistakes(request, event)
        if mistakes:
            self.mistakes += mistakes
            return Answer(400, json.dumps({"status": "invalid event", "errors": mistakes}).encode())
        self.events.append(event)
        action, key = event["event_action"], event["dedup_key"]
        if action == "trigger":
            if self.incidents.get(key) != "acknowledge":
                self.incidents[key] = "trigger"
        elif key in self.incidents:
            self.incidents[key] = action
        return Answer(202, json.dumps({"status": "success", "dedup_key": key}).encode(), key=key)


def _mistakes(request: Request, event: Any) -> list[str]:
    if request.path != "/v2/enqueue":
        return [f"no such path: {request.path}"]
    if request.headers.get("content-type") != "application/json":
        return ["content type"]
    if not isinstance(event, dict) or len(request.raw) > _MOST_BYTES:
        return ["the event is no object, or too large"]
    mistakes = [f"unknown field {name}" for name in set(event) - _TOP]
    if event.get("routing_key") != ROUTING_KEY:
        mistakes.append("routing_key is invalid")
    if event.get("event_action") not in _ACTIONS:
        mistakes.append("event_action is invalid")
    key = event.get("dedup_key")
    if not isinstance(key, str) or not 1 <= len(key) <= 255:
        mistakes.append("dedup_key has 1 to 255 characters")
    if event.get("event_action") == "trigger":
        mistakes += _payload_mistakes(event.get("payload"))
    elif "payload" in event:
        mistakes.append("only a trigger has a payload")
    return mistakes


def _payload_mistakes(payload: Any) -> list[str]:
    if not isinstance(payload, dict):
        return ["payload is missing"]
    mistakes = [f"unknown field payload.{name}" for name in set(payload) - _PAYLOAD]
    for name, most in (("summary", 1024), ("source", 255)):
        text = payload.get(name)
        if not isinstance(text, str) or not 1 <= len(text) <= most:
            mistakes.append(f"payload.{name} has 1 to {most} characters")
    if payload.get("severity") not in _SEVERITIES:
        mistakes.append("payload.severity is invalid")
    return mistakes
