"""Log files of every kind, each read as what its content is: the adapter ``log``.

One file is one run; of the ``trainer_state.json`` files that a run keeps with its checkpoints, the newest
is read. ``path`` names files, folders (logs at any depth) or patterns.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from glob import escape, glob
from pathlib import Path
from typing import ClassVar

from wtwin_adapters.csvrows import CsvRows
from wtwin_adapters.documents import is_trainer_state, read_document
from wtwin_adapters.files import shown, unpacked
from wtwin_adapters.jsonrows import JsonRows
from wtwin_adapters.options import LogOptions
from wtwin_adapters.recognition import (
    CSV,
    HEAD,
    JSONL,
    LONG_HEAD,
    NO_STEPS,
    TEXT,
    TRAINER_STATE,
    first_lines,
    is_document,
    recognise_log,
    recognise_table,
    recognise_trainer,
    table_kind,
    text_pattern,
)
from wtwin_adapters.runlist import RunList
from wtwin_adapters.tail import AT_REST_S, MAX_LINE, Rows, Tail
from wtwin_adapters.textrows import TextRows, own_pattern
from wtwin_adapters.tree import Forest
from wtwin_watch.errors import SourceError
from wtwin_watch.model import Batch, Cursor, Run
from wtwin_watch.protocols import Clock, Recognition, SourceOptions

_CHECKPOINT = re.compile(r"(?P<run>.*/)checkpoint-(?P<step>\d+)/trainer_state\.json")
_GLOBAL_STEP = re.compile(rb'"global_step"\s*:\s*(\d+)')
_TOLD_BYTES = 1 << 20
_TOLD_AFTER_S = 1800.0
"""A log without a loss is refused at this size, or so long after it was first looked at."""


class LogSource:
    """Log files of every kind.

    Listing costs one ``stat`` a file and a folder, and a look into each file that is new. Fetching costs
    what is new, but of a JSON document it costs the whole each time.
    """

    Options: ClassVar[type[SourceOptions]] = LogOptions
    interval_s: ClassVar[float] = 2.0
    extra: ClassVar[str | None] = None
    extensions: ClassVar[tuple[str, ...]] = (*CSV, *JSONL, *TEXT, ".json")
    """What is looked into where a folder is searched."""
    tables: ClassVar[tuple[str, ...]] = ()
    """Files ending so are taken for tables whatever is in them."""

    def __init__(self, name: str, options: LogOptions, clock: Clock = time) -> None:
        self._names = options.names
        self._finished = options.finished
        self._own = own_pattern(options.pattern) if options.pattern is not None else None
        self._clock = clock
        self._forest = Forest(options.paths, self._is_log, clock, literal=True)
        self._list = RunList(name, self._forest)
        # What a look into a file said, until the file has grown by a quarter.
        self._looked: dict[str, tuple[int, int, bool]] = {}

    @staticmethod
    def recognise(path: Path) -> Recognition | None:
        """Say by its content whether ``path`` is a text log or a list of JSON objects."""
        return recognise_log(path)

    def runs(self) -> Iterable[Run]:
        """List a run for each log, and one for each folder that can't be listed: fetching says why.

        Raises `SourceError` where a configured path can't be read.
        """
        return self._list.runs(self._clock.time(), self._logs)

    def fetch(self, run: Run, cursor: Cursor | None, limit: int) -> Batch:
        """Read on in the file of ``run``; see `wtwin_watch.protocols.Source.fetch`."""
        path = self._list.path_of(run.key.run)
        if not os.path.lexists(path):
            path = _newest(
                glob(f"{escape(os.path.dirname(path))}/checkpoint-*/{TRAINER_STATE}"), path
            )
        with unpacked(path) as fd:
            status = os.fstat(fd)
            at_rest = self._finished or self._clock.time() - status.st_mtime >= AT_REST_S
            if self._is_document(path, fd, cursor):
                return read_document(fd, cursor, limit, self._names, at_rest=at_rest)
            chosen: list[Rows] = []

            def choose() -> Rows | None:
                rows = self._choose(path, fd, at_rest=at_rest)
                chosen.extend([rows] if rows else [])
                return rows

            tail = Tail(fd, self._names, choose, at_rest=at_rest, own=self._own)
            batch = tail.read(cursor, limit)
            if batch.cursor["format"] is not None or chosen:
                return batch
            waiting = self._waiting(cursor, status)
            over = self._clock.time() - waiting["since"] >= _TOLD_AFTER_S
            if (at_rest or over or status.st_size >= _TOLD_BYTES) and status.st_size:
                raise SourceError(f"{shown(path)} can't be watched: {NO_STEPS}")
            return replace(batch, cursor={**batch.cursor, **waiting}, position="no loss yet")

    def roots(self) -> Sequence[Path]:
        """The folders whose file events mean there may be something new."""
        return self._forest.folders()

    def close(self) -> None:
        """Nothing is held open between fetches."""

    def _is_log(self, name: str) -> bool:
        return name.endswith(self.extensions)

    def _logs(self, files: list[str], named: frozenset[str]) -> list[tuple[str, str]]:
        """Choose the logs among ``files``: pairs of the path a run is named by and the one to read."""
        states: dict[str, list[str]] = {}
        logs: list[tuple[str, str]] = []
        for path in files:
            if path in named or not path.endswith(self.extensions):
                logs.append((path, path))
            elif os.path.basename(path) == TRAINER_STATE:
                found = _CHECKPOINT.fullmatch(path)
                states.setdefault(found["run"] + TRAINER_STATE if found else path, []).append(path)
            elif path.endswith(self.tables) or self._has_losses(path):
                logs.append((path, path))
        return logs + [(run, _newest(paths, run)) for run, paths in states.items()]

    def _has_losses(self, path: str) -> bool:
        """Whether a file found in a folder is a log; one that isn't may become one as it grows."""
        try:
            status = os.stat(path)
        except OSError:
            return True  # fetching says why
        inode, size, said = self._looked.get(path, (-1, -1, False))
        if (
            inode != status.st_ino
            or status.st_size < size
            or (not said and status.st_size > 1.25 * size)
        ):
            said = (
                self._own is not None
                or recognise_table(Path(path)) is not None
                or recognise_log(Path(path)) is not None
            )
            self._looked[path] = status.st_ino, status.st_size, said
        return said

    def _waiting(self, cursor: Cursor | None, status: os.stat_result) -> dict[str, float]:
        """Since when this very file has been waited for to tell a loss: a part of the cursor."""
        if cursor is not None and cursor.get("inode") == status.st_ino and "since" in cursor:
            return {"since": cursor["since"], "inode": status.st_ino}
        return {"since": self._clock.time(), "inode": status.st_ino}

    def _is_document(self, path: str, fd: int, cursor: Cursor | None) -> bool:
        if cursor is not None and cursor.get("format") is not None:
            return bool(cursor["format"] == "document")
        if path.endswith((*CSV, *JSONL, *self.tables)):
            return False
        head = os.pread(fd, HEAD, 0)
        if is_trainer_state(head):
            return True
        return head.lstrip()[:1] == b"[" and is_document(_whole(fd), self._names)

    def _choose(self, path: str, fd: int, *, at_rest: bool) -> Rows | None:
        """Say how a log is read that begins as this one does; None where that can't be told yet."""
        if self._own is not None:
            return TextRows(self._names, {"pattern": self._own.name}, self._own)
        head = os.pread(fd, HEAD, 0)
        extension = os.path.splitext(path.removesuffix(".gz"))[1].lower()
        if extension in CSV + JSONL or path.endswith(self.tables):
            text = _first_text(fd)
            if b"\n" not in text and not at_rest and len(text) <= MAX_LINE:
                return None
            jsonl = extension in JSONL or text.startswith(b"{")
            return JsonRows(self._names) if jsonl else CsvRows(self._names)
        lines = first_lines(head)
        if not lines:
            return None
        kind, refused = table_kind(lines, self._names)
        if kind is not None and refused is None:
            return JsonRows(self._names) if kind == "jsonl" else CsvRows(self._names)
        pattern = text_pattern(os.pread(fd, LONG_HEAD, 0), self._names)
        return TextRows(self._names, {"pattern": pattern.name}) if pattern is not None else None


