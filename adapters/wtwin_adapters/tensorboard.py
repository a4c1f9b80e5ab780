"""TensorBoard event files, read as they grow: the adapter ``tensorboard``.

Every folder with event files is a run. Needs neither TensorBoard nor a protocol buffer library.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from wtwin_adapters.eventfiles import is_event_file, recognise_events
from wtwin_adapters.files import digest, opened, shown, unreadable
from wtwin_adapters.options import PathOptions
from wtwin_adapters.tfrecords import Place, Reader
from wtwin_adapters.tree import Forest
from wtwin_watch.errors import SourceError
from wtwin_watch.metrics import Names
from wtwin_watch.model import Batch, Cursor, Restart, Run, RunKey
from wtwin_watch.protocols import Clock, Recognition, SourceOptions

_VERSION = 1
_HEAD = 64
# A cursor remembers this many files of a run; older ones are taken for finished.
_MAX_FILES = 256
_MAX_NAMES = 256
Stamp = tuple[str, int, int, int]
"""A file's path, inode, size and modification time in nanoseconds."""


@dataclass(slots=True)
class _File:
    """How far one file was read; ``dump`` is its part of the cursor."""

    place: Place = field(default_factory=Place)
    head: str = ""
    size: int = -1
    """Its size when it was last read to its end, else -1."""
    mtime_ns: int = 0
    dead: bool = False
    """Reading stopped at something that is no record, and that was told."""
    used: bool = False
    """It has given points."""

    def dump(self) -> list[Any]:
        place = self.place
        rest = [self.head, self.size, self.mtime_ns, self.dead, self.used]
        return [place.offset, place.part, *rest]

    @classmethod
    def load(cls, form: list[Any]) -> _File:
        return cls(Place(form[0], form[1]), *form[2:])


@dataclass(slots=True)
class _State:
    files: dict[str, _File] = field(default_factory=dict)
    floor: str = ""
    """Files up to this name are finished and forgotten."""
    current: str = ""
    """The file that the last points came from."""
    seen: dict[str, float] = field(default_factory=dict)
    others: set[bytes] = field(default_factory=set)
    events: int = 0

    def dump(self) -> dict[str, Any]:
        return {
            "v": _VERSION,
            "files": {name: file.dump() for name, file in self.files.items()},
            "floor": self.floor,
            "current": self.current,
            "seen": dict(list(self.seen.items())[-_MAX_NAMES:]),
            "others": sorted(label.decode() for label in self.others)[:_MAX_NAMES],
            "events": self.events,
        }

    @classmethod
    def load(cls, form: Mapping[str, Any]) -> _State:
        return cls(
            {name: _File.load(file) for name, file in form["files"].items()},
            form["floor"],
            form["current"],
            dict(form["seen"]),
            {label.encode() for label in form["others"]},
            form["events"],
        )


class TensorBoardOptions(PathOptions):
    """Where the log folders are: a folder or a pattern, or a list of them; ``~`` is the home folder."""

    files: ClassVar[str] = "event files"


