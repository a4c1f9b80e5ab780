"""Searching an MLflow server for its experiments and runs, page by page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wtwin_adapters.mlflow_http import Server
from wtwin_watch.errors import SourceError

API = "/api/2.0/mlflow/"
"""Where a server's methods are."""
PAGE = 500
"""Runs a request, at some 5 kB each."""
RECENT_S = 86_400.0
"""A run that ended longer ago isn't listed any more."""
_MOST_PAGES = 1000


def experiments_of(server: Server) -> dict[str, str]:
    """The active experiments: names by ids. Raises `SourceError`."""
    listed = _paged(server, "experiments/search", "experiments", {})
    try:
        return {str(e["experiment_id"]): str(e["name"]) for e in listed}
    except (AttributeError, KeyError, TypeError) as error:
        raise _unknown("experiments/search") from error


def runs_of(
    server: Server, experiments: Iterable[str], own_filter: str | None, now: float
) -> dict[str, Mapping[str, Any]]:
    """The runs that are running or ended within a day, as the server lists them, by ids.

    ``own_filter`` is the user's, ``now`` unix seconds. Raises `SourceError`.
    """
    ids = list(experiments)
    found: dict[str, Mapping[str, Any]] = {}
    ended = f"attributes.end_time > {int((now - RECENT_S) * 1000)}"
    for condition in ("attributes.status = 'RUNNING'", ended) if ids else ():
        body = {
            "experiment_ids": ids,
            "filter": f"{own_filter} and {condition}" if own_filter else condition,
            "run_view_type": "ACTIVE_ONLY",
            "order_by": ["attributes.start_time ASC"],
        }
        try:
            for run in _paged(server, "runs/search", "runs", body):
                found[str(run["info"]["run_id"])] = run
        except (AttributeError, KeyError, TypeError) as error:
            raise _unknown("runs/search") from error
    return found


def _paged(
    server: Server, path: str, what: str, body: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """All of a search. A page may repeat what another had, where something began or ended meanwhile."""
    token: str | None = None
    for _ in range(_MOST_PAGES):
        page = {"page_token": token} if token else {}
        answer = server.post(API + path, {**body, "max_results": PAGE, **page})
        yield from answer.get(what, ())
        following = answer.get("next_page_token") or None
        if following is None:
            return
        if following == token:
            raise SourceError(f"the server's list of {what} doesn't come to an end")
        token = following
    raise SourceError(f"more than {_MOST_PAGES * PAGE} {what}; narrow experiments or filter")


def _unknown(path: str) -> SourceError:
    return SourceError(f"the server's answer to {path} has an unknown form; check uri")
