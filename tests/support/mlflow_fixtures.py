"""One MLflow server for all tests that need it: it takes half a minute to start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata
from itertools import count
from typing import Any

import pytest

from tests.support.mlflow_server import MlflowJob, MlflowServer, server_and_job
from wtwin_adapters.mlflow_server import MlflowSource
from wtwin_watch.model import Run
from wtwin_watch.testing import points_of, read_on

_numbers = count(1)


@dataclass
class Mlflow:
    """The server, a job that logs to it, and an experiment of the test's own."""

    server: MlflowServer
    job: MlflowJob
    experiment: str = field(default_factory=lambda: f"experiment-{next(_numbers)}")
    number: str = ""

    def __post_init__(self) -> None:
        self.number = self.job.experiment(self.experiment)

    def source(self, **options: Any) -> MlflowSource:
        """A source that watches the experiment."""
        given = {"uri": self.server.uri, "experiments": self.experiment, **options}
        return MlflowSource("mlflow", MlflowSource.Options.model_validate(given))

    def run(self, *args: Any, **more: Any) -> str:
        """Begin a run in the experiment."""
        return self.job.run(self.number, *args, **more)


@pytest.fixture(scope="session")
def mlflow_pair(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[MlflowServer, MlflowJob]]:
    try:
        metadata.version("mlflow")
    except metadata.PackageNotFoundError:
        pytest.skip("needs mlflow itself, for its server")
    with server_and_job(tmp_path_factory.mktemp("mlflow")) as pair:
        yield pair


@pytest.fixture
def mlflow_here(mlflow_pair: tuple[MlflowServer, MlflowJob]) -> Mlflow:
    return Mlflow(*mlflow_pair)


def only(source: MlflowSource) -> Run:
    """The one run there is."""
    [run] = source.runs()
    return run


def steps_of(batches: Any) -> list[float]:
    """The steps of all points, in their order."""
    return [point.step for point in points_of(batches)]


def everything(source: MlflowSource, limit: int = 5000) -> list[Any]:
    """Read the only run to its end."""
    return read_on(source, only(source), limit=limit)