class TensorBoardSource:
    """Log folders of TensorBoard.

    Listing costs one ``stat`` a file and a folder. Fetching costs what is new, and a ``stat`` for each
    of the run's files.
    """

    Options: ClassVar[type[SourceOptions]] = TensorBoardOptions
    interval_s: ClassVar[float] = 2.0
    extra: ClassVar[str | None] = None

    def __init__(self, name: str, options: PathOptions, clock: Clock = time) -> None:
        self._name = name
        self._names = options.names
        self._forest = Forest(options.paths, is_event_file, clock)
        self._files: dict[str, list[str]] = {}
        self._named: frozenset[str] = frozenset()
        self._known: dict[str, tuple[list[Stamp], Run]] = {}
        self._lock = threading.Lock()

    @staticmethod
    def recognise(path: Path) -> Recognition | None:
        """Say whether ``path`` is an event file, or a folder with some at any depth."""
        return recognise_events(path)

    def runs(self) -> Iterable[Run]:
        """List a run for each folder with event files, and one for each folder that can't be listed.

        Raises `SourceError` where a configured path can't be read.
        """
        with self._lock:
            found = self._forest.look()
            known, met = self._known, set()
            grouped: dict[str, list[Stamp]] = {}
            for path in found.files:
                try:
                    status = os.stat(path)
                except FileNotFoundError:
                    continue
                except OSError:
                    # It stays among the run's files, so that the fetch says what is wrong with it.
                    stamp: Stamp = (path, 0, 0, 0)
                else:
                    if (identity := (status.st_dev, status.st_ino)) in met:
                        continue
                    met.add(identity)
                    stamp = (path, status.st_ino, status.st_size, status.st_mtime_ns)
                folder = path if path in found.named else os.path.dirname(path)
                grouped.setdefault(folder, []).append(stamp)
            self._known, files, runs = {}, {}, []
            for folder, stamps in grouped.items():
                old = known.get(folder)
                run = old[1] if old and old[0] == stamps else self._seen(folder, stamps)
                self._known[folder] = (stamps, run)
                files[run.key.run] = sorted(stamp[0] for stamp in stamps)
                runs.append(run)
            for path in found.broken:
                run = self._run(path)
                if files.setdefault(run.key.run, [path]) == [path]:
                    runs.append(run)
            self._files, self._named = files, found.named
            return runs

    def fetch(self, run: Run, cursor: Cursor | None, limit: int) -> Batch:
        """Read on in the event files of ``run``, by their names; see `Source.fetch`."""
        if run.key.run not in self._files:
            self.runs()
        paths = self._files.get(run.key.run)
        if paths is None:
            raise SourceError(f"{self._forest.path_of(run.key.run)} holds no event files any more")
        plain = [path for path in paths if not path.endswith(".gz")]
        if not plain and paths[0] in self._named:
            raise SourceError(f"{shown(paths[0])} is compressed; unpack it with gunzip")
        state, restart = _State(), None
        if cursor is not None:
            if cursor.get("v") == _VERSION:
                state = _State.load(cursor)
            else:
                restart = Restart("the position was stored by another version")
        batch = _Fetch(self._names, state, restart, max(limit, 1)).read(plain)
        if cursor is None and len(plain) < len(paths):
            compressed = {"compressed file": len(paths) - len(plain)}
            batch = replace(batch, skipped={**batch.skipped, **compressed})
        return batch

    def roots(self) -> Sequence[Path]:
        """The folders whose file events mean there may be something new."""
        return self._forest.folders()

    def close(self) -> None:
        """Nothing is held open between fetches."""

    def _seen(self, folder: str, stamps: list[Stamp]) -> Run:
        latest = max(stamp[3] for stamp in stamps)
        return replace(
            self._run(folder), last_activity=latest / 1e9, version=digest(repr(stamps).encode())
        )

    def _run(self, path: str) -> Run:
        run = self._forest.id_of(path)
        return Run(RunKey(self._name, run), shown(os.path.basename(path)) if run == "." else run)


class _Fetch:
    """One reading of a run's files, in the order of their names."""

    def __init__(self, names: Names, state: _State, restart: Restart | None, limit: int) -> None:
        self._names = names
        self._limit = limit
        self._begin(state, restart)

    def read(self, paths: Sequence[str]) -> Batch:
        """Read what is new in the files at ``paths``."""
        more = self._read_all(paths)
        state, reader = self._state, self._reader
        reader.keep_seen()
        state.events += reader.events
        present = {_name(path) for path in paths}
        state.files = {n: f for n, f in sorted(state.files.items()) if n in present}
        while len(state.files) > _MAX_FILES and next(iter(state.files.values())).size >= 0:
            state.floor = next(iter(state.files))
            del state.files[state.floor]
        return Batch(
            reader.points,
            state.dump(),
            more,
            reader.restart,
            dict(reader.skipped),
            f"event {state.events}",
            "step",
        )

    def _begin(self, state: _State, restart: Restart | None) -> None:
        self._state = state
        self._reader = Reader(self._names, self._limit, state.seen, state.others)
        self._reader.restart = restart

    def _read_all(self, paths: Sequence[str]) -> bool:
        for path in paths:
            name = _name(path)
            file = self._state.files.get(name)
            if file is None and name <= self._state.floor:
                continue
            try:
                status = os.stat(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise unreadable(path, error) from error
            if file and (file.size, file.mtime_ns) == (status.st_size, status.st_mtime_ns):
                continue
            with opened(path) as fd:
                status = os.fstat(fd)
                if file and not _is_same(fd, status.st_size, file):
                    if self._reader.points or self._reader.restart:
                        return True
                    known = bool(self._state.seen)
                    restart = Restart(f"{name} was replaced or cut") if known else None
                    self._begin(_State(), restart)
                    return self._read_all(paths)
                self._read_file(fd, name, status)
            if self._reader.full:
                return True
        return False

    def _read_file(self, fd: int, name: str, status: os.stat_result) -> None:
        state, reader = self._state, self._reader
        file = state.files.setdefault(name, _File())
        if name != state.current:
            # A file that gave points before and another since then: two writers at once.
            reader.next_file(beside=file.used)
        before = len(reader.points)
        reader.read(fd, status.st_size, file.place)
        if len(reader.points) > before:
            state.current, file.used = name, True
        if reader.broken and not file.dead:
            reader.skipped["no record here, file given up"] += 1
        file.dead = reader.broken
        file.head = digest(os.pread(fd, min(_HEAD, file.place.offset), 0))
        file.size = -1 if reader.full else status.st_size
        file.mtime_ns = status.st_mtime_ns


def _name(path: str) -> str:
    return shown(os.path.basename(path))


def _is_same(fd: int, size: int, file: _File) -> bool:
    """Whether a file begins as the one that was read, and is not shorter."""
    offset = file.place.offset
    return size >= offset and digest(os.pread(fd, min(_HEAD, offset), 0)) == file.head
