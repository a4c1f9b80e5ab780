"""The adapter ``wandb``: runs of Weights & Biases projects, watched through its servers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from wtwin_adapters.wandb_api_history import Reader, Remote, unix_time
from wtwin_adapters.wandb_api_host import HOSTS
from wtwin_adapters.wandb_api_options import WandbOptions
from wtwin_adapters.wandb_api_queries import RunPath
from wtwin_watch.model import Batch, Cursor, Run, RunKey, RunStatus
from wtwin_watch.protocols import SourceOptions

LOOK_S = 50.0
"""For listing the runs of all projects, seconds."""
_PER_PAGE = 100
_STATUS = {
    "running": RunStatus.RUNNING,
    "finished": RunStatus.FINISHED,
    "failed": RunStatus.FAILED,
    "crashed": RunStatus.CRASHED,
    "killed": RunStatus.KILLED,
    "preempting": RunStatus.RUNNING,
    "preempted": RunStatus.PREEMPTED,
}


class WandbSource:
    """Projects on one W&B server. The client's process is shared with other sources of that server."""

    Options: ClassVar[type[SourceOptions]] = WandbOptions
    interval_s: ClassVar[float] = 30.0
    extra: ClassVar[str | None] = "wandb"

    def __init__(self, name: str, options: WandbOptions) -> None:
        self._name = name
        self._options = options
        key = options.api_key.get_secret_value() if options.api_key else None
        self._access = options.base_url, key
        self._host = HOSTS.enter(*self._access, options.requests_per_minute)

    def runs(self) -> Iterator[Run]:
        """List the runs that are running or ended lately: a request for each hundred of them."""
        until = time.monotonic() + LOOK_S
        since = datetime.now(UTC) - timedelta(hours=self._options.ended_within_h)
        filters = self._options.filters(since.strftime("%Y-%m-%dT%H:%M:%S"))
        found: dict[str, Run] = {}
        for project in self._options.projects:
            within_s = max(1.0, until - time.monotonic())
            answer = self._host.ask(
                "runs", within_s, project=project, filters=filters, per_page=_PER_PAGE
            )
            self._host.budget.spend(answer["pages"] - 1)
            for listed in answer["runs"]:
                if self._options.wants(listed):
                    run = self._run(project, listed)
                    found[run.key.run] = run
        return iter(found.values())

    def fetch(self, run: Run, cursor: Cursor | None, limit: int) -> Batch:
        """Read on in the run's history: one request where there is little new."""
        remote = Remote(self._host, RunPath.of(run.key.run))
        running = run.status is RunStatus.RUNNING
        return Reader(remote, self._options.names, limit, running).read(cursor)

    def roots(self) -> Sequence[Path]:
        """No files."""
        return ()

    def close(self) -> None:
        """Leave the server; the last source ends the client's process."""
        HOSTS.leave(*self._access)

    def _run(self, project: str, listed: Mapping[str, Any]) -> Run:
        state, beat = str(listed.get("state")), listed.get("heartbeatAt")
        changing = (listed.get("lines"), beat, state, listed.get("createdAt"))
        return Run(
            key=RunKey(self._name, f"{project}/{listed['name']}"),
            name=str(listed.get("displayName") or listed["name"]),
            project=project,
            status=_STATUS.get(state, RunStatus.UNKNOWN),
            url=listed.get("url"),
            last_activity=unix_time(beat),
            version=" ".join(map(str, changing)),
            group=listed.get("group") or None,
            tags=tuple(map(str, listed.get("tags") or ())),
        )
