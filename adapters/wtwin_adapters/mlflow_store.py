"""What lies in a folder of MLflow's file store: ``EXPERIMENT/meta.yaml``, ``EXPERIMENT/RUN/…``.

A run's folder holds ``meta.yaml``, and in ``metrics`` and ``tags`` a file for each; a name with slashes is a
path there. Deleting sets ``lifecycle_stage``, or moves an experiment to the folder ``.trash``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import yaml

from wtwin_adapters.files import shown
from wtwin_watch.model import RunStatus

META = "meta.yaml"
METRICS = "metrics"
_TAGS = "tags"
_OWN = frozenset({METRICS, _TAGS, "params", "inputs", "outputs"})
_DEFAULT = "mlruns"
_MOST_META, _MOST_TAG = 1 << 20, 1 << 10
_MOST_TAGS = 20
_LOOKED_AT = 1000
_MOST_MS = 1 << 53
# Reads ten times as fast where PyYAML has it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# As MLflow numbers them in its files.
_STATUS = {
    "1": RunStatus.RUNNING,
    "3": RunStatus.FINISHED,
    "4": RunStatus.FAILED,
    "5": RunStatus.KILLED,
}


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a run's folder says of it, its metrics aside."""

    name: str
    active: bool = True
    """Not deleted."""
    status: RunStatus = RunStatus.UNKNOWN
    started: float | None = None
    """Unix seconds."""
    parent: str | None = None
    tags: tuple[str, ...] = ()


def store_of(folder: str) -> str:
    """The store that a folder is, or that a program started in it has made there: ``mlruns``."""
    below = os.path.join(folder, _DEFAULT)
    return below if os.path.isdir(below) and not is_store(folder) else folder


def is_store(folder: str) -> bool:
    """Whether a folder holds an experiment's, among the first thousand in it."""
    try:
        with os.scandir(folder) as entries:
            return any(
                not entry.name.startswith(".")
                and "experiment_id" in (read_meta(os.path.join(entry.path, META)) or ())
                for entry in islice(entries, _LOOKED_AT)
            )
    except OSError:
        return False


def is_part_of_run(path: str) -> bool:
    """Whether a file is one that MLflow keeps of a run, or a ``meta.yaml``; an artifact is neither."""
    folder, name = os.path.split(path)
    if name == META:
        return True
    while folder not in ("", "/"):
        folder, name = os.path.split(folder)
        if name in _OWN and os.path.isfile(os.path.join(folder, META)):
            return True
    return False


def read_meta(path: str) -> Mapping[str, Any] | None:
    """Read a ``meta.yaml``; None where it can't be read now, or is no such file."""
    try:
        with open(path, "rb") as file:
            content = yaml.load(file.read(_MOST_META), Loader=_LOADER)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    return content if isinstance(content, dict) else None


def experiment_name(meta: Mapping[str, Any]) -> str | None:
    """The name of an experiment; None if it was deleted or ``meta`` isn't of one."""
    active = meta.get("lifecycle_stage", "active") == "active"
    return _text(meta["name"]) if active and {"name", "experiment_id"} <= meta.keys() else None


def run_facts(folder: str, meta: Mapping[str, Any]) -> RunFacts | None:
    """What a run's folder and its ``meta.yaml`` say; None if that isn't of a run."""
    number = meta.get("run_id") or meta.get("run_uuid")  # the second in old stores
    if number is None:
        return None
    tags = _tags(os.path.join(folder, _TAGS))
    started = meta.get("start_time")
    return RunFacts(
        _text(meta.get("run_name") or tags.get("mlflow.runName") or str(number)[:8]),
        meta.get("lifecycle_stage", "active") == "active",
        _STATUS.get(str(meta.get("status")), RunStatus.UNKNOWN),
        started / 1000.0 if isinstance(started, int) and started < _MOST_MS else None,
        tags.get("mlflow.parentRunId"),
        tuple(f"{k}={v}" for k, v in tags.items() if not k.startswith("mlflow."))[:_MOST_TAGS],
    )


def tags_changed_at(folder: str) -> int:
    """Changes when a tag is added to the run in ``folder``; 0 while there are none."""
    try:
        return os.stat(os.path.join(folder, _TAGS)).st_mtime_ns
    except OSError:
        return 0


def _tags(folder: str) -> dict[str, str]:
    tags = {}
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                if entry.is_file():
                    with open(entry.path, "rb") as file:
                        text = file.read(_MOST_TAG).decode("utf-8", "replace")
                    tags[shown(entry.name)] = " ".join(text.split())
    except OSError:
        pass  # a name for people, and what routes look at: not worth losing the run for
    return tags


def _text(value: Any) -> str:
    """``value`` as text that can be sent: YAML can spell halves of letters."""
    return str(value).encode("utf-8", "backslashreplace").decode()
