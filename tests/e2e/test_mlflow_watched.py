"""A run logged to a real MLflow server by MLflow's own client, read through the daemon to an alert."""

import time

import pytest

from tests.support.process import wait_until
from tests.support.training import FINITE_TO_RECOVER, NAN, healthy
from tests.support.webhook_standin import WebhookStandIn

pytestmark = [pytest.mark.e2e, pytest.mark.integration]


def now_ms():
    return int(time.time() * 1000)


def test_a_run_on_a_server_is_followed_exactly_once_to_an_alert_and_its_end(program, mlflow_here):
    job, run = mlflow_here.job, mlflow_here.run("bright-owl-7", {"team": "llm"})
    job.log(run, healthy(400), at=now_ms() - 400_000)
    program.args += ["--mlflow", mlflow_here.server.uri, "--experiment", mlflow_here.experiment]
    with WebhookStandIn() as hook:
        program.args += ["--webhook", hook.hook_url, "--interval", "300ms"]
        daemon = program.start()
        assert program.known()
        assert [run.points for run in program.status().runs] == [400]

        job.log(run, [*healthy(60, 400), *NAN], first=400, at=now_ms() - 1000, each_ms=10)
        assert hook.wait_for(lambda: hook.types == ["run.alert.firing"], 60), daemon.log
        told = hook.deliveries[0].body["data"]
        assert (told["run"], told["run_name"]) == (run, "bright-owl-7")
        assert (told["family"], told["step"]) == ("nonfinite", 460)
        assert told["url"].endswith(f"/#/experiments/{mlflow_here.number}/runs/{run}")

        # Killed in the middle, it goes on where it was.
        daemon.kill()
        job.log(run, healthy(FINITE_TO_RECOVER + 10, 462), first=462, at=now_ms(), each_ms=10)
        daemon = program.start()
        recovered = ["run.alert.firing", "run.alert.resolved"]
        assert hook.wait_for(lambda: hook.types == recovered, 60), daemon.log
        assert wait_until(lambda: [run.points for run in program.status().runs] == [536])
        assert daemon.stop() == 0
        assert hook.types == recovered
