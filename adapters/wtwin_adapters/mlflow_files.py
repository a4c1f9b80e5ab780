"""Runs of MLflow read from disk, where its file store keeps them (``mlruns``): the adapter ``mlflow-files``.

No server is asked, and MLflow need not be installed.
"""

from __future__ import annotations

import glob
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, ConfigDict

from wtwin_adapters.files import digest, shown, unreadable
from wtwin_adapters.mlflow_experiments import (
    Experiments,
    choose,
    is_missing,
    missing_id,
    no_experiment,
    no_runs,
)
from wtwin_adapters.mlflow_metricfile import read_run
from wtwin_adapters.mlflow_store import (
    META,
    METRICS,
    RunFacts,
    experiment_name,
    is_part_of_run,
    is_store,
    read_meta,
    run_facts,
    store_of,
    tags_changed_at,
)
from wtwin_adapters.naming import usable
from wtwin_adapters.options import PathText
from wtwin_adapters.stamps import Stamp, Stamps
from wtwin_adapters.tree import Forest, Found
from wtwin_watch.errors import SourceError
from wtwin_watch.model import Batch, Cursor, Run, RunKey
from wtwin_watch.protocols import Clock, Recognition, SourceOptions

_FORMAT = "mlflow"
_PARTS_OF_RUN = 2


def _folder(given: str) -> str:
    """The folder that ``given`` names, itself or as a ``file:`` URI. Raises ValueError."""
    if given.startswith("file:"):
        parts = urlsplit(given)
        if parts.netloc not in ("", "localhost"):
            raise ValueError("names another machine; write file:///FOLDER, or the folder itself")
        given = unquote(parts.path)
    elif "://" in given:
        raise ValueError(
            "names no folder; a tracking server is watched by the adapter mlflow, with its uri"
        )
    if not given:
        raise ValueError("is empty; name the folder of the file store")
    return given


