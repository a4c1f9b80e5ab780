"""Rows of CSV, TSV and their relatives: header, delimiter, cells, and what to do with odd lines.

Cells travel as Latin-1 text, one character a byte, so that positions stay byte offsets; only names of
columns are decoded as UTF-8.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

import orjson

from wtwin_adapters.epochs import Epochs, epoch_among
from wtwin_adapters.naming import NO_LOSS, ROW_NUMBER, is_loss, usable
from wtwin_adapters.numbers import BLANK, UNREADABLE, Column, Value, number, numbers
from wtwin_adapters.sink import Sink
from wtwin_watch.metrics import Names, choose_step

DELIMITERS = ",;\t|"
Read = Callable[[int], tuple[Column, bool] | None]
"""Gives a column by its place and whether it has gaps; None if it holds anything else than numbers."""
_NO_HEADER = "no header"
# Two commas between three gaps share one, so that it takes a second look.
_GAPS = ((",,", ",null,"), (",,", ",null,"), ("[,", "[null,"), (",]", ",null]"))
_BLOCK, _ODD_BLOCK = 2048, 256
_MAX_COLUMNS = 64
# An open quote may run over this much; past it, it is taken for a stray character.
_QUOTED_LINES = 32
_QUOTED_BYTES = 65536


def split_header(line: str, names: Names) -> tuple[str, list[str]]:
    """Find the delimiter and the column names of a header: the split that shows most of what we use."""
    best = (-1, -1)
    delimiter, columns = ",", [""]
    for candidate in DELIMITERS:
        cells = [_name(cell) for cell in _split(line, candidate)]
        known = sum(usable(c, names) for c in cells) + (choose_step(cells, names) is not None)
        if (known, len(cells)) > best:
            best, delimiter, columns = (known, len(cells)), candidate, cells
    return delimiter, columns


def has_number(cells: Sequence[str]) -> bool:
    """Whether any cell is a number, so that the line is no header."""
    return any(isinstance(_cell(cell), float) for cell in cells)


class CsvRows:
    """Reads lines under the header that came last. ``dump`` gives its state as JSON."""

    def __init__(self, names: Names, form: dict[str, Any] | None = None) -> None:
        form = form or {}
        self._names = names
        self._delimiter: str = form.get("delimiter", ",")
        step = form.get("step")
        self._step: tuple[int, str] | None = (step[0], step[1]) if step else None
        self._columns: list[tuple[int, str]] = [(i, n) for i, n in form.get("columns", [])]
        self._epoch: int | None = form.get("epoch")
        self._epochs = Epochs.load(form.get("epochs"))
        self._width: int = form.get("width", 0)
        # Why rows give no points under the present header, or None if they do.
        self._idle: str | None = form.get("idle", _NO_HEADER)
        self._started: bool = form.get("started", False)

    def dump(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {
            "delimiter": self._delimiter,
            "step": list(self._step) if self._step else None,
            "columns": [list(column) for column in self._columns],
            "epoch": self._epoch,
            "epochs": self._epochs.dump(),
            "width": self._width,
            "idle": self._idle,
            "started": self._started,
        }

    @property
    def step_name(self) -> str | None:
        """What steps are taken from, or None while that is not known."""
        if self._idle:
            return None
        return self._step[1] if self._step else ROW_NUMBER

    def take(self, chunk: bytes, sink: Sink, *, last: bool) -> int:
        """Give the rows of ``chunk`` (whole lines) to ``sink``; returns the bytes consumed.

        ``last``: nothing will follow, so an open quote is not waited for.
        """
        text = chunk.decode("latin-1")
        lines = text.split("\n")
        if text.endswith("\n"):
            lines.pop()
        done, waiting = 0, False
        while done < len(lines) and not sink.full and not waiting:
            taken = 0
            if self._started and not self._idle:
                room = sink.rows_left(len(self._columns))
                block = lines[done : done + min(room, _BLOCK)]
                taken = self._take_block(block, sink, quoted='"' in text) if room > 0 else 0
            if not taken:
                taken, waiting = self._take_lines(lines, done, sink, last=last)
            done += taken
        return min(sum(map(len, islice(lines, done))) + done, len(chunk))

    def _take_block(self, block: list[str], sink: Sink, *, quoted: bool) -> int:
        """Take rows of numbers and gaps, column by column; 0 if a line among them is odd."""
        read = self._read_plain(block) or self._read_cells(block, quoted=quoted)
        if read is None:
            return 0
        columns, sparse = [], False
        for i, _ in self._columns:
            column = read(i)
            if column is None:
                return 0
            columns.append(column[0])
            sparse |= column[1]
        names, told, counted = [name for _, name in self._columns], None, None
        if self._step is not None:
            found = read(self._step[0])
            if found is None or found[1]:
                return 0
            steps: Any = found[0]
            if self._epoch is not None:
                told = read(self._epoch)
                counted = self._epochs.counted_block(steps, told[0]) if told else None
            if counted is None and (self._epoch is not None or self._epochs.added):
                return 0
        elif sparse:
            return 0  # a gap may be a blank line, which is no row
        else:
            steps = [sink.progress.row + n + 1.0 for n in range(len(block))]
        taken = sink.add_block(names, counted[0] if counted else steps, columns, sparse=sparse)
        if taken and counted and told:
            done = self._epochs.counted_block(steps[:taken], told[0][:taken])
            self._epochs = done[1] if done else self._epochs
        return taken

    def _read_plain(self, block: list[str]) -> Read | None:
        """Read rows of numbers alone as JSON, which is fastest; None if they aren't that plain."""
        text = "],[".join(block)
        if '"' in text:
            # Without the quotes it means the same only if every cell has them, and nothing else has.
            bare = text.replace('"', "")
            cells = text.count(f'"{self._delimiter}"') + text.count('"],["') + 1
            if cells != self._width * len(block) or len(text) - len(bare) != 2 * cells:
                return None
            text = bare
        if self._delimiter != ",":
            if "," in text.replace("],[", ""):
                return None
            text = text.replace(self._delimiter, ",")
        text = f"[[{text}]]"
        for gap, null in _GAPS:
            if gap in text:
                text = text.replace(gap, null)
        try:
            rows = orjson.loads(text)
        except orjson.JSONDecodeError:
            return None
        if len(rows) != len(block) or set(map(len, rows)) != {self._width}:
            return None
        columns = list(zip(*rows, strict=True))
        return lambda i: numbers(columns[i])

    def _read_cells(self, block: list[str], *, quoted: bool) -> Read | None:
        cells = self._cells(block, quoted=quoted)
        return None if cells is None else lambda i: self._numbers(cells(i))

    def _cells(self, block: list[str], *, quoted: bool) -> Callable[[int], list[str]] | None:
        """Split lines; gives a way to get at a column, or None if a quote runs over lines."""
        delimiter, width = self._delimiter, self._width
        if quoted:
            try:
                rows = list(csv.reader([*block, ""], delimiter=delimiter))
            except csv.Error:
                return None
            if len(rows) != len(block) + 1:
                return None
            rows.pop()
        else:
            # Every line end between two delimiters is a cell of its own: those in their places prove
            # that all lines have the same number of cells.
            flat = f"{delimiter}\n{delimiter}".join(block).split(delimiter)
            if len(flat) == len(block) * (width + 1) - 1 and set(flat[width :: width + 1]) <= {
                "\n"
            }:
                return lambda i: flat[i :: width + 1]
            rows = [line.split(delimiter) for line in block]
        return lambda i: _column(rows, i)

    def _numbers(self, cells: list[str]) -> tuple[Sequence[float | None], bool] | None:
        """Read a column and say whether it has gaps; None if it holds anything else than numbers."""
        if "_" not in "".join(cells):
            try:
                return list(map(float, cells)), False
            except ValueError:
                pass
            try:
                return [float(cell) if cell else None for cell in cells], True
            except ValueError:
                pass
        comma = self._delimiter == ";"
        values = [_cell(cell, decimal_comma=comma) for cell in cells]
        if UNREADABLE in values:
            return None
        return values, True  # type: ignore[return-value]

    def _take_lines(
        self, lines: list[str], start: int, sink: Sink, *, last: bool
    ) -> tuple[int, bool]:
        """Take a block line by line; returns how many lines, and whether the next has to wait."""
        i = start
        while i < min(start + _ODD_BLOCK, len(lines)):
            line, used = lines[i], 1
            if not line.strip(BLANK):
                i += 1
                continue
            if not self._started:
                self._started = True
                if self._begin(line):
                    return i + 1 - start, False
            cells = line.split(self._delimiter)
            if '"' in line:
                cells, used = self._unquote(lines, i, last=last)
                if not used:
                    return i - start, True
            values = [(name, self._value(cells, k)) for k, name in self._columns]
            step = self._value(cells, self._step[0]) if self._step else sink.progress.row + 1.0
            epochs = self._epochs
            if isinstance(step, float) and self._epoch is not None:
                step, epochs = epochs.counted(step, self._value(cells, self._epoch))
            if not self._take_row(line, cells, step, values, sink):
                break
            self._epochs = epochs
            i += used
        return i - start, False

    def _take_row(
        self,
        line: str,
        cells: list[str],
        step: Value,
        values: list[tuple[str, Value]],
        sink: Sink,
    ) -> bool:
        """Take one row, or a header; False if it must wait."""
        if not any(isinstance(value, float) for _, value in values):
            if not "".join(cells).strip(BLANK):
                return True
            if self._is_header(cells):
                self._begin(line)
                return True
        return sink.offer(step, values, self._idle)

    def _begin(self, line: str) -> bool:
        """Start a segment under the header ``line``; False if that is a row of numbers instead."""
        delimiter, columns = split_header(line.removeprefix("\xef\xbb\xbf"), self._names)
        if has_number(columns):
            return False
        self._delimiter, self._width = delimiter, len(columns)
        step = choose_step(columns, self._names)
        self._step = (columns.index(step), step) if step is not None else None
        epoch = epoch_among(columns, step)
        self._epoch = columns.index(epoch) if epoch is not None else None
        first = {name: i for i, name in reversed(list(enumerate(columns))) if name != step}
        used = sorted((i, name) for name, i in first.items() if usable(name, self._names))
        watched = any(is_loss(name, self._names) for _, name in used)
        self._columns = used[:_MAX_COLUMNS] if watched else []
        self._idle = None if watched else NO_LOSS
        return True

    def _is_header(self, cells: list[str]) -> bool:
        if has_number(cells):
            return False
        _, columns = split_header(self._delimiter.join(cells), self._names)
        ours = {name for _, name in self._columns}
        return any(c in ours or usable(c, self._names) for c in columns)

    def _value(self, cells: list[str], i: int) -> Value:
        return _cell(cells[i], decimal_comma=self._delimiter == ";") if i < len(cells) else None

    def _unquote(self, lines: list[str], i: int, *, last: bool) -> tuple[list[str], int]:
        """Split a line with quotes; a quoted cell may go on over lines. No lines used: wait for more."""
        window: list[str] = []
        size = 0
        for line in islice(lines, i, i + _QUOTED_LINES):
            size += len(line)
            if window and size > _QUOTED_BYTES:
                break
            window.append(line)
        # The empty line at the end is only read if a quote is still open there.
        reader = csv.reader([*window, ""], delimiter=self._delimiter)
        try:
            cells = next(reader)
        except csv.Error:
            return lines[i].split(self._delimiter), 1
        used = reader.line_num
        if used == 1 or (used <= len(window) and len(cells) == self._width):
            return cells, used
        at_end = i + len(window) == len(lines) and len(window) < _QUOTED_LINES
        if used > len(window) and at_end and not last:
            return [], 0
        return lines[i].replace('"', "").split(self._delimiter), 1


def _column(rows: list[list[str]], i: int) -> list[str]:
    try:
        return list(map(itemgetter(i), rows))
    except IndexError:
        return [row[i] if i < len(row) else "" for row in rows]


def _cell(cell: str, *, decimal_comma: bool = False) -> Value:
    if not cell:
        return None
    try:
        if "_" not in cell:
            return float(cell)
    except ValueError:
        pass
    return number(cell, decimal_comma=decimal_comma)


def _split(line: str, delimiter: str) -> list[str]:
    if '"' in line:
        try:
            return next(csv.reader([line], delimiter=delimiter), [""])
        except csv.Error:
            pass
    return line.split(delimiter)


def _name(cell: str) -> str:
    text = cell.encode("latin-1").decode("utf-8", "replace")
    return text.strip(BLANK + "\ufeff").lstrip("#").strip()
