"""A job that logs with the genuine wandb is watched by the real daemon, over the genuine client."""

import math

import pytest

from tests.support.process import wait_until
from tests.support.training import healthy
from tests.support.wandb_job import WandbJob
from tests.support.wandb_standin import KEY, WandbStandIn
from tests.support.webhook_standin import WebhookStandIn

pytest.importorskip("wandb", reason="needs the wandb client")
pytestmark = pytest.mark.e2e


def test_a_run_is_written_watched_and_told_and_each_row_counts_once(program, tmp_path):
    with WandbStandIn() as wandb, WebhookStandIn() as hook:
        program.env |= {"WANDB_BASE_URL": wandb.url, "WANDB_API_KEY": KEY}
        program.args += ["--project", "myteam/llm", "--interval", "300ms"]
        program.args += ["--webhook", hook.hook_url]
        with WandbJob(wandb.url, "run-1", tmp_path) as job:
            job.log([{"loss": loss, "lr": 1e-3} for loss in healthy(400)])
            daemon = program.start().ready()
            assert wait_until(lambda: "run-1" in [run.run.name for run in program.status().runs])

            job.log([{"loss": math.nan, "lr": 1e-3}] * 3)
            job.log([{"loss": loss, "lr": 1e-3} for loss in healthy(30, 400)])
            job.alert("the job's own")
            job.finish()

            assert hook.wait_for(lambda: hook.types == ["run.alert.firing"], 60), daemon.log
            assert wait_until(lambda: [r.points for r in program.status().runs] == [433])

        told = hook.deliveries[0].body["data"]
        assert told["family"] == "nonfinite"
        assert told["run"] == "myteam/llm/run-1"
        assert told["url"] == f"{wandb.url}/myteam/llm/runs/run-1"
        assert wait_until(
            lambda: [str(r.run.status) for r in program.status().runs] == ["finished"]
        )
        assert [alert["title"] for alert in wandb.alerts] == ["the job's own"]
        assert daemon.stop() == 0
    assert KEY not in daemon.log
