"""Event files: how fast scalars are read, in how much memory, and what watching many files costs.

Times are processor time, which a busy machine stretches less than the clock's.
"""

from __future__ import annotations

import mmap
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from benchmarks.event_files import write_scalars
from benchmarks.report import Measure
from wtwin_adapters.tensorboard import TensorBoardSource

LIMIT = 5000
"""Points a fetch, as the daemon asks for."""
NAME = "events.out.tfevents.1700000000.host.1.0"
RECORD_BYTES = {"old": 54, "new": 75}
"""Roughly what a record takes in each style."""


def measure(quick: bool) -> Iterator[Measure]:
    """Yield each measure as it is known."""
    rounds = 5 if quick else 9
    for style, reach, aim in (("old", 30, 60), ("new", 10, 25)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, NAME)
            records = 8_000 if quick else 30_000
            write_scalars(path, records, new_style=style == "new")
            title = f"scalars/s ÷ EventFileLoader's, {style} style"
            yield ratio(title, path, records, loaded, rounds, reach, f"aim {aim}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, NAME)
            records = 100_000 if quick else 400_000
            write_scalars(path, records, new_style=style == "new")
            title = f"scalars/s ÷ records/s of a bare walk, {style} style"
            yield ratio(title, path, records, walked, 2 * rounds, 1 / 12, "aim 0.125")
    for style in ("old", "new"):
        yield memory_ratio(style, megabytes=10 if quick else 50)
    yield idle_ratio(folders=100 if quick else 1000, rounds=rounds)


def read_all(folder: Path) -> int:
    """Read a run to its end as the daemon does, points and cursors and all; returns the points."""
    source = TensorBoardSource("bench", TensorBoardSource.Options(path=str(folder)))
    (run,) = source.runs()
    cursor, more, count = None, True, 0
    while more:
        batch = source.fetch(run, cursor, LIMIT)
        cursor, more, count = batch.cursor, batch.more, count + len(batch.points)
    return count


def loaded(path: Path) -> int:
    """Read the file by TensorBoard's loader, without making anything of its events."""
    return sum(event.HasField("summary") for event in EventFileLoader(str(path)).Load())


def walked(path: Path) -> int:
    """Walk from frame to frame, reading the lengths alone: the limit of a loop in Python."""
    length_at = struct.Struct("<Q").unpack_from
    count, position = -1, 0  # the first record holds the version
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = len(data)
        while position < end:
            position += 16 + length_at(data, position)[0]
            count += 1
    return count


def ratio(
    title: str,
    path: Path,
    records: int,
    other: Callable[[Path], int],
    rounds: int,
    reach: float,
    aim: str,
) -> Measure:
    """Scalars a second of `read_all` as a multiple of ``other``'s: the median over rounds of both in turn."""
    ratios, speeds = [], []
    for _ in range(rounds):
        began = time.process_time()
        if other(path) != records:
            raise AssertionError(f"{title}: the yardstick has not read every record")
        between = time.process_time()
        if read_all(path.parent) != records:
            raise AssertionError(f"{title}: not every scalar was read")
        ours = time.process_time() - between
        ratios.append((between - began) / ours)
        speeds.append(records / ours)
    note = f"{statistics.median(speeds):,.0f} scalars/s, {aim}"
    return Measure(title, statistics.median(ratios), at_least=reach, note=note)


# The process's own peak: what resource.getrusage tells begins with that of the process it came from.
PEAK = """
def peak_kib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
"""
THEIRS = """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
before = peak_kib()
found = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0}).Reload()
tags = found.Tags()
count = sum(len(found.Scalars(tag)) for tag in tags["scalars"])
count += sum(len(found.Tensors(tag)) for tag in tags["tensors"])
print(count, before, peak_kib())
"""
OURS = """
import sys
from wtwin_adapters.tensorboard import TensorBoardSource
before = peak_kib()
source = TensorBoardSource("bench", TensorBoardSource.Options(path=sys.argv[1]))
(run,) = source.runs()
cursor, more, count = None, True, 0
while more:
    batch = source.fetch(run, cursor, 5000)
    cursor, more, count = batch.cursor, batch.more, count + len(batch.points)
print(count, before, peak_kib())
"""


def memory_ratio(style: str, megabytes: int) -> Measure:
    """What reading a file adds to the peak memory of a process, over what EventAccumulator adds.

    What importing the libraries takes is left out on both sides.
    """
    with tempfile.TemporaryDirectory() as folder:
        records = megabytes * 1_000_000 // RECORD_BYTES[style]
        write_scalars(Path(folder, NAME), records, new_style=style == "new")
        (before, ours), (before_theirs, theirs) = (
            peaks(code, folder, records) for code in (OURS, THEIRS)
        )
    title = f"peak memory over {megabytes} MB ÷ EventAccumulator's, {style} style"
    whole = f"whole processes {ours / 1024:.0f} and {theirs / 1024:.0f} MB, aim 0.067"
    # A small file takes less than the room that any reader needs.
    reach = 1 / 8 if megabytes >= 50 else 1 / 4
    return Measure(title, (ours - before) / (theirs - before_theirs), at_most=reach, note=whole)


def peaks(code: str, folder: str, records: int) -> tuple[int, int]:
    """Run ``code`` on ``folder`` in a process of its own; returns its peaks before and after, in KiB."""
    command = [sys.executable, "-c", PEAK + code, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, before, after = map(int, done.stdout.split())
    if count != records:
        raise AssertionError(f"{count} of {records} scalars were read")
    return before, after


def idle_ratio(folders: int, rounds: int) -> Measure:
    """A look at files that lie idle, ten a folder, over a bare ``os.stat`` of each."""
    with tempfile.TemporaryDirectory() as name:
        paths = []
        for i in range(folders):
            folder = Path(name, f"group{i // 100}", f"run{i}")
            folder.mkdir(parents=True)
            for j in range(10):
                paths.append(str(folder / f"events.out.tfevents.{1_700_000_000 + j}.host.1.0"))
                Path(paths[-1]).touch()
        source = TensorBoardSource("bench", TensorBoardSource.Options(path=name))
        list(source.runs())
        time.sleep(0.1)  # a folder that changed just now is listed once more
        list(source.runs())
        ratios = []
        for _ in range(3 * rounds):
            began = time.process_time()
            for path in paths:
                os.stat(path)
            between = time.process_time()
            list(source.runs())
            ratios.append((time.process_time() - between) / (between - began))
    title = f"an idle pass over {len(paths):,} files ÷ a bare os.stat of each"
    return Measure(title, statistics.median(ratios), at_most=3.0, note="aim 1.3")
