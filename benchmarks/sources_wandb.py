"""What 100 new rows of a long live W&B run cost, beside the client's own ``scan_history``.

Both ask the same server on loopback, a stand-in that keeps 100,000 rows, for the rows after the last one
that is known. It answers at once, so that what is measured is how much is asked for and how it is read.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import wandb

from benchmarks.report import Measure
from tests.support.wandb_standin import ENTITY, KEY, PROJECT, WandbStandIn
from wtwin_adapters.wandb_api import WandbSource
from wtwin_adapters.wandb_api_options import WandbOptions

ROWS, NEW = 100_000, 100


def measure(quick: bool) -> Iterator[Measure]:
    """Yield the ratio of the two; ``quick``: fewer rounds."""
    with (
        tempfile.TemporaryDirectory() as folder,
        WandbStandIn() as server,
        _client_at(server, folder),
    ):
        server.log("long", ({"loss": 2.0, "lr": 1e-3, "acc": 0.5} for _ in range(ROWS)))
        given = {"project": f"{ENTITY}/{PROJECT}", "base_url": server.url}
        source = WandbSource("wandb", WandbOptions(**given, requests_per_minute=1e6))
        try:
            ratios = list(_rounds(source, server, 3 if quick else 9))
        finally:
            source.close()
            wandb.teardown()
    yield Measure(
        f"{NEW} new rows of a live run of {ROWS:,} ÷ scan_history(min_step)",
        median(ratios),
        at_most=1 / 5,
        note=f"median of {len(ratios)}; aim 1/20",
    )


def _rounds(source: WandbSource, server: WandbStandIn, count: int) -> Iterator[float]:
    (run,) = source.runs()
    cursor, more = None, True
    while more:
        batch = source.fetch(run, cursor, 50_000)
        cursor, more = batch.cursor, batch.more
    known = ROWS
    for _ in range(count):
        server.log("long", ({"loss": 1.0, "lr": 1e-3, "acc": 0.5} for _ in range(NEW)))
        started = time.perf_counter()
        batch = source.fetch(run, cursor, 5_000)
        ours = time.perf_counter() - started
        cursor = batch.cursor
        # The run is fetched anew, as who polls has to: the client keeps what it knows of one.
        client = wandb.Api(timeout=60)
        started = time.perf_counter()
        found = client.run(f"{ENTITY}/{PROJECT}/long")
        rows = list(found.scan_history(min_step=known, page_size=NEW, use_cache=False))
        theirs = time.perf_counter() - started
        losses = sum(point.metric == "loss" for point in batch.points)
        if losses != NEW or len(rows) != NEW:
            raise AssertionError(f"{NEW} rows are new; read {losses} and {len(rows)}")
        known += NEW
        yield ours / theirs


@contextmanager
def _client_at(server: WandbStandIn, folder: str) -> Iterator[None]:
    """Let the genuine client know the server and nothing else, and write into ``folder``."""
    before = dict(os.environ)
    places = dict.fromkeys(("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "HOME"), folder)
    os.environ.update(places, WANDB_BASE_URL=server.url, WANDB_API_KEY=KEY)
    os.environ.update(WANDB_SILENT="true", WANDB_ERROR_REPORTING="false")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