class MlflowFilesOptions(SourceOptions):
    """Where MLflow's file store is, and which runs of it are watched."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    path: Annotated[PathText, AfterValidator(_folder)]
    """The folder ``mlruns``, or that which holds it, or its ``file:`` URI; ``~`` is the home folder."""
    experiments: Experiments = ()
    """Names or ids of experiments; left out, all active ones."""

    @property
    def no_runs(self) -> str:
        """Say where nothing was found."""
        return no_runs(self.experiments, f"of the file store {self.path} yet")


class MlflowFilesSource:
    """The runs of one file store, those that ended long ago too.

    Listing costs one ``stat`` a folder and one for each metric that a monitor may want. Fetching costs
    what is new, and opening the run's metrics.
    """

    Options: ClassVar[type[SourceOptions]] = MlflowFilesOptions
    interval_s: ClassVar[float] = 2.0
    extra: ClassVar[str | None] = None

    def __init__(self, name: str, options: MlflowFilesOptions, clock: Clock = time) -> None:
        self._name = name
        self._names = options.names
        self._wanted = options.experiments
        self._folder = os.path.abspath(os.path.expanduser(options.path))
        self._clock = clock
        self._store = ""
        self._forest: Forest | None = None
        self._found: Found | None = None
        self._watched: list[str] = []
        self._stamps = Stamps()
        self._metas: dict[str, tuple[Any, Mapping[str, Any]]] = {}
        self._facts: dict[str, tuple[Any, RunFacts | None]] = {}
        self._there: dict[str, str] = {}
        self._missing: tuple[str, ...] = ()
        self._files: dict[str, dict[str, str]] = {}
        self._broken: dict[str, tuple[str, OSError]] = {}
        self._runs: list[Run] = []
        self._known: dict[str, tuple[Any, Run]] = {}
        self._lock = threading.Lock()

    @staticmethod
    def recognise(path: Path) -> Recognition | None:
        """Say whether ``path`` is the folder of a file store."""
        return Recognition(_FORMAT, {"path": str(path)}) if is_store(str(path)) else None

    @staticmethod
    def owns(path: Path) -> bool:
        """Whether ``path`` is a file in which MLflow keeps a run; an artifact is none."""
        return is_part_of_run(str(path))

    def runs(self) -> Iterable[Run]:
        """List the runs that aren't deleted. Raises `SourceError` where the store can't be read.

        An experiment that isn't there is listed as a run whose fetch says so, unless it is the only one;
        a folder that can't be listed, likewise.
        """
        with self._lock:
            found = self._look()
            if found is not self._found:
                self._watched = [path for path in found.files if self._is_watched(path)]
            if self._stamps.look(self._watched) or found is not self._found:
                self._group(found)
            if self._missing and len(self._missing) == len(self._wanted):
                raise SourceError(no_experiment(self._missing, self._there.values()))
            return list(self._runs)

    def fetch(self, run: Run, cursor: Cursor | None, limit: int) -> Batch:
        """Read on in the metrics of ``run``; see `wtwin_watch.protocols.Source.fetch`."""
        number = run.key.run
        if number not in self._files:
            self.runs()
        with self._lock:
            files, broken = self._files.get(number), self._broken.get(number)
        if is_missing(number):
            raise SourceError(no_experiment(self._missing, self._there.values()))
        if broken is not None:
            raise unreadable(*broken) from broken[1]
        if files is None:
            raise SourceError(f"run {number} isn't in {shown(self._store)} any more")
        return read_run(files, cursor, limit)

    def roots(self) -> Sequence[Path]:
        """The folder whose file events mean there may be something new."""
        return [Path(self._store or self._folder)]

    def close(self) -> None:
        """Nothing is held open between fetches."""

    # -- listing -----------------------------------------------------------------------------------

    def _look(self) -> Found:
        store = store_of(self._folder)
        if self._forest is None or store != self._store:
            # Only what MLflow keeps is looked into: artifacts may be any number of files.
            parts = (f"*/{META}", f"*/*/{META}", f"*/*/{METRICS}")
            patterns = [os.path.join(glob.escape(store), part) for part in parts]
            self._store, self._forest = store, Forest(patterns, bool, self._clock)
        return self._forest.look()

    def _parts(self, path: str) -> list[str]:
        """Where a file lies in the store: experiment, run and so on."""
        return path[len(self._store) :].lstrip("/").split("/")

    def _is_watched(self, path: str) -> bool:
        parts = self._parts(path)
        return parts[-1] == META or usable(_metric(parts), self._names)

    def _group(self, found: Found) -> None:
        metas: dict[str, Stamp] = {}
        metrics: dict[str, list[Stamp]] = {}
        experiments: dict[str, Stamp] = {}
        for stamp in self._stamps.all:
            parts = self._parts(stamp.path)
            number = "/".join(parts[:_PARTS_OF_RUN])
            if parts[-1] != META:
                metrics.setdefault(number, []).append(stamp)
            elif len(parts) == _PARTS_OF_RUN:
                experiments[parts[0]] = stamp
            else:
                metas[number] = stamp
        names = self._experiments(experiments)
        self._there = {shown(folder): name for folder, name in names.items()}
        chosen, self._missing = choose(self._wanted, self._there)
        runs, files, facts, known = [], {}, {}, {}
        for number, stamp in metas.items():
            experiment = shown(number.split("/")[0])
            said = self._said(stamp, experiment in chosen)
            facts[stamp.path] = said
            if experiment not in chosen or said[1] is None or not said[1].active:
                continue
            stamps = metrics.get(number, [])
            seen = (stamps, said, chosen[experiment])
            key = shown(number)
            before = self._known.get(key)
            run = before[1] if before and before[0] == seen else self._run(key, *seen)
            known[key] = (seen, run)
            files[key] = {_metric(self._parts(s.path)): s.path for s in stamps}
            runs.append(run)
        self._broken = {}
        for path, error in found.broken.items():
            parts = [shown(part) for part in self._parts(path)[:_PARTS_OF_RUN]]
            key = "/".join(parts)
            if parts[0] in chosen or parts[0] not in self._there:
                self._broken[key] = path, error
                if key not in files:
                    runs.append(Run(RunKey(self._name, key), parts[-1]))
        runs += [Run(RunKey(self._name, missing_id(n)), n) for n in self._missing]
        self._runs, self._files, self._facts, self._known = runs, files, facts, known
        self._found = found

    def _experiments(self, stamps: Mapping[str, Stamp]) -> dict[str, str]:
        """The active experiments: names by folders. One whose file can't be read now is as it was."""
        metas = {}
        for folder, stamp in stamps.items():
            before = self._metas.get(folder)
            if before is None or before[0] != stamp:
                meta = read_meta(stamp.path)
                before = before if meta is None else (stamp, meta)
            if before is not None:
                metas[folder] = before
        self._metas = metas
        named = {folder: experiment_name(meta) for folder, (_, meta) in metas.items()}
        return {folder: name for folder, name in named.items() if name is not None}

    def _said(self, stamp: Stamp, wanted: bool) -> tuple[Any, RunFacts | None]:
        """What a run's folder says. While its file can't be read, that is what it said before."""
        folder = os.path.dirname(stamp.path)
        before = self._facts.get(stamp.path)
        if not wanted:
            return before or (None, None)
        state = (stamp, tags_changed_at(folder))
        if before is not None and before[0] == state:
            return before
        meta = read_meta(stamp.path)
        if meta is None:
            known = before[1] if before else None
            return None, known or RunFacts(shown(os.path.basename(folder))[:8])
        return state, run_facts(folder, meta)

    def _run(
        self, number: str, stamps: list[Stamp], said: tuple[Any, RunFacts | None], experiment: str
    ) -> Run:
        facts = said[1] or RunFacts(number)
        latest = max((stamp.mtime_ns for stamp in stamps), default=0)
        return Run(
            RunKey(self._name, number),
            facts.name,
            project=experiment,
            status=facts.status,
            last_activity=latest / 1e9 if latest else facts.started,
            version=digest(repr([tuple(stamp) for stamp in stamps]).encode()),
            group=facts.parent,
            tags=facts.tags,
        )


def _metric(parts: Sequence[str]) -> str:
    """The name of the metric whose file lies there."""
    return shown("/".join(parts[_PARTS_OF_RUN + 1 :]))
