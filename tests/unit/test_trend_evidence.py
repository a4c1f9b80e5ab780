"""The evidence against values computed by another program, on real logs."""

import csv
import gzip
import json
import math
import os
from pathlib import Path

import pytest

from wtwin_watch.monitor.evidence import SWITCH, Evidence
from wtwin_watch.monitor.pace import Pace

SHARED = os.environ.get("WTWIN_WATCH_CORPUS")
LOGS = (
    "nanogpt/none_seed42",
    "runs/improved-diffusion_logs.csv",
    "runs/megatron-golden_deepseekv3_proxy_flex_tp2pp2emp16etp1cp1_gb_200_release_sm_dev_dgx_gb200.csv",
    "runs/megatron-golden_gpt3_15b_8t_release_sm_dev_dgx_h100.csv",
    "runs/megatron-golden_gpt3_15b_8t_release_sm_gb200_dev_dgx_gb200.csv",
    "runs/megatron-golden_gpt3_15b_8t_release_sm_gb200_dev_dgx_h100.csv",
)
pytestmark = pytest.mark.skipif(
    SHARED is None, reason="WTWIN_WATCH_CORPUS names no folder of given logs"
)


def points(name: str) -> list[tuple[float, float]]:
    nano = name.startswith("nanogpt")
    path = Path(SHARED or "") / (f"{name}.csv.gz" if nano else f"corpus/{name}")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        rows = [
            (float(r["step"]), r["train_loss" if nano else "loss"]) for r in csv.DictReader(file)
        ]
    return [(step, float(loss)) for step, loss in rows if loss and math.isfinite(float(loss))]


def evidence_of(log: list[tuple[float, float]]) -> list[float]:
    """Evidence at each point, without the life of alerts."""
    evidence, pace, found = Evidence(8.0, 5e-4), Pace(), []
    for step, loss in log:
        pace.advance(step, None)
        fast = evidence.push(loss)
        if len(evidence.values) >= evidence.block:
            evidence.finish_block(*pace.block_x(step, len(evidence.values)))
        found.append(max(fast, evidence.E))
    return found


@pytest.mark.parametrize("name", LOGS)
def test_evidence_agrees_with_the_given_values(name: str) -> None:
    given = json.loads((Path(SHARED or "") / "trend_vectors_amended.json").read_text())[name]["E"]
    found = evidence_of(points(name))

    # Beyond the switch these values are of a detector with other windows.
    pairs = [(value, found[index]) for index, value in given if index < SWITCH]
    assert pairs
    close = [abs(value - ours) <= 0.02 * max(1.0, value) for value, ours in pairs]
    # A climb is measured by the noise of the last block here, by that of its own points there; a line through
    # the past serves half as long here; and noise that surely grew with scale is expected to grow on.
    assert sum(close) >= len(close) - 4
    assert all(abs(value - ours) <= 0.75 for value, ours in pairs)
