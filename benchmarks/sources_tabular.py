"""Log files: how fast rows are read, and whether every known log is recognised for what it is."""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.report import Measure, Skipped
from wtwin_adapters.tabular import TabularSource

COLUMNS = ("step", "loss", "lr", "grad_norm", "val_loss")
LIMIT = 5000
"""Points a fetch, as the daemon asks for."""


def measure(quick: bool) -> Iterator[Measure | Skipped]:
    """Yield each measure as it is known."""
    rows, rounds = (20_000, 15) if quick else (200_000, 15)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = plain_rows(rows)
        jsonl, aim = folder / "run.jsonl", "aim 3"
        jsonl.write_text(
            "".join(json.dumps(dict(zip(COLUMNS, r, strict=True))) + "\n" for r in table)
        )
        yield ratio("JSONL rows/s ÷ json.loads a line", jsonl, json_lines, rows, rounds, aim)
        for kind, text in (
            ("plain", csv_text(table)),
            ("gaps", csv_text(with_gaps(table))),
            ("quoted", csv_text(table, mark='"')),
        ):
            path = folder / f"{kind}.csv"
            path.write_text(text)
            title = f"CSV rows/s ÷ csv.reader and float, {kind}"
            yield ratio(title, path, csv_cells, rows, rounds, "aim 1")
    corpus = os.environ.get("WTWIN_WATCH_CORPUS")
    if corpus:
        yield recognised("files of truth.csv recognised, of all", Path(corpus, "samples"), samples)
        yield recognised("files of the corpus recognised, of all", Path(corpus, "corpus"), curves)
    else:
        yield Skipped("files recognised", "WTWIN_WATCH_CORPUS doesn't name the corpus")


def plain_rows(count: int) -> list[tuple[Any, ...]]:
    """Rows as a trainer logs them: a step and four metrics."""
    chance = random.Random(1)
    return [
        (i, 2 + 3 * i**-0.5 + chance.gauss(0, 0.02), 3e-4, chance.random(), chance.random())
        for i in range(1, count + 1)
    ]


def with_gaps(table: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The same with a validation loss on every tenth row alone, and then without the others."""
    return [
        (r[0], None, None, None, r[4]) if i % 10 == 9 else (*r[:4], None)
        for i, r in enumerate(table)
    ]


def csv_text(table: list[tuple[Any, ...]], mark: str = "") -> str:
    """The rows as CSV, each cell between two ``mark``."""
    lines = [",".join(f"{mark}{'' if c is None else c}{mark}" for c in row) for row in table]
    return ",".join(COLUMNS) + "\n" + "\n".join(lines) + "\n"


def json_lines(path: Path) -> int:
    """What the standard library needs to parse the rows, without making anything of them."""
    count = 0
    with path.open() as file:
        for line in file:
            json.loads(line)
            count += 1
    return count


def csv_cells(path: Path) -> int:
    """The same for CSV: every cell that isn't empty becomes a number."""
    count = 0
    with path.open(newline="") as file:
        reader = csv.reader(file)
        next(reader)
        for row in reader:
            [float(cell) for cell in row if cell]
            count += 1
    return count


def read_all(path: Path) -> int:
    """Read a log to its end as the daemon does, each point and the cursors; returns the last row."""
    source = TabularSource("bench", TabularSource.Options(path=str(path), finished=True))
    (run,) = source.runs()
    cursor, more, position = None, True, ""
    while more:
        batch = source.fetch(run, cursor, LIMIT)
        deque(batch.points, maxlen=0)
        cursor, more, position = batch.cursor, batch.more, batch.position or ""
    return int(position.removeprefix("row "))


def ratio(
    title: str, path: Path, other: Callable[[Path], int], rows: int, rounds: int, aim: str
) -> Measure:
    """Rows a second of `read_all` as a multiple of ``other``'s: the best of rounds of both in turn.

    What else the machine does only ever makes a round slower, so that the best is nearest to the truth.
    """
    theirs, ours = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        if other(path) != rows:
            raise AssertionError(f"{title}: the yardstick has not read every row")
        between = time.perf_counter()
        if read_all(path) != rows:
            raise AssertionError(f"{title}: not every row was read")
        theirs.append(between - began)
        ours.append(time.perf_counter() - between)
    speed = f"{rows / min(ours):,.0f} rows/s, {aim}"
    return Measure(title, min(theirs) / min(ours), at_least=0.7, note=speed)


Known = dict[str, tuple[Any, ...] | None]
"""By path: format, loss, step, points, first step, last step, last loss; None for one to be refused."""


def samples(folder: Path) -> Known:
    """What `truth.csv` says."""
    with (folder / "truth.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    known: Known = {}
    for row in rows:
        ends = (float(row[key] or "nan") for key in ("first_step", "last_step", "last_loss"))
        truth = (row["format"], row["loss"], row["step"], int(row["points"] or 0), *ends)
        known[str(folder / row["file"])] = truth if row["format"] else None
    return known


def curves(folder: Path) -> Known:
    """What the curves of the corpus hold, read by the standard library."""
    known: Known = {}
    for path in sorted((folder / "runs").iterdir()):
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            rows = [row for row in csv.DictReader(file) if row["loss"]]
        ends = float(rows[0]["step"]), float(rows[-1]["step"]), float(rows[-1]["loss"])
        known[str(path)] = ("csv", "loss", "step", len(rows), *ends)
    return known


def recognised(title: str, folder: Path, known_of: Callable[[Path], Known]) -> Measure:
    """The share of files that ``wtwin-watch inspect --json`` describes as they are known to be."""
    known = known_of(folder)
    command = [sys.executable, "-m", "wtwin_watch", "inspect", "--json", *known]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = {entry["path"]: described(entry) for entry in json.loads(done.stdout or "[]")}
    # Compared as text, since one NaN is not equal to another.
    wrong = [path for path, truth in known.items() if repr(found.get(path, ())) != repr(truth)]
    names = ", ".join(Path(path).name for path in wrong[:5])
    note = f"{len(known)} files" + (f"; wrong: {names}" if wrong else "")
    return Measure(title, 1 - len(wrong) / len(known), at_least=1.0, note=note)


def described(entry: dict[str, Any]) -> tuple[Any, ...] | None:
    """An entry of ``inspect --json`` in the form of `Known`."""
    if entry["refused"] is not None:
        return None
    keys = ("loss", "step", "points", "first_step", "last_step", "last_loss")
    (run,) = entry["runs"]
    *found, last_loss = (run[key] for key in keys)
    return entry["format"], *found, float(last_loss)
