"""What a ``stat`` says of each of many files; where nothing changed, finding that costs little more."""

from __future__ import annotations

import os
from typing import NamedTuple


class Stamp(NamedTuple):
    """A file as it was seen; all but the path are 0 where it may not be looked at."""

    path: str
    inode: int = 0
    size: int = 0
    mtime_ns: int = 0


class Stamps:
    """The stamps of the files of the last look, each file once though it has several names."""

    def __init__(self) -> None:
        self.all: list[Stamp] = []
        self._files: list[str] | None = None

    def look(self, files: list[str]) -> bool:
        """Look at ``files``, and say whether anything changed since the last look.

        Which files there are is taken to be the same where the very same list is given again.
        """
        if files is self._files and not self._changed():
            return False
        self._files = files
        self.all = _stamps(files)
        return True

    def _changed(self) -> bool:
        stat = os.stat
        try:
            for path, inode, size, mtime_ns in self.all:
                status = stat(path)
                if (
                    status.st_mtime_ns != mtime_ns
                    or status.st_size != size
                    or status.st_ino != inode
                ):
                    return True
        except OSError:
            return True
        return False


def _stamps(files: list[str]) -> list[Stamp]:
    stamps, met = [], set()
    for path in files:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        except OSError:
            # It stays among the files, so that reading it says what is wrong with it.
            stamps.append(Stamp(path))
            continue
        identity = (status.st_dev, status.st_ino)
        if identity not in met:
            met.add(identity)
            stamps.append(Stamp(path, status.st_ino, status.st_size, status.st_mtime_ns))
    return stamps
