"""The runs of a source of log files, listed anew at the cost of one ``stat`` a file."""

from __future__ import annotations

import math
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass

from wtwin_adapters.files import shown
from wtwin_adapters.tail import AT_REST_S
from wtwin_adapters.tree import Forest
from wtwin_watch.model import Run, RunKey

_STATE = "/trainer_state.json"
_EXTENSION = re.compile(
    r"(?:\.(?:csv|tsv|jsonl|ndjson|log|out|err|txt)(?:\.gz)?|(?:/trainer_state)?\.json)$"
)
Choose = Callable[[list[str], frozenset[str]], list[tuple[str, str]]]
"""Chooses the logs among files found, some of which were named by themselves."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A file as it was last seen; its run is made anew only when it changed."""

    run: Run
    path: str
    inode: int
    size: int
    mtime_ns: int
    rests_at: float


class RunList:
    """Knows the files of a source as runs, by the path that names each and the one that is read."""

    def __init__(self, name: str, forest: Forest) -> None:
        self._name = name
        self._forest = forest
        self._known: dict[str, _Known] = {}
        self._paths: dict[str, str] = {}
        self._lock = threading.Lock()

    def runs(self, now: float, choose: Choose) -> list[Run]:
        """List a run for each file ``choose`` takes, and one for each folder that can't be listed."""
        with self._lock:
            found = self._forest.look()
            known, met, runs = self._known, set(), []
            self._known = {}
            for named, path in choose(found.files, found.named):
                try:
                    status = os.stat(path)
                except FileNotFoundError:
                    continue
                except OSError:
                    runs.append(self._broken(named, path))
                    continue
                identity = (status.st_dev, status.st_ino)
                if identity in met:
                    continue
                met.add(identity)
                file = known.get(named)
                if (
                    file is None
                    or file.path != path
                    or file.mtime_ns != status.st_mtime_ns
                    or file.size != status.st_size
                    or file.inode != status.st_ino
                    or file.rests_at <= now
                ):
                    file = self._seen(named, path, status, now)
                self._known[named] = file
                runs.append(file.run)
            runs += [self._broken(path, path) for path in found.broken]
            return runs

    def path_of(self, run: str) -> str:
        """Where the run of this id is read."""
        return self._paths.get(run) or self._forest.path_of(run)

    def _seen(self, named: str, path: str, status: os.stat_result, now: float) -> _Known:
        # When a file has come to rest, it is fetched once more for a last line without its end.
        rests_at = status.st_mtime + AT_REST_S
        at_rest = rests_at <= now
        version = f"{status.st_dev:x}-{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"
        run = Run(
            self._key(named, path),
            self._title(named),
            last_activity=status.st_mtime,
            version=f"{version}-rest" if at_rest else version,
        )
        return _Known(
            run,
            path,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            math.inf if at_rest else rests_at,
        )

    def _broken(self, named: str, path: str) -> Run:
        return Run(self._key(named, path), self._title(named))

    def _key(self, named: str, path: str) -> RunKey:
        run = self._forest.id_of(named)
        self._paths[run] = path
        return RunKey(self._name, run)

    def _title(self, path: str) -> str:
        """The id without its extension; for a file given by itself, with the folder it lies in."""
        run = self._forest.id_of(path)
        title = _EXTENSION.sub("", run)
        if "/" in run and ("/" in title or run.endswith(_STATE)):
            return title
        return f"{shown(os.path.basename(os.path.dirname(path)))}/{title}".lstrip("/")
