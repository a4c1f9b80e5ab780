"""A receiver of webhooks on loopback that checks signatures with the Standard Webhooks reference library.

In a test, as a context manager (`WebhookStandIn`), or as a process:

    python -m tests.support.webhook_standin --record FILE.jsonl [--port N] [--secret whsec_…] [--faults '[…]']
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

from tests.support.faulty_http import Answer, Request, StandIn, faults_from, serve


@dataclass(frozen=True)
class Delivery:
    """One accepted request."""

    id: str
    headers: Mapping[str, str]
    raw: bytes
    body: Mapping[str, Any]


class WebhookStandIn(StandIn):
    """Takes webhooks at `hook_url`. ``secret`` None: takes unsigned ones, and refuses signed ones."""

    def __init__(
        self, *, secret: str | None = None, port: int = 0, record: Path | None = None
    ) -> None:
        super().__init__(port=port, record=record)
        self.secret = secret
        self.deliveries: list[Delivery] = []

    @property
    def hook_url(self) -> str:
        return self.url + "/hook"

    @property
    def types(self) -> list[str]:
        """The types of the events, each id once, oldest first."""
        return [first.body["type"] for first in {d.id: d for d in self.deliveries}.values()]

    def answer(self, request: Request) -> Answer:
        key = request.headers.get("webhook-id")
        if request.path != "/hook":
            return Answer(404, key=key)
        if not key or not self._genuine(request):
            return Answer(401, key=key)
        if request.headers.get("content-type") != "application/json":
            return Answer(415, key=key)
        body = request.json()
        if not isinstance(body, dict) or set(body) != {"type", "timestamp", "data"}:
            return Answer(400, key=key)
        self.deliveries.append(Delivery(key, request.headers, request.raw, body))
        return Answer(204, key=key)

    def _genuine(self, request: Request) -> bool:
        if self.secret is None:
            return "webhook-signature" not in request.headers
        try:
            Webhook(self.secret).verify(request.raw, dict(request.headers))
        except WebhookVerificationError:
            return False
        return True


def main() -> None:
    """Serve as a process until killed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--record", type=Path, help="append each request to this file, as JSON lines"
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--secret", help="check signatures with this secret")
    parser.add_argument("--faults", type=faults_from, default=[], help="a JSON list of faults")
    given = parser.parse_args()
    stand_in = WebhookStandIn(secret=given.secret, port=given.port, record=given.record)
    stand_in.faults += given.faults
    serve(stand_in, hook_url="/hook")


if __name__ == "__main__":
    main()
