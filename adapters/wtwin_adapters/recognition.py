"""Telling by its content what a file is: a table with a loss in it, one that has none, or neither."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wtwin_adapters.csvrows import has_number, split_header
from wtwin_adapters.jsonrows import flatten, objects
from wtwin_adapters.naming import is_loss
from wtwin_watch.metrics import Names
from wtwin_watch.protocols import Recognition

_CSV, _JSONL = (".csv", ".tsv"), (".jsonl", ".ndjson")
_HEAD = 1 << 16
_LONG_HEAD = 1 << 20
_LOOK_LINES = 50
_SHOWN = 12
_ANY = Names()


def recognise_table(path: Path) -> Recognition | None:
    """Say what ``path`` is as a table, or None if it isn't one. A refused file says why."""
    if not path.is_file():
        return None
    try:
        head = _read_head(path)
    except OSError:
        return None
    options = {"path": str(path)}
    extension = path.suffix.lower()
    ours = extension in _CSV + _JSONL
    named = "jsonl" if extension in _JSONL else "tsv" if extension == ".tsv" else "csv"
    if head.startswith(b"\x1f\x8b"):
        inner_ours = path.stem.lower().endswith(_CSV + _JSONL)
        return Recognition(named, {}, "it is compressed; unpack it first") if inner_ours else None
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Recognition(named, {}, "it is UTF-16; save it as UTF-8") if ours else None
    lines = _lines(head)
    if not lines:
        return Recognition(named, options) if ours else None
    if extension in _JSONL or lines[0].startswith(b"{"):
        return _as_json_lines(lines, options, ours=extension in _JSONL)
    if b"\0" in head and not ours:
        return None
    return _as_csv(lines, options, ours=ours)


def _as_json_lines(
    lines: list[bytes], options: dict[str, Any], *, ours: bool
) -> Recognition | None:
    rows = []
    for line in lines:
        try:
            rows += [flatten(row) for row in objects(line) if isinstance(row, dict)]
        except ValueError:
            if not rows:
                break
    names = list(dict.fromkeys(name for row in rows for name in row))
    if any(is_loss(name, _ANY) for name in names) and (ours or len(rows) > 1):
        return Recognition("jsonl", options)
    if not ours:
        return None
    return Recognition("jsonl", {}, _no_loss(names) if rows else "its lines are not JSON objects")


def _as_csv(lines: list[bytes], options: dict[str, Any], *, ours: bool) -> Recognition | None:
    texts = [line.decode("latin-1") for line in lines]
    refused = None
    for i, line in enumerate(texts):
        delimiter, columns = split_header(line, _ANY)
        kind = "tsv" if delimiter == "\t" else "csv"
        if has_number(columns):
            refused = refused or (
                kind,
                "its first line holds numbers, not the names of columns; give it a header line",
            )
        elif any(is_loss(name, _ANY) for name in columns):
            below = texts[i + 1].split(delimiter) if i + 1 < len(texts) else []
            # Elsewhere than in a .csv, one line of prose that names a loss proves nothing.
            if ours or (len(columns) > 1 and has_number(below) and len(below) == len(columns)):
                return Recognition(kind, options)
        else:
            refused = refused or (kind, _no_loss(columns))
    return Recognition(refused[0], {}, refused[1]) if ours and refused else None


def _no_loss(names: list[str]) -> str:
    shown = ", ".join(name for name in names[:_SHOWN] if name)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"no loss column among {shown}{more}; name the column by the option loss"


def _read_head(path: Path) -> bytes:
    with path.open("rb") as file:
        head = file.read(_HEAD)
        return head if b"\n" in head else head + file.read(_LONG_HEAD)


def _lines(head: bytes) -> list[bytes]:
    """The first lines that aren't blank; the last one only where it is the file's only one."""
    whole, _, rest = head.removeprefix(b"\xef\xbb\xbf").rpartition(b"\n")
    lines = [line for line in whole.split(b"\n") if line.strip(b"\0 \t\r")]
    if not lines and rest.strip(b"\0 \t\r"):
        lines = [rest]
    return lines[:_LOOK_LINES]
