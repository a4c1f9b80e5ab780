"""Opening log files and telling whether a file is still the one that was read before."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from wtwin_watch.errors import SourceError

_MAX_LOOKED_AT = 10_000


def digest(data: bytes) -> str:
    """Name bytes by 16 hex digits: enough to see that a file changed, not a matter of security."""
    return blake2b(data, digest_size=8).hexdigest()


def shown(path: str) -> str:
    """``path`` as valid Unicode: bytes of a name that aren't UTF-8 are spelt out, as in ``caf\\xe9``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def unreadable(path: str, error: OSError) -> SourceError:
    """Say that ``path`` can't be read, why, and what to do about it."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        cure = "create it or correct the source's path"
    elif isinstance(error, PermissionError):
        cure = "give the user that runs wtwin-watch the right to read it"
    else:
        cure = "check the disk or mount it lies on"
    return SourceError(f"{shown(path)} can't be read: {error.strerror or error}; {cure}")


GZIP = b"\x1f\x8b"
"""What a compressed file begins with."""


@contextmanager
def unpacked(path: str) -> Iterator[int]:
    """Open as `opened` does; of a compressed file (gzip), give what is in it. Raises `SourceError`.

    Compressed logs are finished ones. They are unpacked into a temporary file each time.
    """
    with opened(path) as fd:
        if os.pread(fd, len(GZIP), 0) != GZIP:
            yield fd
            return
        with tempfile.TemporaryFile() as whole:
            try:
                with os.fdopen(os.dup(fd), "rb") as packed, gzip.GzipFile(fileobj=packed) as file:
                    shutil.copyfileobj(file, whole)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise SourceError(
                    f"{shown(path)} can't be unpacked: {error}; copy it again"
                ) from error
            whole.flush()
            yield whole.fileno()


@contextmanager
def opened(path: str) -> Iterator[int]:
    """Open a regular file for reading and give its descriptor. Raises `SourceError`."""
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to would never return.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise SourceError(f"{shown(path)} is not a file; the source's path must name log files")
        yield fd
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        os.close(fd)


def files_below(folder: Path, accept: Callable[[str], bool]) -> Iterator[str]:
    """Names of the files that ``accept`` takes, relative to ``folder`` and at any depth, hidden ones not.

    Gives up after ten thousand files.
    """
    looked_at = 0
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if accept(name) and not name.startswith("."):
                yield os.path.relpath(os.path.join(path, name), folder)
        looked_at += len(names)
        if looked_at > _MAX_LOOKED_AT:
            return
