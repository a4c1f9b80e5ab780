"""The questions that are asked about a run's history, and what is understood of the answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from wtwin_adapters.wandb_api_http import BadShape, GraphQL
from wtwin_adapters.wandb_api_rows import Row, rows_of
from wtwin_watch.errors import SourceError

_HEAD = """
query RunHistoryKeys($entity: String!, $project: String!, $run: String!) {
  project(name: $project, entityName: $entity) {
    run(name: $run) { createdAt historyKeys parquetHistory(liveKeys: ["_step"]) { parquetUrls } }
  }
}"""
_PAGE = """
query HistoryPage(
  $entity: String!, $project: String!, $run: String!
  $minStep: Int64!, $maxStep: Int64!, $pageSize: Int!
) {
  project(name: $project, entityName: $entity) {
    run(name: $run) {
      createdAt
      historyKeys
      history(minStep: $minStep, maxStep: $maxStep, samples: $pageSize)
    }
  }
}"""


@dataclass(frozen=True, slots=True)
class RunPath:
    """Where a run is at W&B."""

    entity: str
    project: str
    run: str

    @classmethod
    def of(cls, key: str) -> RunPath:
        """Read ``entity/project/run``."""
        return cls(*key.split("/", 2))

    @property
    def in_project(self) -> str:
        """Its project, ``entity/project``."""
        return f"{self.entity}/{self.project}"


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of a run's history without reading it."""

    created: str
    last_step: int
    """-1 where nothing is logged yet."""
    keys: tuple[str, ...]
    exported: bool = False
    """Part of the history lies in export files, which only the client reads."""


@dataclass(frozen=True, slots=True)
class Page:
    """The rows of a range of steps that are not exported."""

    head: Head
    rows: list[Row]


def ask_head(graphql: GraphQL, path: RunPath) -> Head:
    """Ask for a run's `Head`: one request. Raises as `GraphQL.ask` does, and `SourceError` if it is gone."""
    run = _run(path, graphql.ask("RunHistoryKeys", _HEAD, _named(path)))
    exports = run.get("parquetHistory")
    urls = exports.get("parquetUrls") if isinstance(exports, dict) else None
    if not isinstance(urls, list):
        raise BadShape("parquetHistory")
    return _head(run, exported=bool(urls))


def ask_page(
    graphql: GraphQL, path: RunPath, min_step: int, width: int, skipped: Counter[str]
) -> Page:
    """Ask for the rows with ``min_step <= _step < min_step + width``: one request.

    The width is also the most rows that are asked for, because a server picks a sample where there are more.
    """
    bounds = {"minStep": min_step, "maxStep": min_step + width, "pageSize": width}
    run = _run(path, graphql.ask("HistoryPage", _PAGE, {**_named(path), **bounds}))
    lines = run.get("history")
    if not isinstance(lines, list):
        raise BadShape("history")
    return Page(_head(run), rows_of([_parsed(line) for line in lines], skipped))


def _named(path: RunPath) -> dict[str, Any]:
    return {"entity": path.entity, "project": path.project, "run": path.run}


def _run(path: RunPath, data: Mapping[str, Any]) -> Mapping[str, Any]:
    project = data.get("project", data)
    if project is None:
        raise no_project(path.in_project)
    run = project.get("run", project) if isinstance(project, dict) else project
    if run is None:
        raise SourceError(
            f"the run {path.run} is no longer in {path.in_project}: it was deleted or moved"
        )
    if not isinstance(run, dict) or run is project:
        raise BadShape("run")
    return run


def no_project(project: str) -> SourceError:
    """Say that a project is not to be seen."""
    return SourceError(
        f"W&B shows no project {project}: check its spelling, and whether the key may read it"
    )


def _head(run: Mapping[str, Any], exported: bool = False) -> Head:
    known = run.get("historyKeys")
    if isinstance(known, str):
        known = json.loads(known)
    if known is None:  # a run that has logged nothing
        known = {"lastStep": -1}
    if not isinstance(known, dict):
        raise BadShape("historyKeys")
    last, keys = known.get("lastStep"), known.get("keys") or {}
    if not isinstance(last, int | float) or isinstance(last, bool) or not isinstance(keys, dict):
        raise BadShape("historyKeys")
    return Head(str(run.get("createdAt")), int(last), tuple(keys), exported)


def _parsed(line: Any) -> Any:
    if not isinstance(line, str):
        return line
    try:
        return orjson.loads(line)
    except ValueError:
        pass
    try:
        return json.loads(line)  # the writer spells NaN and Infinity bare
    except ValueError:
        return None