class TrainerSource(LogSource):
    """The ``trainer_state.json`` of Hugging Face's Trainer, which lies with each checkpoint."""

    extensions: ClassVar[tuple[str, ...]] = (TRAINER_STATE,)

    @staticmethod
    def recognise(path: Path) -> Recognition | None:
        """Say whether ``path`` is such a file, or a folder with checkpoints that hold one."""
        return recognise_trainer(path)


def _newest(states: list[str], otherwise: str) -> str:
    """The ``trainer_state.json`` that has come farthest: of the last checkpoint, or of the run's end."""
    if len(states) == 1:
        return states[0]  # most often, and then nothing has to be opened
    return max(
        states, default=otherwise, key=lambda path: (_reached(path), "/checkpoint-" not in path)
    )


def _reached(path: str) -> int:
    found = _CHECKPOINT.fullmatch(path)
    if found:
        return int(found["step"])
    try:
        with open(path, "rb") as file:
            step = _GLOBAL_STEP.search(file.read(HEAD))
    except OSError:
        return 0
    return int(step[1]) if step else 0


def _first_text(fd: int) -> bytes:
    """The first bytes of a file that aren't blank, up to a line's longest length."""
    at = 0
    while chunk := os.pread(fd, MAX_LINE, at):
        text = chunk.removeprefix(b"\xef\xbb\xbf").lstrip(b"\0 \t\r\n")
        if text:
            return text + (b"" if b"\n" in text else os.pread(fd, MAX_LINE, at + len(chunk)))
        at += len(chunk)
    return b""


def _whole(fd: int) -> bytes:
    with os.fdopen(os.dup(fd), "rb") as file:
        file.seek(0)
        return file.read()
