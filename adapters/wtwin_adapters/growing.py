"""Reading on in a run that lies in several files, any of which may still grow, be replaced or deleted."""

from __future__ import annotations

import base64
import os
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Protocol

from wtwin_adapters.files import digest, opened, shown, unreadable

MANY = 256
"""So many files of a run are remembered in full; of others that were read to their end, how far that was."""
HEAD = 64
"""So many bytes of a file's beginning tell whether it is still the same."""
_PAST = struct.Struct("<8sQQ")


@dataclass(slots=True)
class Position:
    """How far one file was read; `dump` is its part of a cursor."""

    offset: int = 0
    part: int = 0
    """Values of the next record already given away, where it has more than a limit."""
    head: str = ""
    """The file's beginning, as a digest; empty where that is not known any more."""
    size: int = -1
    """Its size when it was last read to its end, else -1."""
    mtime_ns: int = 0
    damaged: bool = False
    """Reading stopped at something that is no record, and that was told."""
    used: bool = False
    """It has given points."""

    def dump(self) -> list[Any]:
        """Give the JSON form."""
        rest = [self.head, self.size, self.mtime_ns, self.damaged, self.used]
        return [self.offset, self.part, *rest]


@dataclass(slots=True)
class Positions:
    """How far the files of a run were read. ``dump`` and ``load`` are the JSON form."""

    files: dict[str, Position] = field(default_factory=dict)
    past: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    """Files beyond the newest `MANY`, by the digests of their names: offset and size."""
    current: str = ""
    """The file that the last points came from."""

    def dump(self) -> dict[str, Any]:
        """Give the JSON form: about a hundred bytes a file, 32 for each of those that are ``past``."""
        past = b"".join(_PAST.pack(short, *ends) for short, ends in sorted(self.past.items()))
        return {
            "files": {name: position.dump() for name, position in self.files.items()},
            "past": base64.b64encode(past).decode(),
            "current": self.current,
        }

    @classmethod
    def load(cls, form: Mapping[str, Any]) -> Positions:
        """Read the JSON form."""
        files = {name: Position(*position) for name, position in form["files"].items()}
        packed = _PAST.iter_unpack(base64.b64decode(form["past"]))
        past = {short: (offset, size) for short, offset, size in packed}
        return cls(files, past, form["current"])

    def of(self, name: str) -> Position | None:
        """How far the file was read; None if it wasn't met yet."""
        position = self.files.get(name)
        if position is None and self.past and (ends := self.past.get(_short(name))):
            return Position(ends[0], size=ends[1], used=True)
        return position

    def tidy(self, names: Iterable[str]) -> None:
        """Forget files that are gone, and keep no more than needed of those long read.

        ``names`` are those that are there, the oldest first.
        """
        there = list(names)
        self.files = {name: self.files[name] for name in there if name in self.files}
        if self.past:
            shorts = {_short(name) for name in there if name not in self.files}
            self.past = {short: ends for short, ends in self.past.items() if short in shorts}
        surplus = len(self.files) - MANY
        if surplus > 0:
            read = [name for name, p in self.files.items() if p.size >= 0 and not p.part]
            for name in read[:surplus]:
                position = self.files.pop(name)
                self.past[_short(name)] = position.offset, position.size


class FileReader(Protocol):
    """What reads the files one by one and holds what they gave."""

    @property
    def full(self) -> bool:
        """Nothing more may be read into it: the rest is for the next fetch."""
        ...

    @property
    def given(self) -> int:
        """How many points it holds."""
        ...

    @property
    def begun(self) -> bool:
        """It holds something already, so that a restart must wait for the next fetch."""
        ...

    def next_file(self, *, beside: bool) -> None:
        """Get ready for another file; one written ``beside`` the last has steps of its own."""
        ...

    def read(self, path: str, fd: int, size: int, position: Position) -> None:
        """Read the file at ``path`` on up to ``size``, moving ``position``. Raises `SourceError`."""
        ...


class Replaced(Exception):
    """A file isn't the one any more that was read before; ``args`` holds its name."""


def file_name(path: str) -> str:
    """What a file is called in a cursor."""
    return shown(os.path.basename(path))


def read_files(positions: Positions, paths: Mapping[str, str], reader: FileReader) -> bool:
    """Read what is new in the files, in the order given; says whether there is more.

    ``paths`` by the names that the cursor has for them. Costs a ``stat`` a file and what is new. Raises
    `Replaced` where a file was replaced or cut, and `SourceError` where one can't be read.
    """
    for name, path in paths.items():
        known = positions.of(name)
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise unreadable(path, error) from error
        if known and known.size == status.st_size and known.mtime_ns in (0, status.st_mtime_ns):
            continue
        with opened(path) as fd:
            status = os.fstat(fd)
            if known and not is_same(fd, status.st_size, known):
                if reader.begun:
                    return True
                raise Replaced(name)
            position = positions.files[name] = known or Position()
            positions.past.pop(_short(name), None)
            if name != positions.current:
                # A file that gave points before and another since then: two writers at once.
                reader.next_file(beside=position.used)
            before = reader.given
            reader.read(path, fd, status.st_size, position)
            if reader.given > before:
                positions.current, position.used = name, True
            position.head = digest(os.pread(fd, min(HEAD, position.offset), 0))
            position.size = -1 if reader.full else status.st_size
            position.mtime_ns = status.st_mtime_ns
        if reader.full:
            return True
    return False


def is_same(fd: int, size: int, position: Position) -> bool:
    """Whether a file begins as the one that was read, and is not shorter."""
    if size < position.offset:
        return False
    head = os.pread(fd, min(HEAD, position.offset), 0)
    return not position.head or digest(head) == position.head


def _short(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=8).digest()
