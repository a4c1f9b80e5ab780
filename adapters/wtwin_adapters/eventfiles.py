"""What event files are called and how they begin."""

from __future__ import annotations

from pathlib import Path

from wtwin_adapters.files import files_below
from wtwin_adapters.tfframes import HEADER, record_length
from wtwin_adapters.wire import fields
from wtwin_watch.protocols import Recognition

_COMPRESSED = "it is compressed; unpack it with gunzip"
_FIRST_EVENT = 1024


def is_event_file(name: str) -> bool:
    """Whether a file is called as event files are; compressed ones are too, to be refused."""
    return "tfevents" in name and not name.endswith(".profile-empty")


def recognise_events(path: Path) -> Recognition | None:
    """Say whether ``path`` is an event file, or a folder with some at any depth; else None."""
    options = {"path": str(path)}
    if path.is_dir():
        refused = None
        for name in files_below(path, is_event_file):
            if not name.endswith(".gz"):
                return Recognition("tensorboard", options)
            refused = refused or Recognition("tensorboard", {}, f"{name}: {_COMPRESSED}")
        return refused
    named = is_event_file(path.name)
    if not path.is_file():
        return None
    if named and path.suffix == ".gz":
        return Recognition("tensorboard", {}, _COMPRESSED)
    try:
        with path.open("rb") as file:
            head = file.read(HEADER + _FIRST_EVENT)
    except OSError:
        return None
    if _begins_as_events_do(head) or (named and len(head) < HEADER):
        return Recognition("tensorboard", options)
    return Recognition("tensorboard", {}, "it doesn't begin with an event") if named else None


def _begins_as_events_do(head: bytes) -> bool:
    """Whether the first record is an event that tells the file's version, as every writer begins."""
    if len(head) < HEADER:
        return False
    length = record_length(head[:HEADER])
    if length is None or HEADER + length > len(head):
        return False
    try:
        first = {number for number, *_ in fields(head, HEADER, HEADER + length)}
    except ValueError:
        return False
    return not first.isdisjoint({3, 5})
