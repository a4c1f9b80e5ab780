"""Runs of an MLflow tracking server, or of Databricks: the adapter ``mlflow``.

A look costs two searches: the runs that are running, and those that ended lately. A search tells each
metric's latest row, so that only metrics that moved are read on, each at the least cost that the
server's version allows (`wtwin_adapters.mlflow_history`).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from wtwin_adapters.mlflow_experiments import (
    choose,
    is_missing,
    missing_id,
    no_experiment,
)
from wtwin_adapters.mlflow_history import (
    Fingerprint,
    History,
    Replaced,
    Track,
    fingerprint,
)
from wtwin_adapters.mlflow_http import Gone, Server
from wtwin_adapters.mlflow_login import login
from wtwin_adapters.mlflow_options import MlflowOptions
from wtwin_adapters.mlflow_rows import Merge
from wtwin_adapters.mlflow_search import API, experiments_of, runs_of
from wtwin_adapters.mlflow_seen import QUIET_S, Seen
from wtwin_adapters.mlflow_ways import Way, find_way
from wtwin_adapters.naming import ROW_NUMBER, is_loss, usable
from wtwin_watch.errors import SourceError
from wtwin_watch.model import Batch, Cursor, Restart, Run, RunKey, RunStatus
from wtwin_watch.protocols import Clock, SourceOptions

EXPERIMENTS_S = 300.0
"""Experiments that were found by name are looked up again after this long."""
_DUTY = 20.0
"""A server that gives whole histories is asked for this share of the time: one in so many."""
_MOST_TAGS = 20
_MOST_HELD = 16
_VERSION = 1
_STATUS = {status.name: status for status in RunStatus}


@dataclass(slots=True)
class _Held:
    """Rows that were read but not given yet, with the cursor they belong to."""

    cursor: Cursor
    tracks: dict[str, Track]
    streams: list[History] = field(default_factory=list)


class MlflowSource:
    """The runs of one server. Listing costs two searches, fetching what is new."""

    Options: ClassVar[type[SourceOptions]] = MlflowOptions
    interval_s: ClassVar[float] = 60.0
    extra: ClassVar[str | None] = None

    def __init__(self, name: str, options: MlflowOptions, clock: Clock = time) -> None:
        self._name = name
        self._options = options
        self._names = options.names
        self._clock = clock
        self._lock = threading.Lock()
        self._server: Server | None = None
        self._way: Way | None = None
        self._experiments: dict[str, str] = {}
        self._missing: tuple[str, ...] = ()
        self._look_up_at = -math.inf
        self._seen: dict[str, Seen] = {}
        self._held: dict[str, _Held] = {}

    # -- listing -----------------------------------------------------------------------------------

    def runs(self) -> Iterable[Run]:
        """List the runs that are running or ended within a day. Raises `SourceError`.

        An experiment that isn't there is listed as a run whose fetch says so, unless it is the only one.
        """
        server = self._connected()
        self._find_experiments(server)
        found = runs_of(server, self._experiments, self._options.filter, self._clock.time())
        try:
            runs = [self._run(server, run) for run in found.values()]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SourceError("the server lists runs in an unknown form; check uri") from error
        with self._lock:
            self._seen = {run: self._seen[run] for run in found}
        return runs + [Run(RunKey(self._name, missing_id(n)), n) for n in self._missing]

    def roots(self) -> Sequence[Path]:
        """A server has no folders."""
        return ()

    def close(self) -> None:
        """Let go of the connections."""
        if self._server is not None:
            self._server.close()

    def _connected(self) -> Server:
        with self._lock:
            if self._server is None:
                options = self._options
                password, token = (
                    secret.get_secret_value() if secret else None
                    for secret in (options.password, options.token)
                )
                who = login(options.uri, options.username, password, token)
                self._server = Server(who)
            return self._server

    def _find_experiments(self, server: Server) -> None:
        now = self._clock.monotonic()
        if self._options.experiments and not self._missing and now < self._look_up_at:
            return
        there = experiments_of(server)
        self._experiments, self._missing = choose(self._options.experiments, there)
        self._look_up_at = now + EXPERIMENTS_S
        if self._missing and not self._experiments:
            raise SourceError(no_experiment(self._missing, there.values()))

    def _run(self, server: Server, listed: Mapping[str, Any]) -> Run:
        info, data = listed["info"], listed.get("data", {})
        number, experiment = str(info["run_id"]), str(info["experiment_id"])
        tags = {str(tag["key"]): str(tag["value"]) for tag in data.get("tags", ())}
        status = _STATUS.get(str(info.get("status")), RunStatus.UNKNOWN)
        with self._lock:
            seen = self._seen.setdefault(number, Seen({}))
        seen.running = status is RunStatus.RUNNING
        seen.latest = self._latest(data)
        place = "ml/experiments" if self._way is Way.TOKENS else "#/experiments"
        return Run(
            RunKey(self._name, number),
            str(info.get("run_name") or tags.get("mlflow.runName") or number[:8]),
            project=self._experiments.get(experiment, experiment),
            status=status,
            url=f"{server.url}/{place}/{experiment}/runs/{number}",
            last_activity=seen.last_activity(info),
            version=seen.renew_version(status, self._clock.time(), self._clock.monotonic()),
            group=tags.get("mlflow.parentRunId"),
            tags=tuple(f"{k}={v}" for k, v in tags.items() if not k.startswith("mlflow."))[
                :_MOST_TAGS
            ],
        )

    def _latest(self, data: Mapping[str, Any]) -> dict[str, Fingerprint]:
        metrics = data.get("metrics", ())
        return {
            str(metric["key"]): fingerprint(metric)
            for metric in metrics
            if usable(str(metric["key"]), self._names)
        }

    # -- fetching ----------------------------------------------------------------------------------

    def fetch(self, run: Run, cursor: Cursor | None, limit: int) -> Batch:
        """Read on in the metrics of ``run``; see `wtwin_watch.protocols.Source.fetch`."""
        number = run.key.run
        if is_missing(number):
            raise SourceError(no_experiment(self._missing, self._experiments.values()))
        server = self._connected()
        seen = self._seen.get(number) or self._ask_for(server, number)
        restart = None
        if cursor is not None and cursor.get("v") != _VERSION:
            cursor, restart = None, Restart("the position was stored by another version")
        try:
            return self._read(server, number, seen, cursor, limit, restart)
        except Replaced:
            self._ask_for(server, number)  # says so where the run is gone
            self._held.pop(number, None)
            restart = Restart("its history on the server is another one now")
            return self._read(server, number, seen, None, limit, restart)

    def _ask_for(self, server: Server, number: str) -> Seen:
        try:
            listed = server.get(API + "runs/get", {"run_id": number})["run"]
        except Gone as error:
            raise SourceError(f"run {number} isn't on the server any more") from error
        except (KeyError, TypeError) as error:
            raise SourceError(
                f"the server's answer about run {number} has an unknown form"
            ) from error
        running = listed["info"].get("status") == "RUNNING"
        return self._seen.setdefault(number, Seen(self._latest(listed.get("data", {})), running))

    def _read(
        self,
        server: Server,
        number: str,
        seen: Seen,
        cursor: Cursor | None,
        limit: int,
        restart: Restart | None,
    ) -> Batch:
        started = self._clock.monotonic()
        held = self._held.pop(number, None)
        if held is None or held.cursor != cursor:
            stored: Mapping[str, Any] = cursor["metrics"] if cursor else {}
            tracks = {name: Track.load(form) for name, form in stored.items()}
            held = _Held({}, tracks, self._streams(server, number, seen, tracks, limit))
        merge = Merge(restart=restart)
        merge.read(held.streams, [track.course for track in held.tracks.values()], max(limit, 1))
        late = 0
        for stream in held.streams:
            late, stream.late = late + stream.late, 0
            if stream.read_out:
                stream.track.settled = stream.latest
        held.cursor = {
            "v": _VERSION,
            "metrics": {name: track.dump() for name, track in sorted(held.tracks.items())},
        }
        if merge.more and len(self._held) < _MOST_HELD:
            self._held[number] = held
        courses = [track.course for track in held.tracks.values()]
        seen.behind = any(course.behind for course in courses)
        times = [course.newest for course in courses if course.newest is not None]
        seen.newest = max(times) / 1000.0 if times else None
        if self._way is Way.WHOLE:
            now = self._clock.monotonic()
            seen.whole_again_at = max(seen.whole_again_at, now + _DUTY * (now - started))
        taken = max((course.taken for course in courses), default=0)
        counted = any(s.latest[1] == 0 and s.course.taken > 1 for s in held.streams)
        return Batch(
            merge.points,
            held.cursor,
            merge.more,
            merge.restart,
            {"logged too late": late} if late else {},
            f"point {taken}",
            ROW_NUMBER if counted else "step",
        )

    def _streams(
        self, server: Server, number: str, seen: Seen, tracks: dict[str, Track], limit: int
    ) -> list[History]:
        """The metrics that moved, and from time to time a loss that stands still but may have gone back."""
        probe = self._clock.monotonic() >= seen.probe_at
        if probe:
            seen.probe_at = self._clock.monotonic() + QUIET_S
        chosen = []
        for name, latest in sorted(seen.latest.items()):
            track = tracks.setdefault(name, Track())
            still = track.settled == latest and not track.course.behind
            if not still or (probe and is_loss(name, self._names)):
                chosen.append((name, track, latest, still))
        if not chosen:
            return []
        way = self._way_of(server, number, chosen[0][0])
        return [
            # A window shows nothing of steps before it, so what stands still is looked for by pages.
            History(server, Way.PAGES if still and way is Way.WINDOWS else way, number, name, track,
                    latest, limit)
            for name, track, latest, still in chosen
        ]  # fmt: skip

    def _way_of(self, server: Server, run: str, metric: str) -> Way:
        """Find out once how histories are read here."""
        if self._way is None:
            databricks = self._options.uri.startswith("databricks")
            self._way = Way.TOKENS if databricks else find_way(server, run, metric)
        return self._way or Way.WHOLE
