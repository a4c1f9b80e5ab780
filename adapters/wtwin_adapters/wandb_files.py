"""Runs of Weights & Biases read from disk, where ``wandb`` writes them: the adapter ``wandb-files``.

Offline runs, and online ones on this machine or a shared file system. Nothing is asked of W&B's servers,
and ``wandb`` need not be installed. A run is what has one run id in one ``wandb`` folder: its first
process and those that resumed it, each of which writes a directory of its own.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar
from urllib.parse import quote

from pydantic import Field

from wtwin_adapters.files import digest, files_below, opened, shown
from wtwin_adapters.options import PathOptions
from wtwin_adapters.stamps import Stamps
from wtwin_adapters.tree import Forest, Found
from wtwin_adapters.wandb_files_blocks import MAGIC
from wtwin_adapters.wandb_files_facts import FileFacts, look_at
from wtwin_adapters.wandb_files_reader import RunReader
from wtwin_adapters.wandb_records import RunFacts
from wtwin_watch.errors import SourceError
from wtwin_watch.model import Batch, Cursor, Run, RunKey
from wtwin_watch.protocols import Clock, Recognition, SourceOptions

SUFFIX = ".wandb"
_FORMAT = "wandb"
_DIRECTORY = re.compile(r"(?:offline-)?run-(\d{8}_\d{6})-.+")
_PRINTED = ("files", "output.log")
_MAX_PRINTED = 1 << 16
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_FILE = re.compile(r"run-(.+)\.wandb")


class WandbFilesOptions(PathOptions):
    """Where ``wandb`` writes: its folder ``wandb``, or a folder above it, a run's directory or file."""

    files: ClassVar[str] = "runs of wandb"

    base_url: Annotated[str, Field(pattern=r"^https?://[^@\s]+$")] | None = None
    """Where the runs can be seen, for links in alerts: ``https://wandb.ai``."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a file belongs: which run, and its order among the run's files."""

    run: str
    id: str
    order: tuple[str, str]
    path: str


