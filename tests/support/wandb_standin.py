"""A stand-in for a W&B server on loopback that the genuine ``wandb`` writes to and reads from.

It keeps what ``wandb.init`` … ``finish`` send, and answers what ``wandb.Api`` asks. A test may also log
rows by itself (`WandbStandIn.log`), rewind, export and delete runs. A `Fault` whose ``path`` is the name
of a GraphQL operation spoils that operation alone.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import socket
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from tests.support.faulty_http import Answer, Request, StandIn

KEY = "k" * 40
ENTITY, PROJECT = "myteam", "llm"
_STREAM = re.compile(r"/files/([^/]+)/([^/]+)/([^/]+)/file_stream")
_OPERATION = re.compile(r"\b(?:query|mutation)\s+(\w+)")


def iso(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Asked:
    """One GraphQL request."""

    operation: str
    query: str
    variables: Mapping[str, Any]
    agent: str


@dataclass
class KeptRun:
    """A run as the server keeps it. ``lines`` are its rows of history as they came, JSON each."""

    entity: str
    project: str
    name: str
    id: str
    displayName: str
    state: str = "running"
    createdAt: str = ""
    heartbeatAt: str = ""
    tags: list[str] = field(default_factory=list)
    group: str | None = None
    sweepName: str | None = None
    summary: str = "{}"
    config: str = "{}"
    lines: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    live_from: int = 0
    """Rows from this index on are not exported."""
    exports: dict[str, bytes] = field(default_factory=dict)

    def add(self, lines: Iterable[str], offset: int | None = None) -> None:
        if offset is not None:
            self.cut(offset)
        for line in lines:
            row = json.loads(line)
            self.lines.append(line)
            self.rows.append(row)
            self.steps.append(row.get("_step", -1))
        self.heartbeatAt = iso(time.time())

    def cut(self, count: int) -> None:
        """Keep the first ``count`` rows."""
        del self.lines[count:], self.rows[count:], self.steps[count:]

    @property
    def last_step(self) -> int:
        return int(self.steps[-1]) if self.steps else -1

    def live(self, low: float, high: float) -> range:
        """The indexes of the live rows with ``low <= _step < high``."""
        first = max(self.live_from, bisect_left(self.steps, low))
        return range(first, max(first, bisect_left(self.steps, high)))

    def history_keys(self) -> dict[str, Any]:
        keys = {key for row in self.rows[-1_000:] for key in row}
        known = {key: {"typeCounts": [{"type": "number", "count": 1}]} for key in sorted(keys)}
        return {"lastStep": self.last_step, "sets": [], "keys": known}


class WandbStandIn(StandIn):
    """The server: `url` is its base URL, `key` the key it takes."""

    def __init__(self, *, port: int = 0) -> None:
        super().__init__(port=port)
        self.key = KEY
        self.projects = {(ENTITY, PROJECT)}
        self.runs: dict[tuple[str, str, str], KeptRun] = {}
        self.asked: list[Asked] = []
        self.alerts: list[Mapping[str, Any]] = []
        self.headers: dict[str, str] = {}
        """Sent with every GraphQL answer."""

    # -- what a test does ------------------------------------------------------------------------

    def run(self, name: str, **facts: Any) -> KeptRun:
        """The run of that id in the usual project; made if it isn't there."""
        with self._lock:
            return self._run(ENTITY, PROJECT, name, **facts)

    def log(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows to a run's history, with ``_step`` where they don't say it."""
        with self._lock:
            run = self._run(ENTITY, PROJECT, name)
            step = run.last_step
            lines = []
            for row in rows:
                step = row.get("_step", step + 1)
                lines.append(json.dumps({"_step": step, "_timestamp": time.time(), **row}))
            run.add(lines)

    def rewind(self, name: str, last_step: int) -> None:
        """Take away the rows after ``last_step``."""
        with self._lock:
            run = self.run(name)
            run.cut(bisect_left(run.steps, last_step + 1))
            run.heartbeatAt = iso(time.time())

    def export(self, name: str, below: float = float("inf")) -> None:
        """Move the rows below a step to an export file, as the server does hours after a run's end."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self._lock:
            run = self.run(name)
            end = bisect_left(run.steps, below)
            out = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(run.rows[run.live_from : end]), out)
            run.exports[f"/exports/{name}/{len(run.exports)}.parquet"] = out.getvalue()
            run.live_from = end

    def delete(self, name: str) -> None:
        with self._lock:
            del self.runs[ENTITY, PROJECT, name]

    def count(self, operation: str) -> int:
        """How often an operation was asked for."""
        return sum(asked.operation == operation for asked in self.asked)

    # -- what the server does --------------------------------------------------------------------

    def handle(self, request: Request, connection: socket.socket) -> bytes | None:
        if request.headers.get("content-encoding") == "gzip":
            request = replace(request, raw=gzip.decompress(request.raw))
        if request.path.endswith("/graphql"):
            body = request.json() or {}
            named = _OPERATION.search(body.get("query", ""))
            request = replace(request, path=f"{request.path}#{named[1] if named else ''}")
        return super().handle(request, connection)

    def answer(self, request: Request) -> Answer:
        path, _, operation = request.path.partition("#")
        if path.startswith("/exports/"):
            return self._export_file(path)
        stream = _STREAM.fullmatch(path)
        if stream is not None:
            return _json(self._stream(self._run(*stream.groups()), request.json()))
        if path != "/graphql":
            return _json({})
        if not request.headers.get("authorization", "").startswith("Basic "):
            return _json({"errors": [{"message": "user is not logged in"}]}, 401)
        body = request.json()
        variables = body.get("variables") or {}
        agent = request.headers.get("user-agent", "")
        self.asked.append(Asked(operation, body["query"], variables, agent))
        answer = _json(self._graphql(operation, variables, body["query"]))
        return replace(answer, headers=self.headers)

    def _run(self, entity: str, project: str, name: str, **facts: Any) -> KeptRun:
        key = (entity, project, name)
        if key not in self.runs:
            self.projects.add((entity, project))
            now = iso(time.time())
            made = {"displayName": name, "createdAt": now, "heartbeatAt": now, **facts}
            self.runs[key] = KeptRun(*key, id=f"UnVu{len(self.runs)}", **made)
        else:
            for fact, value in facts.items():
                setattr(self.runs[key], fact, value)
        return self.runs[key]

    def _stream(self, run: KeptRun, body: Mapping[str, Any]) -> Mapping[str, Any]:
        for name, piece in (body.get("files") or {}).items():
            if name == "wandb-history.jsonl":
                run.add(piece["content"], piece["offset"])
            elif name == "wandb-summary.json" and piece["content"]:
                run.summary = piece["content"][-1]
        if body.get("complete"):
            run.state = "finished" if body.get("exitcode") == 0 else "failed"
        return {"limits": {}}

    def _graphql(self, operation: str, given: Mapping[str, Any], query: str) -> Mapping[str, Any]:
        entity = given.get("entity") or given.get("entityName")
        project = given.get("project") or given.get("projectName")
        if operation in ("Viewer", "GetDefaultEntity"):
            viewer = {"id": "VXNlcjox", "username": "u", "name": "u", "email": "u@example.com"}
            return _data(viewer={**viewer, "flags": "{}", "entity": ENTITY, "teams": {"edges": []}})
        if operation == "UpsertBucket":
            return self._upsert(given)
        if operation == "CreateRunFiles":
            files = [{"name": name, "uploadUrl": f"{self.url}/upload"} for name in given["files"]]
            return _data(createRunFiles={"runID": "x", "uploadHeaders": [], "files": files})
        if operation == "NotifyScriptableRunAlert":
            self.alerts.append(given)
            return _data(notifyScriptableRunAlert={"success": True})
        if (entity, project) not in self.projects:
            return _data(project=None, model=None)
        if operation == "Runs":
            return self._runs(str(entity), str(project), given)
        name = given.get("name") or given.get("run") or given.get("runName")
        run = self.runs.get((str(entity), str(project), str(name)))
        if operation == "RunResumeStatus":
            return _data(model=self._resume(str(entity), str(project), run))
        if run is None:
            return _data(project={"run": None})
        return self._of_run(run, operation, given, query)

    def _of_run(
        self, run: KeptRun, operation: str, given: Mapping[str, Any], query: str
    ) -> Mapping[str, Any]:
        found: dict[str, Any]
        if operation == "Run":
            found = self._node(run, full=True)
        elif operation == "RunHistoryKeys":
            found = {"historyKeys": run.history_keys()}
        elif operation == "RunStoppedStatus":
            found = {"stopped": False}
        elif operation == "RunParquetHistory":
            found = {"parquetHistory": self._exports(run)}
        elif operation == "HistoryPage":
            live = run.live(given["minStep"], given["maxStep"])
            lines = [run.lines[index] for index in live]
            found = {"history": _sampled(lines, given["pageSize"])}
        elif operation in ("SampledHistoryPage", "RunSampledHistory"):
            specs = [given["spec"]] if "spec" in given else given["specs"]
            found = {"sampledHistory": [_sampled_keys(run, json.loads(spec)) for spec in specs]}
        elif operation == "RunFullHistory":
            found = {"history": _sampled(run.lines, given.get("samples") or 500), "events": []}
        else:
            return {"errors": [{"message": f"unknown operation {operation!r}"}]}
        # What is asked for beside it is given too, as GraphQL has it.
        for name, value in (
            ("createdAt", run.createdAt),
            ("historyKeys", run.history_keys() if "historyKeys" in query else None),
            ("parquetHistory", self._exports(run) if "parquetHistory" in query else None),
        ):
            if re.search(rf"\b{name}\b", query):
                found.setdefault(name, value)
        return _data(project={"run": found})

    def _exports(self, run: KeptRun) -> Mapping[str, Any]:
        live = [{"_step": float(step)} for step in run.steps[run.live_from :]]
        return {"parquetUrls": [self.url + path for path in run.exports], "liveData": live}

    def _export_file(self, path: str) -> Answer:
        for run in self.runs.values():
            if path in run.exports:
                return Answer(200, run.exports[path], "application/octet-stream")
        return Answer(404)

    def _upsert(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        if given.get("name"):
            run = self._run(given["entity"] or ENTITY, given["project"], given["name"])
        else:
            run = next(run for run in self.runs.values() if run.id == given["id"])
        for fact, name in (
            ("displayName", "displayName"),
            ("config", "config"),
            ("state", "state"),
            ("tags", "tags"),
            ("group", "groupName"),
        ):
            if given.get(name):
                setattr(run, fact, given[name])
        where = {"id": "p", "name": run.project, "entity": {"id": "e", "name": run.entity}}
        bucket = {**self._node(run, full=True), "project": where}
        return _data(upsertBucket={"bucket": bucket, "inserted": True})

    def _resume(self, entity: str, project: str, run: KeptRun | None) -> Mapping[str, Any]:
        bucket = None
        if run is not None:
            tail = run.lines[-1:] or ["{}"]
            bucket = {
                **self._node(run, full=True),
                "historyTail": json.dumps(tail),
                "eventsTail": "[]",
                "logLineCount": 0,
                "eventsLineCount": 0,
                "wandbConfig": "{}",
            }
        return {"id": "p", "name": project, "entity": {"id": "e", "name": entity}, "bucket": bucket}

    def _runs(self, entity: str, project: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        asked = json.loads(given.get("filters") or "{}")
        found = [
            run
            for run in self.runs.values()
            if (run.entity, run.project) == (entity, project) and _matches(run, asked)
        ]
        first, size = int(given.get("cursor") or 0), given.get("perPage") or 50
        page = found[first : first + size]
        edges = [
            {"node": self._node(run), "cursor": str(first + n)} for n, run in enumerate(page, 1)
        ]
        info = {"endCursor": str(first + len(page)), "hasNextPage": first + size < len(found)}
        runs = {"edges": edges, "pageInfo": info}
        return _data(
            project={"internalId": "1", "runCount": len(found), "readOnly": False, "runs": runs}
        )

    def _node(self, run: KeptRun, full: bool = False) -> dict[str, Any]:
        node: dict[str, Any] = {
            **{name: getattr(run, name) for name in ("id", "name", "displayName", "state")},
            **{name: getattr(run, name) for name in ("createdAt", "heartbeatAt", "tags", "group")},
            **{"projectId": "1", "sweepName": run.sweepName, "commit": None, "readOnly": False},
            **{"description": None, "notes": None, "jobType": None},
            "historyLineCount": len(run.lines),
            "user": {"name": "u", "username": "u"},
        }
        if full:
            node |= {"config": run.config, "summaryMetrics": run.summary, "systemMetrics": "{}"}
            node["historyKeys"] = run.history_keys()
        return node


def _json(value: Mapping[str, Any], status: int = 200) -> Answer:
    return Answer(status, json.dumps(value, allow_nan=False).encode())


def _data(**data: Any) -> Mapping[str, Any]:
    return {"data": data}


def _sampled(rows: list[Any], samples: int) -> list[Any]:
    if len(rows) <= samples:
        return rows
    return [rows[index * len(rows) // samples] for index in range(samples)]


def _sampled_keys(run: KeptRun, spec: Mapping[str, Any]) -> list[Any]:
    # Here the last step is included, and a NaN has to be a text.
    live = run.live(spec.get("minStep", 0), spec.get("maxStep", 1 << 62) + 1)
    rows = [run.rows[index] for index in live if all(k in run.rows[index] for k in spec["keys"])]
    return _sampled(
        [{key: _spelt(row[key]) for key in spec["keys"]} for row in rows], spec["samples"]
    )


def _spelt(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_FIELDS = {"heartbeat_at": "heartbeatAt", "sweep": "sweepName"}


def _matches(run: KeptRun, asked: Mapping[str, Any]) -> bool:
    """Whether a run is what a filter in the form of MongoDB asks for, as far as it is used here."""
    for name, wanted in asked.items():
        if name == "$and":
            good = all(_matches(run, part) for part in wanted)
        elif name == "$or":
            good = any(_matches(run, part) for part in wanted)
        else:
            value = getattr(run, _FIELDS.get(name, name))
            if not isinstance(wanted, dict):
                good = value == wanted
            elif "$in" in wanted:
                values = value if isinstance(value, list) else [value]
                good = not set(values).isdisjoint(wanted["$in"])
            else:
                good = value > wanted["$gt"]
        if not good:
            return False
    return True
