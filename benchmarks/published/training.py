"""Train what is missing of the set; stopped at any time, it goes on where it was."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

from benchmarks.published.experiments import ONSET, Experiment, missing


def train_missing(
    experiments: list[Experiment], logs: Path, work: Path, settings: dict[str, object] | None = None
) -> None:
    """Train the experiments whose log isn't in ``logs``; checkpoints and unfinished logs are in ``work``.

    A seed is trained healthy to the onset once, and every run of that seed is forked from there.
    ``settings`` replace those of ``examples/train_real.py``. Exits where PyTorch is missing.
    """
    from examples.train_real import FAILURE, Settings, Training, screen, train

    work.mkdir(parents=True, exist_ok=True)
    todo = missing(logs, experiments)
    onset = int(str((settings or {}).get("failure_step", ONSET)))
    for number, one in enumerate(todo, 1):
        print(f"{one.name}, {number} of {len(todo)} that are missing", file=sys.stderr, flush=True)
        healthy = work / f"healthy_seed{one.seed}.pt"
        common = {"failure_step": onset, **(settings or {}), "seed": one.seed}
        training = Training.load(healthy) if healthy.exists() else Training(Settings(**common))
        if training.step < onset:
            train(training, healthy.with_suffix(".csv"), onset, healthy, screen())
        unfinished = work / f"{one.name}.pt"
        if unfinished.exists():
            training = Training.load(unfinished)
        else:
            failing = Settings(**{**common, "mode": one.mode, "ramp_profile": one.profile})
            training = Training.load(healthy, {name: getattr(failing, name) for name in FAILURE})
        log = work / f"{one.name}.csv"
        train(training, log, min(one.stop_at, training.settings.steps), unfinished, screen())
        compress(log, logs / f"{one.name}.csv.gz")
        unfinished.unlink()


def compress(log: Path, to: Path) -> None:
    """Move a log into a compressed file, which is the same for the same log."""
    part = to.with_suffix(".part")
    with part.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(log.read_bytes())
    os.replace(part, to)
    log.unlink()