class WandbFilesSource:
    """Folders that ``wandb`` writes runs to.

    Listing costs one ``stat`` a file and a folder; of a file that changed, its last 4 to 36 KiB are read.
    Fetching costs what is new, and a ``stat`` for each of the run's files.
    """

    Options: ClassVar[type[SourceOptions]] = WandbFilesOptions
    interval_s: ClassVar[float] = 2.0
    extra: ClassVar[str | None] = None

    def __init__(self, name: str, options: WandbFilesOptions, clock: Clock = time) -> None:
        self._name = name
        self._names = options.names
        self._base_url = options.base_url
        self._clock = clock
        self._forest = Forest(options.paths, _is_run_file, clock)
        self._found: Found | None = None
        self._stamps = Stamps()
        self._facts: dict[str, FileFacts] = {}
        self._look_again_at = math.inf
        self._runs: list[Run] = []
        self._files: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    @staticmethod
    def recognise(path: Path) -> Recognition | None:
        """Say whether ``path`` is a file of a run, or a folder with some at any depth."""
        options = {"path": str(path)}
        if path.is_dir():
            found = next(iter(files_below(path, _is_run_file)), None)
            return Recognition(_FORMAT, options) if found else None
        if not path.is_file():
            return None
        try:
            with path.open("rb") as file:
                head = file.read(len(MAGIC))
        except OSError:
            return None
        named = path.name.endswith(SUFFIX)
        if head == MAGIC or (named and MAGIC.startswith(head)):
            return Recognition(_FORMAT, options)
        return Recognition(_FORMAT, {}, "it doesn't begin as files of wandb do") if named else None

    @staticmethod
    def owns(path: Path) -> bool:
        """Whether ``path`` lies in the folder ``files`` of a run whose own file can be read."""
        kept = (folder.parent for folder in path.parents if folder.name == _PRINTED[0])
        directory = next((run for run in kept if _DIRECTORY.fullmatch(run.name)), None)
        if directory is None:
            return False
        recognised = map(WandbFilesSource.recognise, directory.glob(f"*{SUFFIX}"))
        return any(found is not None and found.refused is None for found in recognised)

    def runs(self) -> Iterable[Run]:
        """List the runs, and one for each folder that can't be listed: fetching says why.

        Raises `SourceError` where a configured path can't be read.
        """
        with self._lock:
            found = self._forest.look()
            changed = self._stamps.look(found.files)
            now = self._clock.time()
            if changed or found is not self._found or now >= self._look_again_at:
                self._group(found, now)
            return list(self._runs)

    def fetch(self, run: Run, cursor: Cursor | None, limit: int) -> Batch:
        """Read on in the files of ``run``, the oldest first; see `Source.fetch`."""
        if run.key.run not in self._files:
            self.runs()
        paths = self._files.get(run.key.run)
        if paths is None:
            raise SourceError(
                f"{self._forest.path_of(run.key.run)} is gone; its files were there before"
            )
        return RunReader(self._names, paths).read(cursor, limit)

    def last_lines(self, run: Run, count: int) -> Sequence[str]:
        """The last lines that the run's latest process printed, as far as ``wandb`` recorded them."""
        paths = list(self._files.get(run.key.run, {}).values())
        if not paths:
            return []
        printed = os.path.join(os.path.dirname(paths[-1]), *_PRINTED)
        if not os.path.exists(printed):
            return []
        with opened(printed) as fd:
            size = os.fstat(fd).st_size
            data = os.pread(fd, _MAX_PRINTED, max(0, size - _MAX_PRINTED))
        lines = [_as_seen(line) for line in data.decode("utf-8", "replace").split("\n")]
        return [line for line in lines if line][-count:]

    def roots(self) -> Sequence[Path]:
        """The folders whose file events mean there may be something new."""
        return self._forest.folders()

    def close(self) -> None:
        """Nothing is held open between fetches."""

    def _group(self, found: Found, now: float) -> None:
        stamps = self._stamps.all
        facts = [look_at(stamp, self._facts.get(stamp.path), now) for stamp in stamps]
        self._facts = {file.stamp.path: file for file in facts}
        self._look_again_at = min((file.look_again_at for file in facts), default=math.inf)
        grouped: dict[str, list[_Place]] = {}
        for stamp in stamps:
            place = self._place(stamp.path)
            grouped.setdefault(place.run, []).append(place)
        runs, files = [], {}
        for key, places in grouped.items():
            places.sort(key=lambda place: place.order)
            files[key] = {_name(place.path): place.path for place in places}
            runs.append(self._run(key, places))
        for path in found.broken:
            key = self._forest.id_of(path)
            if key not in files:
                files[key] = {_name(path): path}
                runs.append(Run(RunKey(self._name, key), shown(os.path.basename(path))))
        self._files, self._runs, self._found = files, runs, found

    def _run(self, key: str, places: list[_Place]) -> Run:
        files = [self._facts[place.path] for place in places]
        said = next((file.run for file in reversed(files) if file.run), RunFacts())
        latest = max(file.stamp.mtime_ns for file in files)
        stamps = [tuple(file.stamp) for file in files]
        return Run(
            RunKey(self._name, key),
            said.name or said.id or places[-1].id,
            project="/".join(part for part in (said.entity, said.project) if part),
            status=files[-1].status,
            url=self._url(said),
            last_activity=latest / 1e9 if latest else None,
            version=digest(repr(stamps).encode()),
            group=said.group or None,
            tags=said.tags,
            exit_code=files[-1].ending.exit_code,
        )

    def _url(self, said: RunFacts) -> str | None:
        parts = (said.entity, said.project, said.id)
        if self._base_url is None or not all(parts):
            return None
        entity, project, run = (quote(part, safe="") for part in parts)
        return f"{self._base_url.rstrip('/')}/{entity}/{project}/runs/{run}"

    def _place(self, path: str) -> _Place:
        directory = os.path.dirname(path)
        named = _FILE.fullmatch(os.path.basename(path))
        id_ = named[1] if named else os.path.splitext(os.path.basename(path))[0]
        made = _DIRECTORY.fullmatch(os.path.basename(directory))
        key = self._forest.id_of(
            os.path.join(os.path.dirname(directory) if made else directory, id_)
        )
        return _Place(key.removeprefix("../"), shown(id_), (made[1] if made else "", path), path)


def _is_run_file(name: str) -> bool:
    return name.endswith(SUFFIX)


def _as_seen(line: str) -> str:
    """A line as a terminal shows it: a progress bar as it was last, no colours."""
    last = _COLOURS.sub("", line).rstrip("\r").rpartition("\r")[2]
    return "".join(c for c in last if c.isprintable() or c == "\t").rstrip()


def _name(path: str) -> str:
    """A file's name in the cursor: with its directory, since resumed runs have files of the same name."""
    return shown("/".join(path.split("/")[-2:]))
