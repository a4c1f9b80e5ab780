"""The adapter `mlflow` on a server of MLflow 2.9, which gives whole histories only.

Optional, since it installs that version into an environment of its own: ``WTWIN_MLFLOW_OLD=1``.
"""

import math
import os
import subprocess
import sys

import pytest

from tests.support.mlflow_fixtures import Mlflow, everything, only, steps_of
from tests.support.mlflow_server import NOW_MS, server_and_job
from wtwin_watch.testing import points_of, read_on

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        os.environ.get("WTWIN_MLFLOW_OLD") != "1",
        reason="installs MLflow 2.9; set WTWIN_MLFLOW_OLD=1",
    ),
]
# Later versions of the other two aren't what this one was made for.
OLD = ["mlflow==2.9.2", "sqlalchemy<2.1", "setuptools<81"]


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    pytest.importorskip("mlflow", reason="needs MLflow's client, which logs to the server")
    folder = tmp_path_factory.mktemp("old")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = str(folder / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", *OLD], check=True)
    with server_and_job(folder, python) as pair:
        yield Mlflow(*pair)


def test_each_row_of_an_old_server_comes_once_as_its_client_reads_it(old):
    run = old.run()
    rows = [["loss", math.sin(i), NOW_MS + 10 * i, i * 3 - 2000] for i in range(3000)]
    rows[7][1], rows[8][1] = math.nan, math.inf
    old.job.rows(run, rows)
    watched = old.source()
    batches = everything(watched, limit=700)
    watched.close()

    theirs = old.job.call("get_metric_history", run, "loss")
    assert [repr(p.value) for p in points_of(batches)] == [
        "inf" if value > 1.797e308 else repr(value) for _, value, _, _ in theirs
    ]
    assert steps_of(batches) == [step for _, _, _, step in theirs]

    old.job.log(run, [0.5] * 50, first=7000, at=NOW_MS + 40_000)
    later = old.source()
    new = read_on(later, only(later), batches[-1].cursor)
    later.close()

    assert steps_of(new) == list(range(7000, 7050))
