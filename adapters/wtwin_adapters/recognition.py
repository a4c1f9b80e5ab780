"""Telling by its content what a file is: a table, a text log or a document with a loss in it, or neither."""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path

from wtwin_adapters.csvrows import has_number, split_header
from wtwin_adapters.documents import MAX_BYTES, is_trainer_state, rows_of
from wtwin_adapters.files import GZIP
from wtwin_adapters.jsonrows import flatten, objects
from wtwin_adapters.naming import is_loss
from wtwin_adapters.patterns import Pattern
from wtwin_adapters.textrows import choose_pattern, lines_of, tells_training
from wtwin_watch.metrics import Names
from wtwin_watch.protocols import Recognition

CSV, JSONL = (".csv", ".tsv"), (".jsonl", ".ndjson")
TEXT = (".log", ".out", ".err", ".txt")
TRAINER_STATE = "trainer_state.json"
HEAD = 1 << 16
LONG_HEAD = 1 << 23
"""A text log's first loss is looked for in this many bytes: some print their source and settings first."""
_LOOK_LINES = 50
_SHOWN = 12
_ANY = Names()
_BLANK = b"\0 \t\r"
_A_LOSS = re.compile(rb"(?i)loss[^\r\n]{0,80}\d")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_DOCUMENT = re.compile(rb"\s*\[\s*\{")


def recognise_table(path: Path) -> Recognition | None:
    """Say what ``path`` is as a table, or None if it isn't one. A refused file says why."""
    head = _read(path, HEAD)
    if head is not None and b"\n" not in head:
        head = _read(path, HEAD + (1 << 20))
    options = {"path": str(path)}
    extension = _extension(path)
    ours = extension in CSV + JSONL
    named = "jsonl" if extension in JSONL else "tsv" if extension == ".tsv" else "csv"
    if head is None:
        damaged = ours and path.suffix.lower() == ".gz" and path.is_file()
        return Recognition(named, {}, "it can't be unpacked; copy it again") if damaged else None
    if head.startswith(_UTF_16):
        return Recognition(named, {}, WIDE) if ours else None
    lines = _lines(head)
    if not lines:
        return Recognition(named, options) if ours else None
    kind, refused = table_kind(lines, _ANY, extension)
    if kind is None or (b"\0" in head and not ours and kind != "jsonl"):
        return None
    return Recognition(kind, {} if refused else options, refused)


def recognise_log(path: Path) -> Recognition | None:
    """Say what ``path`` is as a text log or a document, or None if it is neither; tables are not for it."""
    if recognise_table(path) is not None or _extension(path) in CSV + JSONL:
        return None
    head = _read(path, LONG_HEAD)
    if head is not None and _DOCUMENT.match(head):
        head = _read(path, MAX_BYTES)
    if head is None:
        return None
    options = {"path": str(path)}
    if head.startswith(_UTF_16):
        # So does PowerShell write what is redirected with >.
        return Recognition("text", {}, WIDE) if _extension(path) in TEXT else None
    if is_trainer_state(head[:HEAD]) or b"\0" in head[:HEAD]:
        return None
    if is_document(head, _ANY):
        return Recognition("json", options)
    lines = lines_of(head)
    pattern = choose_pattern(lines, _ANY)
    if pattern is not None:
        if not tells_training(pattern, lines, _ANY):
            return Recognition(f"text: {pattern.name}", {}, ONLY_VALIDATION)
        return Recognition(f"text: {pattern.name}", options)
    if _extension(path) in TEXT and _A_LOSS.search(head):
        return Recognition("text", {}, NO_STEPS)
    return None


NO_STEPS = (
    "no line has both a step and a loss; if it tells them in a way of its own, give a regular expression"
    " by the option pattern"
)
WIDE = "it is UTF-16; save it as UTF-8"
ONLY_VALIDATION = "it tells no loss but that of validation; name that by the option loss"


