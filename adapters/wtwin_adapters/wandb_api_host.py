"""What the sources of one W&B server share: the client's process, the budget of requests, connections."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from wtwin_adapters.wandb_api_budget import Budget
from wtwin_adapters.wandb_api_http import GraphQL, refused
from wtwin_adapters.wandb_api_queries import no_project
from wtwin_adapters.wandb_child import START_S, Child, ClientFailed, child_environment
from wtwin_watch.errors import SourceError
from wtwin_watch.secrets import shown_url


class Host:
    """One server and one key. ``base_url`` and ``key`` None: as the client finds them."""

    def __init__(self, base_url: str | None, key: str | None, per_minute: float) -> None:
        self.budget = Budget(per_minute)
        self._base_url = base_url
        self._key = key
        self._child = Child(child_environment(os.environ, base_url, key))
        self._lock = threading.Lock()
        self._graphql: GraphQL | None = None

    @property
    def shown(self) -> str:
        """The address without anything secret."""
        return shown_url(self._base_url) if self._base_url else "its usual address"

    @property
    def pid(self) -> int | None:
        """Of the client's process, while it is there."""
        return self._child.pid

    def graphql(self) -> GraphQL:
        """Where own requests are sent. Asks the client for address and key where they weren't given."""
        if self._base_url is None or self._key is None:
            found = self.ask("hello", START_S)
            self._base_url = self._base_url or str(found["base_url"]).rstrip("/")
            self._key = self._key or str(found["key"])
        with self._lock:
            if self._graphql is None:
                self._graphql = GraphQL(self._base_url, self._key, self.budget)
            return self._graphql

    def ask(self, what: str, within_s: float, **details: Any) -> dict[str, Any]:
        """Let the client do something. Raises `SourceError` saying what failed and the cure."""
        if not self.budget.take(time.monotonic() + within_s / 2):
            raise self.resting()
        try:
            return self._child.ask(what, within_s, **details)
        except ClientFailed as error:
            raise self._told(error, details) from None

    def resting(self) -> SourceError:
        """Say that no request is to be sent now."""
        rest_s = self.budget.rest_s
        return SourceError(
            f"W&B at {self.shown} is given a rest of {rest_s:.0f} s, as it asked for",
            retry_after_s=rest_s,
        )

    def close(self) -> None:
        """End the client and the connections."""
        self._child.close()
        with self._lock:
            if self._graphql is not None:
                self._graphql.close()

    def _told(self, error: ClientFailed, details: dict[str, Any]) -> SourceError:
        text = str(error)
        if self._key:
            text = text.replace(self._key, "***")
        if error.kind == "UsageError":
            return SourceError(
                f"the wandb client has no key for {self.shown}: set WANDB_API_KEY or the source's"
                f" api_key, or run 'wandb login' ({text})"
            )
        if error.kind == "ValueError" and "project" in text.lower() and "project" in details:
            return no_project(str(details["project"]))
        return refused(self.shown, error.status, text=text or "the wandb client's helper died")


class _Hosts:
    """The hosts in use, each shared by those who asked for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hosts: dict[tuple[str | None, str | None], tuple[Host, int]] = {}

    def enter(self, base_url: str | None, key: str | None, per_minute: float) -> Host:
        """Use a host; it stays until as many have left as have entered."""
        with self._lock:
            known = self._hosts.get((base_url, key))
            host, users = known or (Host(base_url, key, per_minute), 0)
            host.budget.limit(per_minute)
            self._hosts[base_url, key] = host, users + 1
            return host

    def leave(self, base_url: str | None, key: str | None) -> None:
        """Stop using it; the last one ends it."""
        with self._lock:
            host, users = self._hosts.pop((base_url, key))
            if users > 1:
                self._hosts[base_url, key] = host, users - 1
        if users == 1:
            host.close()


HOSTS = _Hosts()
