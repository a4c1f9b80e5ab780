"""A folder of MLflow's file store, written as MLflow 3 writes it.

`tests.integration.test_mlflow_store_genuine` reads one that MLflow itself wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

NOW_MS = 1_790_000_000_000

_EXPERIMENT = """\
artifact_location: file://{folder}
creation_time: 1796104887316
effective_trace_archival_retention: null
experiment_id: '{number}'
last_update_time: 1796104887316
lifecycle_stage: {stage}
name: {name}
trace_location: null
workspace: default
"""
_RUN = """\
artifact_uri: file://{folder}/artifacts
end_time: null
entry_point_name: ''
experiment_id: '{experiment}'
lifecycle_stage: {stage}
run_id: {number}
run_name: {name}
source_name: ''
source_type: 4
source_version: ''
start_time: 1790000000000
status: {status}
tags: []
user_id: unknown
"""


@dataclass
class StoreRun:
    """One run's folder."""

    folder: Path
    name: str

    def meta(self, status: int = 1, stage: str = "active") -> None:
        """Write the run's own file, as MLflow does when its state changes."""
        text = _RUN.format(
            folder=self.folder,
            experiment=self.folder.parent.name,
            number=self.folder.name,
            name=self.name,
            status=status,
            stage=stage,
        )
        (self.folder / "meta.yaml").write_text(text)

    def tag(self, name: str, value: str) -> None:
        """Set a tag."""
        (self.folder / "tags" / name).write_text(value)

    def write(self, metric: str, text: str | bytes) -> Path:
        """Append to a metric's file as it is."""
        path = self.folder / "metrics" / metric
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)
        return path

    def log(
        self,
        values: Sequence[float],
        metric: str = "loss",
        first: int = 0,
        at: int = NOW_MS,
        each_ms: int = 1000,
    ) -> Path:
        """Log ``values`` at the steps from ``first`` on."""
        return self.write(
            metric,
            "".join(f"{at + i * each_ms} {v} {first + i}\n" for i, v in enumerate(values)),
        )


class Store:
    """A store in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = 0

    def experiment(self, name: str, stage: str = "active") -> str:
        """Make an experiment, and return its id."""
        self._numbers += 1
        number = f"{1000 + self._numbers}"
        folder = self.folder / number
        folder.mkdir(parents=True)
        text = _EXPERIMENT.format(folder=folder, number=number, name=name, stage=stage)
        (folder / "meta.yaml").write_text(text)
        return number

    def run(self, experiment: str, name: str = "owl", **meta: int | str) -> StoreRun:
        """Begin a run."""
        self._numbers += 1
        run = StoreRun(self.folder / experiment / f"{self._numbers:032x}", name)
        for part in ("artifacts", "metrics", "params", "tags"):
            (run.folder / part).mkdir(parents=True)
        run.meta(**meta)  # type: ignore[arg-type]
        return run
