"""CSV, TSV and JSON Lines logs, read as they grow: the adapter ``csv``.

One file is one run. ``path`` names a file, a folder (its files ``.csv``, ``.tsv``, ``.jsonl`` and
``.ndjson`` at any depth) or a pattern of files or folders, or a list of them.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wtwin_adapters.files import opened, shown
from wtwin_adapters.options import LineOptions
from wtwin_adapters.recognition import recognise_table
from wtwin_adapters.tail import AT_REST_S, Tail
from wtwin_adapters.tree import Forest
from wtwin_watch.model import Batch, Cursor, Run, RunKey
from wtwin_watch.protocols import Clock, Recognition, SourceOptions

EXTENSIONS = (".csv", ".tsv", ".jsonl", ".ndjson")
_JSONL = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class _Known:
    """A file as it was last seen; its run is made anew only when it changed."""

    run: Run
    inode: int
    size: int
    mtime_ns: int
    rests_at: float


class TabularSource:
    """Log files with a row a step.

    Listing costs one ``stat`` a file and a folder. Fetching costs what is new.
    """

    Options: ClassVar[type[SourceOptions]] = LineOptions
    interval_s: ClassVar[float] = 2.0
    extra: ClassVar[str | None] = None

    def __init__(self, name: str, options: LineOptions, clock: Clock = time) -> None:
        self._name = name
        self._names = options.names
        self._finished = options.finished
        self._clock = clock
        self._forest = Forest(options.paths, _is_log, clock, literal=True)
        self._known: dict[str, _Known] = {}
        self._paths: dict[str, str] = {}
        self._lock = threading.Lock()

    @staticmethod
    def recognise(path: Path) -> Recognition | None:
        """Say by its content whether ``path`` is a table; a folder may hold many kinds and is none."""
        return recognise_table(path)

    def runs(self) -> Iterable[Run]:
        """List a run for each file, and one for each folder that can't be listed: fetching says why.

        Raises `SourceError` where a configured path can't be read.
        """
        with self._lock:
            found = self._forest.look()
            known, met, runs, now = self._known, set(), [], self._clock.time()
            self._known = {}
            for path in found.files:
                try:
                    status = os.stat(path)
                except FileNotFoundError:
                    continue
                except OSError:
                    runs.append(self._broken(path))
                    continue
                identity = (status.st_dev, status.st_ino)
                if identity in met:
                    continue
                met.add(identity)
                file = known.get(path)
                if (
                    file is None
                    or file.mtime_ns != status.st_mtime_ns
                    or file.size != status.st_size
                    or file.inode != status.st_ino
                    or file.rests_at <= now
                ):
                    file = self._seen(path, status, now)
                self._known[path] = file
                runs.append(file.run)
            runs += [self._broken(path) for path in found.broken]
            return runs

    def fetch(self, run: Run, cursor: Cursor | None, limit: int) -> Batch:
        """Read on in the file of ``run``; see `wtwin_watch.protocols.Source.fetch`."""
        path = self._paths.get(run.key.run) or self._forest.path_of(run.key.run)
        with opened(path) as fd:
            at_rest = self._finished or self._clock.time() - os.fstat(fd).st_mtime >= AT_REST_S
            tail = Tail(fd, self._names, jsonl=path.endswith(_JSONL), at_rest=at_rest)
            return tail.read(cursor, limit)

    def roots(self) -> Sequence[Path]:
        """The folders whose file events mean there may be something new."""
        return self._forest.folders()

    def close(self) -> None:
        """Nothing is held open between fetches."""

    def _seen(self, path: str, status: os.stat_result, now: float) -> _Known:
        # When a file has come to rest, it is fetched once more for a last line without its end.
        rests_at = status.st_mtime + AT_REST_S
        at_rest = rests_at <= now
        version = f"{status.st_dev:x}-{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"
        run = Run(
            self._key(path),
            self._title(path),
            last_activity=status.st_mtime,
            version=f"{version}-rest" if at_rest else version,
        )
        return _Known(
            run,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            math.inf if at_rest else rests_at,
        )

    def _broken(self, path: str) -> Run:
        return Run(self._key(path), self._title(path))

    def _key(self, path: str) -> RunKey:
        run = self._forest.id_of(path)
        self._paths[run] = path
        return RunKey(self._name, run)

    def _title(self, path: str) -> str:
        """The id without its extension; for a file given by itself, with the folder it lies in."""
        run = self._forest.id_of(path)
        stem, extension = os.path.splitext(run)
        title = stem if extension in EXTENSIONS else run
        if "/" in title:
            return title
        return f"{shown(os.path.basename(os.path.dirname(path)))}/{title}".lstrip("/")


def _is_log(name: str) -> bool:
    return name.endswith(EXTENSIONS)
