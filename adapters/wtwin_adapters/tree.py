"""Finding log files by path, folder or pattern, and finding new ones again at little cost.

Looking again costs one ``stat`` a folder. A folder is listed again when its modification time changed,
and every `RESCAN_S` seconds in any case: some network file systems are late with folder times.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from operator import is_
from pathlib import Path

from wtwin_adapters.files import shown, unreadable
from wtwin_watch.errors import SourceError
from wtwin_watch.protocols import Clock

RESCAN_S = 5.0
"""Every folder is listed again after this long, seconds."""
_SCAN_SHARE = 0.01
"""Listing everything again takes at most this share of the time, so a huge tree is listed less often."""
_RACY_S = 0.05
"""A folder changed this shortly before it was listed may change again within one tick of its clock."""
_MAGIC = re.compile(r"[*?\[]")
_NEVER = frozenset({"lost+found"})
_OURS = re.compile(r".*\.db(-wal|-shm|-journal)?")

_INSIDE = -1

Accept = Callable[[str], bool]


class _Glob:
    """Matches a relative path component by component; a state is the set of components that may come.

    A folder that matches as a whole is searched itself: below it, the state holds `_INSIDE`.
    """

    def __init__(self, parts: Sequence[str]) -> None:
        # None stands for "**": any number of folders, none of them hidden.
        self._parts = [None if p == "**" else re.compile(fnmatch.translate(p)) for p in parts]
        self._hidden = [p.startswith(".") for p in parts]
        self.start = self._close({0})

    def step(self, state: frozenset[int], name: str) -> frozenset[int]:
        """Go into ``name``; an empty state means that nothing below can match."""
        reached = set()
        if not name.startswith(".") and not state.isdisjoint((_INSIDE, len(self._parts))):
            reached.add(_INSIDE)
        for i in state - {_INSIDE}:
            if i == len(self._parts) or (name.startswith(".") and not self._hidden[i]):
                continue
            part = self._parts[i]
            if part is None:
                reached.add(i)
            elif part.match(name):
                reached.add(i + 1)
        return self._close(reached)

    def complete(self, state: frozenset[int]) -> bool:
        """Whether the path walked so far matches as a whole."""
        return len(self._parts) in state

    def _close(self, state: set[int]) -> frozenset[int]:
        for i in sorted(state):
            j = i
            while 0 <= j < len(self._parts) and self._parts[j] is None:
                j += 1
                state.add(j)
        return frozenset(state)


@dataclass(slots=True)
class _Folder:
    mtime_ns: int
    racy: bool
    files: list[str]
    linked_files: list[str]
    folders: list[tuple[str, frozenset[int]]]
    links: list[tuple[str, frozenset[int]]]
    error: OSError | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What a look brought: files by path, links to files last, and folders that couldn't be listed."""

    files: list[str] = field(default_factory=list)
    broken: dict[str, OSError] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    """The files that were configured by themselves."""


