"""A run in a folder of MLflow's file store, read through the daemon to an alert and its end."""

import time

import pytest

from tests.support.mlflow_store import Store
from tests.support.training import FINITE_TO_RECOVER, NAN, healthy
from tests.support.webhook_standin import WebhookStandIn

pytestmark = pytest.mark.e2e


def now_ms():
    return int(time.time() * 1000)


def test_a_run_in_a_file_store_is_followed_exactly_once_to_an_alert_and_its_end(program, tmp_path):
    store = Store(tmp_path / "mlruns")
    run = store.run(store.experiment("pretraining"), "bright-owl-7")
    store.run(store.experiment("other"), "not-watched").log(NAN)
    run.log(healthy(400), at=now_ms() - 400_000)
    program.args += ["--mlflow", str(store.folder), "--experiment", "pretraining"]
    with WebhookStandIn() as hook:
        program.args += ["--webhook", hook.hook_url, "--interval", "300ms"]
        daemon = program.start()
        assert program.known()
        assert [run.points for run in program.status().runs] == [400]

        run.log([*healthy(60, 400), *NAN], first=400, at=now_ms() - 1000, each_ms=10)
        assert hook.wait_for(lambda: hook.types == ["run.alert.firing"], 60), daemon.log
        told = hook.deliveries[0].body["data"]
        assert (told["run_name"], told["project"]) == ("bright-owl-7", "pretraining")
        assert (told["family"], told["step"]) == ("nonfinite", 460)

        # Killed in the middle, it goes on where it was.
        daemon.kill()
        run.log(healthy(FINITE_TO_RECOVER + 10, 462), first=462, at=now_ms(), each_ms=10)
        daemon = program.start()
        recovered = ["run.alert.firing", "run.alert.resolved"]
        assert hook.wait_for(lambda: hook.types == recovered, 60), daemon.log

        run.meta(status=5)
        ended = [*recovered, "run.alert.firing"]
        assert hook.wait_for(lambda: hook.types == ended, 60), daemon.log
        assert hook.deliveries[-1].body["data"]["kind"] == "killed"
        assert daemon.stop() == 0
        assert [run.points for run in program.status().runs] == [536]
