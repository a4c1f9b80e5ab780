"""Runs that the genuine ``wandb`` writes to disk, and real ones; each where it is at hand."""

import importlib.util
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.wandb_writer import shown
from wtwin_adapters.wandb_files import WandbFilesSource
from wtwin_watch.model import RunStatus
from wtwin_watch.testing import check_adapter, points_of, read_on

PATIENCE_S = 90.0
genuine = pytest.mark.skipif(
    importlib.util.find_spec("wandb") is None, reason="wandb is not installed"
)
CORPUS = os.environ.get("WTWIN_WATCH_CORPUS")
SAMPLES = Path(CORPUS or ".", "samples")
real = pytest.mark.skipif(not CORPUS, reason="WTWIN_WATCH_CORPUS doesn't name the corpus")

ROWS = """
import math, wandb
run = wandb.init(project="llm", name="brave", group="g", tags=["big"], id="abc", resume="allow")
for i in range(300):
    row = {"train": {"loss": 1 / (i + 1)}, "lr": 1e-3, "accuracy": i / 300, "note": "x" * (i % 50) * 40}
    if i % 50 == 7:
        row["val_loss"] = {0: math.nan, 1: math.inf, 2: -math.inf}.get(i // 50 % 3)
        row["histogram"] = wandb.Histogram([1, 2, 3])
    run.log(row, step=i if i < 200 else 1000 + i)
"""


def wrote(folder, code, **environ):
    """Start a process that logs with wandb to ``folder``."""
    own = {"WANDB_MODE": "offline", "WANDB_DIR": str(folder), "WANDB_SILENT": "true"}
    quiet = {"WANDB_ERROR_REPORTING": "false", "WANDB_CACHE_DIR": str(folder / "cache")}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **own, **quiet, **environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def source(path):
    return WandbFilesSource("w", WandbFilesSource.Options(path=path))


def expected_rows():
    rows = []
    for i in range(300):
        step = float(i if i < 200 else 1000 + i)
        rows += [("lr", step, "0.001"), ("train.loss", step, repr(1 / (i + 1)))]
        if i % 50 == 7:
            value = {0: math.nan, 1: math.inf, 2: -math.inf}[i // 50 % 3]
            rows.append(("val_loss", step, repr(value)))
    return rows


@genuine
@pytest.mark.parametrize("encoding", ["json", "json,typed"])
def test_what_wandb_logs_offline_is_read(tmp_path, encoding):
    done = wrote(tmp_path, ROWS, WANDB_X_HISTORY_VALUE_ENCODING=encoding).wait(PATIENCE_S)
    assert done == 0

    opened = source(tmp_path)
    (run,) = opened.runs()
    points = points_of(read_on(opened, run))

    assert shown(points) == expected_rows()
    assert all(p.wall_time is not None for p in points)
    assert (run.name, run.project, run.group, run.tags) == ("brave", "llm", "g", ("big",))
    assert (run.status, run.exit_code) == (RunStatus.FINISHED, 0)


@genuine
def test_a_script_that_fails_is_a_failed_run_with_its_last_words(tmp_path):
    code = "import wandb; wandb.init(); print('before', flush=True); raise ValueError('boom')"
    wrote(tmp_path, code).wait(PATIENCE_S)

    opened = source(tmp_path)
    (run,) = opened.runs()

    assert (run.status, run.exit_code) == (RunStatus.FAILED, 1)
    assert opened.last_lines(run, 1) == ["ValueError: boom"]


@genuine
def test_rows_are_read_while_wandb_writes_them_and_after_it_was_killed(tmp_path):
    code = """
import time, wandb
run = wandb.init(id="abc")
for i in range(100_000):
    run.log({"loss": 1 / (i + 1), "pad": "x" * 200})
    time.sleep(0.0005)
"""
    process = wrote(tmp_path, code)
    try:
        opened, cursor, found, looks_with_points = None, None, [], 0
        deadline = time.monotonic() + PATIENCE_S
        while looks_with_points < 3:
            assert time.monotonic() < deadline, f"{len(found)} points so far"
            time.sleep(0.05)
            if opened is None and any(tmp_path.rglob("*.wandb")):
                opened = source(tmp_path)
            runs = list(opened.runs()) if opened else []
            if opened and runs:
                batches = read_on(opened, runs[0], cursor)
                cursor = batches[-1].cursor
                new = points_of(batches)
                found += new
                looks_with_points += bool(new)
                assert runs[0].status is RunStatus.RUNNING
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert opened is not None
    # The writer is a process of its own, which ends when its client is gone.
    (path,) = tmp_path.rglob("*.wandb")
    size = -1
    while size != (size := path.stat().st_size):
        time.sleep(1.0)
    (run,) = opened.runs()
    found += points_of(read_on(opened, run, cursor))

    assert [p.step for p in found] == [float(i) for i in range(len(found))]
    assert [p.value for p in found] == [1 / (i + 1) for i in range(len(found))]
    assert points_of(read_on(opened, run)) == found


@real
def test_real_files_of_wandb_hold_what_is_known_of_them():
    opened = source(SAMPLES)
    runs = {run.key.run: run for run in opened.runs()}
    points = {id_: points_of(read_on(opened, run)) for id_, run in runs.items()}
    losses = {
        id_: [p for p in found if p.metric.lower().endswith("loss") and "val" not in p.metric]
        for id_, found in points.items()
    }

    assert Counter({id_: len(found) for id_, found in losses.items()}) == {
        "3ojed7lz": 861,
        "made/wandb_offline/small": 200 + 60,
        "made/wandb_offline/resumed": 50 + 50,
        "made/wandb_offline/killedsmall": 700,
    }
    assert runs["3ojed7lz"].name == "First try"
    assert losses["3ojed7lz"][0].metric == "Training/loss"
    assert runs["made/wandb_offline/resumed"].status is RunStatus.FINISHED
    assert not runs["made/wandb_offline/killedsmall"].status.ended


@real
def test_real_files_of_wandb_keep_the_contract():
    folder = SAMPLES / "made/wandb_offline"

    points = check_adapter(lambda: source(folder), limits=(97, 10_000))

    assert set(points) == {"small", "resumed", "killedsmall"}