class Tree:
    """The files that one configured path names: a file itself, a folder, or a pattern.

    In a folder, files at any depth whose name ``accept`` takes are found, and so in the folders that a
    pattern (``*``, ``?``, ``[]`` and ``**``) names. With ``literal``, a pattern that says more of a file's
    name than ``*`` is taken at its word. Hidden entries, databases (``.db``) and ``lost+found`` are passed
    over. A link to a folder is followed unless that folder was met already, so loops end.
    """

    def __init__(
        self, path: str, accept: Accept, clock: Clock = time, *, literal: bool = False
    ) -> None:
        self._literal = literal and os.path.basename(path) not in ("*", "**")
        self.path = os.path.abspath(os.path.expanduser(path))
        self._accept = accept
        self._clock = clock
        self._known: dict[str, _Folder] = {}
        self._found = Found()
        self._rescan_at = -1.0

    @cached_property
    def _is_pattern(self) -> bool:
        # A name may look like a pattern (run[1].csv); if it is there, it is meant.
        return bool(_MAGIC.search(self.path)) and not os.path.lexists(self.path)

    @cached_property
    def _base(self) -> str:
        if not self._is_pattern:
            return self.path
        fixed = takewhile(lambda part: not _MAGIC.search(part), self.path.split("/"))
        return "/".join(fixed) or "/"

    @cached_property
    def _glob(self) -> _Glob:
        if not self._is_pattern:
            return _Glob(["**", "*"])
        return _Glob(os.path.relpath(self.path, self._base).split("/"))

    @property
    def folder(self) -> str:
        """The folder that ids of runs are relative to, and whose events matter."""
        if self._is_pattern or os.path.isdir(self._base):
            return self._base
        return os.path.dirname(self._base)

    def look(self) -> Found:
        """Find the files there are now. The very same object comes back while nothing changed.

        Raises `SourceError` where the path isn't there or can't be listed.
        """
        try:
            status = os.stat(self._base)
        except OSError as error:
            raise unreadable(self._base, error) from error
        if stat.S_ISREG(status.st_mode) and not self._is_pattern:
            return self._update(Found([self._base], named=frozenset([self._base])))
        if not stat.S_ISDIR(status.st_mode):
            raise SourceError(
                f"{shown(self._base)} is neither a log file nor a folder; correct the source's path"
            )
        return self._walk(self._base)

    def _walk(self, base: str) -> Found:
        started = self._clock.monotonic()
        everything = started >= self._rescan_at
        known: dict[str, _Folder] = {}
        met: set[tuple[int, int]] = set()
        changed = everything
        stack = [(base, self._glob.start)]
        links: list[tuple[str, frozenset[int]]] = []
        while stack or links:
            path, state = stack.pop() if stack else links.pop(0)
            try:
                status = os.stat(path)
            except OSError as error:
                changed |= self._keep_broken(path, error, known)
                continue
            identity = (status.st_dev, status.st_ino)
            if identity in met:
                continue
            met.add(identity)
            folder = self._known.get(path)
            if (
                folder is None
                or everything
                or folder.racy
                or folder.error
                or folder.mtime_ns != status.st_mtime_ns
            ):
                folder = self._list(path, state, status.st_mtime_ns, folder)
                changed = True
            known[path] = folder
            stack += folder.folders
            links += folder.links
        if error_of_base := known[base].error if base in known else None:
            raise unreadable(base, error_of_base) from error_of_base
        if everything:
            cost = self._clock.monotonic() - started
            self._rescan_at = started + max(RESCAN_S, cost / _SCAN_SHARE)
        changed = changed or len(known) != len(self._known)
        self._known = known
        if not changed:
            return self._found
        files = sorted(f for folder in known.values() for f in folder.files)
        linked = sorted(f for folder in known.values() for f in folder.linked_files)
        return self._update(
            Found(files + linked, {p: f.error for p, f in known.items() if f.error})
        )

    def _update(self, found: Found) -> Found:
        if found.files != self._found.files or found.broken.keys() != self._found.broken.keys():
            self._found = found
        return self._found

    def _keep_broken(self, path: str, error: OSError, known: dict[str, _Folder]) -> bool:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            return True
        old = self._known.get(path)
        files, links = (old.files, old.linked_files) if old else ([], [])
        known[path] = _Folder(0, False, files, links, [], [], error)
        return True

    def _list(
        self, path: str, state: frozenset[int], mtime_ns: int, old: _Folder | None
    ) -> _Folder:
        racy = self._clock.time() - mtime_ns / 1e9 < _RACY_S
        folder = _Folder(mtime_ns, racy, [], [], [], [])
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if below := self._glob.step(state, entry.name):
                        self._sort_in(folder, entry, below)
        except FileNotFoundError:
            pass
        except OSError as error:
            # What was found before stays listed: unreadable is not the same as gone.
            folder = old or folder
            folder.error = error
        return folder

    def _sort_in(self, folder: _Folder, entry: os.DirEntry[str], state: frozenset[int]) -> None:
        try:
            is_folder = entry.is_dir()
            is_file = not is_folder and entry.is_file()
        except OSError as error:
            # A link into a place that can't be entered is a file to complain about when it is read.
            is_folder, is_file = False, error.errno != errno.ELOOP
        if is_folder and entry.name not in _NEVER:
            (folder.links if entry.is_symlink() else folder.folders).append((entry.path, state))
        elif is_file and not _OURS.fullmatch(entry.name):
            named = self._is_pattern and self._literal and self._glob.complete(state)
            inside = self._glob.complete(state) or _INSIDE in state
            if named or (inside and self._accept(entry.name)):
                (folder.linked_files if entry.is_symlink() else folder.files).append(entry.path)


class Forest:
    """All paths of a source together: each file once, and ids relative to what the paths share."""

    def __init__(
        self, paths: Sequence[str], accept: Accept, clock: Clock = time, *, literal: bool = False
    ) -> None:
        self._trees = [Tree(path, accept, clock, literal=literal) for path in paths]
        self._parts: list[Found] = []
        self._found = Found()

    def look(self) -> Found:
        """Find the files of every path. The very same object comes back while nothing changed.

        Raises `SourceError` if one of the paths can't be read.
        """
        if len(self._trees) == 1:
            return self._trees[0].look()
        before, parts = self._parts, [tree.look() for tree in self._trees]
        if len(parts) == len(before) and all(map(is_, parts, before)):
            return self._found
        files = list(dict.fromkeys(f for part in parts for f in part.files))
        broken = {path: error for part in parts for path, error in part.broken.items()}
        self._parts = parts
        self._found = Found(files, broken, frozenset().union(*(part.named for part in parts)))
        return self._found

    def folders(self) -> list[Path]:
        """The folders whose events matter."""
        return [Path(f) for f in dict.fromkeys(tree.folder for tree in self._trees)]

    def id_of(self, path: str) -> str:
        """Name ``path`` within the source: relative, and always valid Unicode."""
        relative = os.path.relpath(path, self._shared())
        return shown(relative)

    def path_of(self, run: str) -> str:
        """The path that `id_of` gave ``run``, if its name is plain Unicode."""
        return os.path.normpath(os.path.join(self._shared(), run))

    def _shared(self) -> str:
        return os.path.commonpath([tree.folder for tree in self._trees])
