"""GraphQL requests to a W&B server, each with a bound on its time and on the size of its answer."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from typing import Any

import orjson
import urllib3
from urllib3.exceptions import HTTPError

from wtwin_adapters.pools import TooSlow, pool_for, whole_answer
from wtwin_adapters.wandb_api_budget import Budget
from wtwin_watch.errors import SourceError
from wtwin_watch.secrets import shown_url

REQUEST_S = 20.0
"""For all of one request, seconds."""
MOST_BYTES = 32 << 20
_CONNECTIONS = 8
_OK, _TOO_MANY, _SERVER = 200, 429, 500
_REFUSED = (401, 403)


class BadShape(Exception):
    """An answer of another form than is understood here."""


class GraphQL:
    """Sends requests to ``{base_url}/graphql`` with a key. Used from many threads."""

    def __init__(self, base_url: str, key: str, budget: Budget) -> None:
        self._url = f"{base_url.rstrip('/')}/graphql"
        self._shown = shown_url(base_url)
        self._budget = budget
        token = base64.b64encode(f"api:{key}".encode()).decode()
        self._headers = {
            "Authorization": f"Basic {token}",
            "Content-Type": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": "wtwin-watch",
        }
        self._pool = pool_for(base_url, _CONNECTIONS)

    def ask(self, operation: str, query: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a query, and give the ``data`` of its answer.

        Raises `SourceError` saying what happened and the cure, `BadShape` for a query that this server
        does not understand, `wtwin_adapters.pools.TooLarge` for an answer beyond `MOST_BYTES`: ask for less.
        """
        body = {"operationName": operation, "query": query, "variables": variables}
        status, headers, raw = self._post(json.dumps(body).encode())
        rest_s = self._budget.note(status, headers)
        if status != _OK:
            raise refused(self._shown, status, rest_s)
        try:
            answer = orjson.loads(raw)
        except ValueError:
            raise SourceError(
                f"W&B at {self._shown} answered with something else than JSON, such as a login page;"
                " check base_url, and whether a proxy stands between"
            ) from None
        if not isinstance(answer, dict):
            raise BadShape("the answer is no object")
        if answer.get("errors"):
            raise BadShape(_first_error(answer["errors"]))
        data = answer.get("data")
        if not isinstance(data, dict):
            raise BadShape("the answer holds no data")
        return data

    def close(self) -> None:
        """Let go of connections."""
        self._pool.clear()

    def _post(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        until = time.monotonic() + REQUEST_S
        try:
            answer = self._pool.request(
                "POST",
                self._url,
                body=body,
                headers=self._headers,
                timeout=urllib3.Timeout(connect=REQUEST_S / 2, read=REQUEST_S / 2),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except HTTPError as error:
            raise SourceError(
                f"W&B at {self._shown} can't be reached: {_cause(error)}; check base_url and the network"
            ) from error
        try:
            content = whole_answer(answer, MOST_BYTES, until)
        except TooSlow as error:
            raise SourceError(
                f"W&B at {self._shown} gave no whole answer in {REQUEST_S:g} s"
            ) from error
        except HTTPError as error:
            raise SourceError(
                f"W&B at {self._shown} broke off its answer: {_cause(error)}"
            ) from error
        return answer.status, answer.headers, content


def refused(shown: str, status: int | None, rest_s: float = 0.0, text: str = "") -> SourceError:
    """Say what an HTTP status of a W&B server means, and what to do."""
    if status in _REFUSED:
        return SourceError(
            f"W&B at {shown} refused the key ({status}); set WANDB_API_KEY or the source's api_key to a"
            " key that may read the project"
        )
    if status == _TOO_MANY:
        wish = f" and wants none for {rest_s:.0f} s" if rest_s else ""
        return SourceError(
            f"W&B at {shown} says there are too many requests (429){wish}; if that lasts, give the"
            " source a longer interval or fewer runs",
            retry_after_s=rest_s or None,
        )
    if status is not None and status >= _SERVER:
        return SourceError(
            f"W&B at {shown} is in trouble (HTTP {status}); it is asked again",
            retry_after_s=rest_s or None,
        )
    if status is not None:
        return SourceError(f"W&B at {shown} answered HTTP {status}; check base_url")
    return SourceError(f"W&B at {shown} can't be read: {text}")


def _first_error(errors: Any) -> str:
    first = errors[0] if isinstance(errors, list) and errors else errors
    text = first.get("message") if isinstance(first, dict) else first
    return str(text)[:200]


def _cause(error: HTTPError) -> str:
    cause = error.__cause__ or getattr(error, "reason", None) or error
    words = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return str(words)[:200]
