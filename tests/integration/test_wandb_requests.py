"""The genuine client asks the stand-in what it asks a real server, as recorded."""

import json
import os
import re
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
        child = Child(child_environment(os.environ, wandb.url, KEY))
        try:
            child.ask("runs", 40, project="myteam/llm", filters={}, per_page=50)
            child.ask("scan", 40, project="myteam/llm", run="r", min_step=0, rows=10)
        finally:
            child.close()
    asked = {asked.operation: asked for asked in wandb.asked}

    assert asked.keys() >= WRITING | READING
    for operation in WRITING | READING:
        known = recorded[operation]
        assert fields(asked[operation].query) == fields(known["query"]), operation
        assert asked[operation].variables.keys() == (known["variables"] or {}).keys(), operation
