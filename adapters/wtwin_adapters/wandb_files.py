"""Runs of Weights & Biases read from disk, where ``wandb`` writes them: the adapter ``wandb-files``.

Offline runs, and online ones on this machine or a shared file system. Nothing is asked of W&B's servers,
and ``wandb`` need not be installed. A run is what has one run id in one ``wandb`` folder: its first
process and those that resumed it, each of which writes a directory of its own.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from wtwin_adapters.files import digest, files_below, opened, shown
from wtwin_adapters.options import PathOptions
from wtwin_adapters.tree import Forest
from wtwin_adapters.wandb_files_blocks import MAGIC
from wtwin_adapters.wandb_files_facts import Ending, read_ending, read_run_facts, tells_of_itself
from wtwin_adapters.wandb_files_reader import RunReader
from wtwin_adapters.wandb_records import RunFacts
from wtwin_watch.errors import SourceError
from wtwin_watch.model import Batch, Cursor, Run, RunKey, RunStatus
from wtwin_watch.protocols import Clock, Recognition, SourceOptions

SUFFIX = ".wandb"
SILENT_S = 300.0
"""A run whose process logs its machine's state is taken for dead after this long without it, seconds."""
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
class _File:
    """A file as it was last seen."""

    inode: int
    size: int
    mtime_ns: int
    facts: RunFacts | None = None
    ending: Ending = field(default_factory=Ending)
    silent: bool | None = None
    """Once it is silent: whether that means that its process is dead."""

    @property
    def ended(self) -> bool:
        """Whether the run's process said that it ends."""
        return self.ending.exit_code is not None


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
        self._seen: dict[str, _File] = {}
        self._runs: dict[str, dict[str, str]] = {}
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

    def runs(self) -> Iterable[Run]:
        """List the runs, and one for each folder that can't be listed: fetching says why.

        Raises `SourceError` where a configured path can't be read.
        """
        with self._lock:
            found = self._forest.look()
            seen, met = self._seen, set()
            self._seen = {}
            grouped: dict[str, list[_Place]] = {}
            for path in found.files:
                try:
                    status = os.stat(path)
                except FileNotFoundError:
                    continue
                except OSError:
                    # It stays among the run's files, so that the fetch says what is wrong with it.
                    self._seen[path] = _File(0, 0, 0)
                else:
                    if (identity := (status.st_dev, status.st_ino)) in met:
                        continue
                    met.add(identity)
                    self._seen[path] = self._looked_at(path, status, seen.get(path))
                place = self._place(path)
                grouped.setdefault(place.run, []).append(place)
            runs, self._runs = [], {}
            for key, places in grouped.items():
                places.sort(key=lambda place: place.order)
                self._runs[key] = {_name(place.path): place.path for place in places}
                runs.append(self._run(key, places))
            for path in found.broken:
                key = self._forest.id_of(path)
                if key not in self._runs:
                    self._runs[key] = {_name(path): path}
                    runs.append(Run(RunKey(self._name, key), shown(os.path.basename(path))))
            return runs

    def fetch(self, run: Run, cursor: Cursor | None, limit: int) -> Batch:
        """Read on in the files of ``run``, the oldest first; see `Source.fetch`."""
        if run.key.run not in self._runs:
            self.runs()
        paths = self._runs.get(run.key.run)
        if paths is None:
            raise SourceError(
                f"{self._forest.path_of(run.key.run)} is gone; its files were there before"
            )
        return RunReader(self._names, paths).read(cursor, limit)

    def last_lines(self, run: Run, count: int) -> Sequence[str]:
        """The last lines that the run's latest process printed, as far as ``wandb`` recorded them."""
        paths = list(self._runs.get(run.key.run, {}).values())
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

    def _looked_at(self, path: str, status: os.stat_result, old: _File | None) -> _File:
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        silent = self._clock.time() - status.st_mtime >= SILENT_S
        known = old is not None and (old.inode, old.size, old.mtime_ns) == stamp
        if old and known and (not silent or old.silent is not None or old.ended):
            return old
        same = old is not None and old.inode == status.st_ino
        facts = old.facts if old and same else None
        try:
            with opened(path) as fd:
                facts = facts or read_run_facts(fd)
                ending = read_ending(fd, status.st_size)
                dead = None
                if silent and ending.exit_code is None:
                    dead = tells_of_itself(fd, status.st_size)
                return _File(*stamp, facts, ending, dead)
        except SourceError:
            return _File(*stamp, facts)

    def _run(self, key: str, places: list[_Place]) -> Run:
        files = [self._seen[place.path] for place in places]
        last = files[-1]
        facts = next((file.facts for file in reversed(files) if file.facts), RunFacts())
        project = "/".join(part for part in (facts.entity, facts.project) if part)
        url = None
        if self._base_url and facts.entity and facts.project and facts.id:
            url = f"{self._base_url.rstrip('/')}/{project}/runs/{facts.id}"
        stamps = [(p.path, f.inode, f.size, f.mtime_ns) for p, f in zip(places, files, strict=True)]
        latest = max(file.mtime_ns for file in files)
        return Run(
            RunKey(self._name, key),
            facts.name or facts.id or places[-1].id,
            project=project,
            status=self._status(last),
            url=url,
            last_activity=latest / 1e9 if latest else None,
            version=digest(repr(stamps).encode()),
            group=facts.group or None,
            tags=facts.tags,
            exit_code=last.ending.exit_code,
        )

    def _status(self, file: _File) -> RunStatus:
        ending = file.ending
        if ending.exit_code == 0:
            return RunStatus.FINISHED
        if ending.exit_code is None and not file.silent:
            return RunStatus.RUNNING if file.silent is None else RunStatus.UNKNOWN
        if ending.preempting:
            return RunStatus.PREEMPTED
        return RunStatus.CRASHED if ending.exit_code is None else RunStatus.FAILED

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
