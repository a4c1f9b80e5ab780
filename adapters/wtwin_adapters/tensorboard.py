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
from wtwin_adapters.files import digest, shown
from wtwin_adapters.growing import Positions, Replaced, file_name, read_files
from wtwin_adapters.options import PathOptions
from wtwin_adapters.stamps import Stamp, Stamps
from wtwin_adapters.tfrecords import Reader
from wtwin_adapters.tree import Forest, Found
from wtwin_watch.errors import SourceError
from wtwin_watch.metrics import Names
from wtwin_watch.model import Batch, Cursor, Restart, Run, RunKey
from wtwin_watch.protocols import Clock, Recognition, SourceOptions

_VERSION = 2
_MAX_NAMES = 256


@dataclass(slots=True)
class _State:
    """Where reading stands in a run; `dump` is the cursor."""

    positions: Positions = field(default_factory=Positions)
    seen: dict[str, float] = field(default_factory=dict)
    others: set[bytes] = field(default_factory=set)
    events: int = 0

    def dump(self) -> dict[str, Any]:
        return {
            "v": _VERSION,
            "where": self.positions.dump(),
            "seen": dict(list(self.seen.items())[-_MAX_NAMES:]),
            "others": sorted(label.decode() for label in self.others)[:_MAX_NAMES],
            "events": self.events,
        }

    @classmethod
    def load(cls, form: Mapping[str, Any]) -> _State:
        return cls(
            Positions.load(form["where"]),
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
        self._found: Found | None = None
        self._stamps = Stamps()
        self._runs: list[Run] = []
        self._files: dict[str, list[str]] = {}
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
            changed = self._stamps.look(found.files)
            if changed or found is not self._found:
                self._group(found)
            return list(self._runs)

    def fetch(self, run: Run, cursor: Cursor | None, limit: int) -> Batch:
        """Read on in the event files of ``run``, by their names; see `Source.fetch`."""
        if run.key.run not in self._files:
            self.runs()
        paths = self._files.get(run.key.run)
        if paths is None:
            raise SourceError(f"{self._forest.path_of(run.key.run)} holds no event files any more")
        plain = [path for path in paths if not path.endswith(".gz")]
        if not plain and self._found and paths[0] in self._found.named:
            raise SourceError(f"{shown(paths[0])} is compressed; unpack it with gunzip")
        state, restart = _State(), None
        if cursor is not None:
            if cursor.get("v") == _VERSION:
                state = _State.load(cursor)
            else:
                restart = Restart("the position was stored by another version")
        batch = _read(self._names, plain, state, restart, max(limit, 1))
        if cursor is None and len(plain) < len(paths):
            compressed = {"compressed file": len(paths) - len(plain)}
            batch = replace(batch, skipped={**batch.skipped, **compressed})
        return batch

    def roots(self) -> Sequence[Path]:
        """The folders whose file events mean there may be something new."""
        return self._forest.folders()

    def close(self) -> None:
        """Nothing is held open between fetches."""

    def _group(self, found: Found) -> None:
        known, files, runs = self._known, {}, []
        grouped: dict[str, list[Stamp]] = {}
        for stamp in self._stamps.all:
            alone = stamp.path in found.named
            folder = stamp.path if alone else os.path.dirname(stamp.path)
            grouped.setdefault(folder, []).append(stamp)
        self._known = {}
        for folder, stamps in grouped.items():
            old = known.get(folder)
            run = old[1] if old and old[0] == stamps else self._seen(folder, stamps)
            self._known[folder] = (stamps, run)
            files[run.key.run] = sorted(stamp.path for stamp in stamps)
            runs.append(run)
        for path in found.broken:
            run = self._run(path)
            if files.setdefault(run.key.run, [path]) == [path]:
                runs.append(run)
        self._files, self._runs, self._found = files, runs, found

    def _seen(self, folder: str, stamps: list[Stamp]) -> Run:
        latest = max(stamp.mtime_ns for stamp in stamps)
        return replace(
            self._run(folder),
            last_activity=latest / 1e9,
            version=digest(repr([*map(tuple, stamps)]).encode()),
        )

    def _run(self, path: str) -> Run:
        run = self._forest.id_of(path)
        return Run(RunKey(self._name, run), shown(os.path.basename(path)) if run == "." else run)


def _read(
    names: Names, paths: Sequence[str], state: _State, restart: Restart | None, limit: int
) -> Batch:
    """Read what is new in a run's files, in the order of their names."""
    named = {file_name(path): path for path in paths}
    reader = Reader(names, limit, state.seen, state.others, restart)
    try:
        more = read_files(state.positions, named, reader)
    except Replaced as replaced:
        if state.seen:
            restart = Restart(f"{replaced} was replaced or cut")
        state = _State()
        reader = Reader(names, limit, state.seen, state.others, restart)
        more = read_files(state.positions, named, reader)
    reader.keep_seen()
    state.events += reader.events
    state.positions.tidy(named)
    return Batch(
        reader.points,
        state.dump(),
        more,
        reader.restart,
        dict(reader.skipped),
        f"event {state.events}",
        "step",
    )
