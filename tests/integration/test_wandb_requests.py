"""The genuine client asks the stand-in what it asks a real server, as recorded."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.process import wait_until
from tests.support.wandb_job import WandbJob
from tests.support.wandb_standin import KEY, WandbStandIn
from wtwin_adapters.wandb_child import Child, child_environment

pytest.importorskip("wandb", reason="needs the wandb client")
pytestmark = pytest.mark.integration

CORPUS = os.environ.get("WTWIN_WATCH_CORPUS")
WRITING = {"UpsertBucket", "CreateRunFiles", "NotifyScriptableRunAlert"}
READING = {
    "Viewer",
    "GetDefaultEntity",
    "Runs",
    "RunHistoryKeys",
    "RunParquetHistory",
    "HistoryPage",
}
BY_HAND = {"Run", "SampledHistoryPage", "RunFullHistory", "RunSampledHistory"}
"""What the client asks for where a person reads a run with it, as the differential tests do."""
BY_HAND_SCRIPT = """
import wandb

run = wandb.Api(timeout=30).run("myteam/llm/r")
assert [row["loss"] for row in run.scan_history(keys=["loss"], use_cache=False)] == [1.0] * 5
assert len(run.history(samples=3, pandas=False)) == 3
assert len(run.history(samples=3, keys=["loss"], pandas=False)) == 3
"""


def fields(query):
    """The names that stand in a query, whatever its layout."""
    return set(re.findall(r"\w+", re.sub(r"#[^\n]*", "", query)))


def test_the_client_asks_for_the_operations_and_fields_that_were_recorded(tmp_path):
    if CORPUS is None:
        pytest.skip("needs WTWIN_WATCH_CORPUS, where recorded requests are")
    lines = (Path(CORPUS) / "samples/made/wandb_requests.jsonl").read_text().splitlines()
    recorded = {r["op"]: r for r in map(json.loads, lines) if r["op"]}

    with WandbStandIn() as wandb, WandbJob(wandb.url, "r", tmp_path) as job:
        job.log([{"loss": 1.0}] * 5)
        job.alert("title")
        job.finish()
        assert wait_until(lambda: wandb.run("r").state == "finished")
        environment = child_environment(os.environ, wandb.url, KEY)
        subprocess.run(
            [sys.executable, "-c", BY_HAND_SCRIPT],
            env={**environment, "WANDB_DIR": str(tmp_path)},
            cwd=tmp_path,
            check=True,
            timeout=120,
        )
        child = Child(environment)
        try:
            child.ask("runs", 40, project="myteam/llm", filters={}, per_page=50)
            child.ask("scan", 40, project="myteam/llm", run="r", min_step=0, rows=10)
        finally:
            child.close()
    asked = {asked.operation: asked for asked in wandb.asked}

    assert recorded.keys() == WRITING | READING | BY_HAND
    assert asked.keys() >= recorded.keys()
    for operation, known in recorded.items():
        assert fields(asked[operation].query) == fields(known["query"]), operation
        assert asked[operation].variables.keys() == (known["variables"] or {}).keys(), operation
