"""How the histories of an MLflow server are read: what its version allows."""

from __future__ import annotations

import re
from enum import Enum

from wtwin_adapters.mlflow_http import Gone, Server
from wtwin_adapters.mlflow_search import API


class Way(Enum):
    """How a server's histories are read; `wtwin_adapters.mlflow_history` says what each costs."""

    WINDOWS = "windows"
    PAGES = "pages"
    WHOLE = "whole"
    TOKENS = "tokens"


def way_of(version: str) -> Way | None:
    """How histories of a server of this version are read; None if it is no version."""
    numbers = re.match(r"\s*(\d+)\.(\d+)", version)
    if numbers is None:
        return None
    release = int(numbers[1]), int(numbers[2])
    return Way.WINDOWS if release >= (3, 12) else Way.PAGES if release >= (3, 4) else Way.WHOLE


def find_way(server: Server, run: str, metric: str) -> Way | None:
    """Find out how this server's histories are read, by its version or by asking for one row.

    None where a history of so few rows doesn't tell. Raises `SourceError`.
    """
    try:
        way = way_of(server.text("/version"))
    except Gone:
        way = None
    if way is not None:
        return way
    query = {"run_id": run, "metric_key": metric, "max_results": 1}
    answer = server.get(API + "metrics/get-history", query)
    if len(answer.get("metrics", ())) > 1:
        return Way.WHOLE
    return Way.PAGES if answer.get("next_page_token") else None