def recognise_trainer(path: Path) -> Recognition | None:
    """Say whether ``path`` is a ``trainer_state.json``, or a folder that keeps them with its checkpoints."""
    if path.is_dir():
        states = path.glob(f"checkpoint-*/{TRAINER_STATE}")
        return Recognition("trainer_state", {"path": str(path)}) if any(states) else None
    head = _read(path, HEAD)
    if head is None or not is_trainer_state(head):
        return None
    return Recognition("trainer_state", {"path": str(path)})


def table_kind(
    lines: list[bytes], names: Names, extension: str = ""
) -> tuple[str | None, str | None]:
    """Say which kind of table begins with ``lines``, and why it is refused; None and None if it is none."""
    if extension in JSONL or lines[0].startswith(b"{"):
        return _as_json_lines(lines, names, ours=extension in JSONL)
    return _as_csv(lines, names, ours=extension in CSV)


def is_document(content: bytes, names: Names) -> bool:
    """Whether ``content`` is a list of JSON objects with a loss among them."""
    if not _DOCUMENT.match(content):
        return False
    try:
        rows = rows_of(content) or []
    except ValueError:
        return False
    return any(is_loss(name, names) for row in rows[:_LOOK_LINES] for name in row)


def text_pattern(head: bytes, names: Names) -> Pattern | None:
    """Choose the pattern of a text log that begins with ``head``."""
    return None if b"\0" in head[:HEAD] else choose_pattern(lines_of(head), names)


def first_lines(head: bytes) -> list[bytes]:
    """The first lines that aren't blank; the last one only where it is the file's only one."""
    return _lines(head)


def _as_json_lines(
    lines: list[bytes], names: Names, *, ours: bool
) -> tuple[str | None, str | None]:
    rows = []
    for line in lines:
        try:
            rows += [flatten(row) for row in objects(line) if isinstance(row, dict)]
        except ValueError:
            if not rows:
                break
    keys = list(dict.fromkeys(name for row in rows for name in row))
    if any(is_loss(name, names) for name in keys) and (ours or len(rows) > 1):
        return "jsonl", None
    if not ours:
        return None, None
    return "jsonl", _no_loss(keys) if rows else "its lines are not JSON objects"


def _as_csv(lines: list[bytes], names: Names, *, ours: bool) -> tuple[str | None, str | None]:
    texts = [line.decode("latin-1") for line in lines]
    refused = None
    for i, line in enumerate(texts):
        delimiter, columns = split_header(line, names)
        kind = "tsv" if delimiter == "\t" else "csv"
        if has_number(columns):
            refused = refused or (
                kind,
                "its first line holds numbers, not the names of columns; give it a header line",
            )
        elif any(is_loss(name, names) for name in columns):
            below = texts[i + 1].split(delimiter) if i + 1 < len(texts) else []
            # Elsewhere than in a .csv, one line of prose that names a loss proves nothing.
            if ours or (len(columns) > 1 and has_number(below) and len(below) == len(columns)):
                return kind, None
        else:
            refused = refused or (kind, _no_loss(columns))
    return refused if ours and refused else (None, None)


def _no_loss(names: list[str]) -> str:
    shown = ", ".join(name for name in names[:_SHOWN] if name)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"no loss column among {shown}{more}; name the column by the option loss"


def _extension(path: Path) -> str:
    """The ending that says what the content is; that of a compressed file stands before ``.gz``."""
    packed = path.suffix.lower() == ".gz"
    return Path(path.stem).suffix.lower() if packed else path.suffix.lower()


def _read(path: Path, size: int) -> bytes | None:
    """The first bytes of a file, unpacked; None where it can't be read."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP)) == GZIP
        with gzip.open(path) if packed else path.open("rb") as content:
            return content.read(size)
    except (OSError, EOFError, zlib.error):
        return None


def _lines(head: bytes) -> list[bytes]:
    whole, _, rest = head.removeprefix(b"\xef\xbb\xbf").rpartition(b"\n")
    lines = [line for line in whole.split(b"\n") if line.strip(_BLANK)]
    if not lines and rest.strip(_BLANK):
        lines = [rest]
    return lines[:_LOOK_LINES]
