"""New points of a long MLflow metric, beside MLflow's own client, on a real server on loopback.

The history of a million points is written into the server's database by SQL, since logging it would take
an hour. Both sides ask the same server: the client gives the whole history, which is the only way it has.
"""

from __future__ import annotations

import math
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from benchmarks.report import Measure, Skipped
from tests.support.mlflow_server import NOW_MS, MlflowJob, MlflowServer, environ
from wtwin_adapters.mlflow_server import MlflowSource

NAME = "MLflow: 100 new points of 1,000,000 ÷ get_metric_history"
POINTS = 1_000_000
NEW = 100
POLLS = 20

_CLIENT = """
import sys, time
from mlflow import MlflowClient
client = MlflowClient(sys.argv[1])
client.get_run(sys.argv[2])
started = time.perf_counter()
rows = client.get_metric_history(sys.argv[2], "loss")
print(time.perf_counter() - started, len(rows))
"""


def measure(quick: bool) -> Iterator[Measure | Skipped]:
    """Measure polls of a run that logs on; the client once, so not in quick runs."""
    if quick:
        yield Skipped(NAME, "MLflow's client takes minutes; measured without --quick")
        return
    version("mlflow")  # raises ImportError where it isn't installed, which skips this part
    with (
        tempfile.TemporaryDirectory(prefix="wtwin-watch-mlflow-") as folder,
        MlflowServer(Path(folder)) as server,
        MlflowJob(server.uri, Path(folder)) as job,
    ):
        yield _measured(server, job)


def _measured(server: MlflowServer, job: MlflowJob) -> Measure:
    number = job.run(job.experiment("long"))
    _fill(server.database, number)
    # The latest row is kept apart by the server, so the last point goes through it.
    _log(job, number, POINTS - 1, 1)
    options = MlflowSource.Options.model_validate({"uri": server.uri, "experiments": "long"})
    source = MlflowSource("mlflow", options)
    try:
        [run] = source.runs()
        started = time.perf_counter()
        cursor, read, more = None, 0, True
        while more:
            batch = source.fetch(run, cursor, 5000)
            cursor, read, more = batch.cursor, read + len(batch.points), batch.more
        first_s = time.perf_counter() - started
        _expect(read, POINTS)
        looks, polls = [], []
        for poll in range(POLLS):
            _log(job, number, POINTS + NEW * poll, NEW)
            started = time.perf_counter()
            [run] = source.runs()
            seen = time.perf_counter()
            batch = source.fetch(run, cursor, 5000)
            looks.append(seen - started)
            polls.append(time.perf_counter() - seen)
            cursor = batch.cursor
            _expect(len(batch.points), NEW)
    finally:
        source.close()
    theirs_s = _client(server.uri, number, POINTS + NEW * POLLS)
    ours_s = statistics.median(polls)
    return Measure(
        NAME,
        ours_s / theirs_s,
        at_most=1e-3,
        note=f"aim 1/5,000; a fetch {ours_s * 1e3:.1f} ms, the look before it"
        f" {statistics.median(looks) * 1e3:.1f} ms, the client {theirs_s:.1f} s;"
        f" all of it at first sight {first_s:.1f} s",
    )


def _fill(database: Path, run: str) -> None:
    rows = (
        ("loss", 2.0 + math.exp(-step / 1e5), NOW_MS + step * 100, step, 0, run)
        for step in range(POINTS - 1)
    )
    with closing(sqlite3.connect(database, timeout=60)) as connection, connection:
        connection.executemany(
            "INSERT INTO metrics (key, value, timestamp, step, is_nan, run_uuid)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )


def _log(job: MlflowJob, run: str, first: int, count: int) -> None:
    job.log(run, [2.0] * count, first=first, at=NOW_MS + first * 100, each_ms=100)


def _client(uri: str, run: str, points: int) -> float:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _CLIENT, uri, run],
        env=environ(HOME=os.devnull),
        capture_output=True,
        text=True,
        check=True,
    )
    took_s, rows = done.stdout.split()
    _expect(int(rows), points)
    return float(took_s)


def _expect(found: int, expected: int) -> None:
    if found != expected:
        raise RuntimeError(f"{found} points were read where {expected} were logged")
