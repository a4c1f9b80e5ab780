"""Against a real W&B project, where one is lent: nothing is written there.

WTWIN_WANDB_LIVE=1 WTWIN_WANDB_PROJECT=entity/project, with the key as the client finds it.
"""

import os

import pytest

from wtwin_adapters.wandb_api import WandbSource
from wtwin_adapters.wandb_api_options import WandbOptions
from wtwin_watch.testing import points_of, read_on

pytest.importorskip("wandb", reason="needs the wandb client")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        os.environ.get("WTWIN_WANDB_LIVE") != "1", reason="WTWIN_WANDB_LIVE is not 1"
    ),
]


def test_rows_by_own_requests_are_those_of_the_client_at_a_real_server():
    project = os.environ["WTWIN_WANDB_PROJECT"]
    source = WandbSource(
        "live", WandbOptions(project=project, ended_within_h=24 * 365, step="_step")
    )
    try:
        run = next(iter(source.runs()))
        own = [(p.step, p.metric) for p in points_of(read_on(source, run)) if p.metric]
        in_project, _, name = run.key.run.rpartition("/")
        scanned = source._host.ask(
            "scan", 40, project=in_project, run=name, min_step=0, rows=1_000_000
        )["rows"]
    finally:
        source.close()

    assert own, "the run has no metric that is read"
    assert {step for step, _ in own} <= {row["_step"] for row in scanned}
