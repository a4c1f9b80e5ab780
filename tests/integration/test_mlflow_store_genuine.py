"""The adapter `mlflow-files` on a store that MLflow's own client writes, beside what that client reads.

MLflow 3 writes file stores only when told that this is meant.
"""

import math
import random
from importlib.util import find_spec

import pytest

from tests.support.mlflow_server import NOW_MS, MlflowJob
from wtwin_adapters.mlflow_files import MlflowFilesSource
from wtwin_watch.model import RunStatus
from wtwin_watch.testing import check_adapter, points_of, read_on

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(find_spec("mlflow") is None, reason="needs MLflow's client"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("store") / "mlruns"


@pytest.fixture(scope="module")
def job(folder):
    allowed = {"MLFLOW_ALLOW_FILE_STORE": "true"}
    with MlflowJob(folder.as_uri(), folder.parent, allowed) as job:
        yield job


def source(folder, experiment):
    options = {"path": folder.as_uri(), "experiments": experiment}
    return MlflowFilesSource("m", MlflowFilesSource.Options.model_validate(options))


def test_a_store_is_read_as_mlflows_own_client_reads_it(job, folder):
    rng = random.Random(5)
    run = job.run(job.experiment("same"))
    values = [math.nan, math.inf, -math.inf, 1.7976931348623157e308, 5e-324, 1e22]
    for metric in ("loss", "train/loss", "val loss", "lr"):
        rows = [
            [metric, rng.choice(values) if rng.random() < 0.1 else rng.gauss(0, 9), at, step]
            for step, at in ((i // 2, NOW_MS + 700 * (i // 2)) for i in range(600))
        ]
        job.rows(run, rows)

    watched = source(folder, "same")
    [listed] = watched.runs()
    batches = read_on(watched, listed, limit=97)

    for metric in ("loss", "train/loss", "val loss", "lr"):
        ours = [
            (round(p.wall_time * 1000), p.step, repr(p.value))
            for p in points_of(batches)
            if p.metric == metric
        ]
        theirs = [
            (at, step, repr(math.copysign(math.inf, value) if abs(value) > 1.797e308 else value))
            for _, value, at, step in job.call("get_metric_history", run, metric)
        ]
        assert ours == theirs
        assert len(theirs) == 600


def test_runs_of_a_store_are_those_that_mlflow_shows(job, folder):
    experiment = job.experiment("states")
    long_name = "a run, with: a 'name' " * 9 + "ünd so weiter"
    going = job.run(experiment, long_name, {"team": "llm"})
    failed, deleted = job.run(experiment, "failed"), job.run(experiment, "deleted")
    job.call("set_terminated", failed, "FAILED")
    job.call("delete_run", deleted)

    listed = {run.key.run: run for run in source(folder, "states").runs()}

    assert listed.keys() == {f"{experiment}/{going}", f"{experiment}/{failed}"}
    assert listed[f"{experiment}/{going}"].name == long_name
    assert listed[f"{experiment}/{going}"].tags == ("team=llm",)
    assert listed[f"{experiment}/{failed}"].status is RunStatus.FAILED


def test_a_store_that_mlflow_wrote_keeps_the_contract(job, folder):
    run = job.run(job.experiment("contract"))
    job.log(run, [1 / (1 + i) for i in range(60)])
    job.log(run, [0.1] * 10, "lr", each_ms=5000)

    points = check_adapter(lambda: source(folder, "contract"))

    assert [len(found) for found in points.values()] == [70]
