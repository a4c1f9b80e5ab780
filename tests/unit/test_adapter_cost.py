"""What reading costs: memory that doesn't grow with the log, and bytes that are read once."""

import os
import subprocess
import sys
import tracemalloc

import pytest

from tests.support.wandb_writer import WandbLog, history, item, losses
from tests.support.writers import EventLog, Log, scalar, tensor, version

ROWS = 40_000
PADDING = 80 * "x"


def peak_bytes(read) -> int:
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def count_all(log) -> int:
    """Read a log to its end in pieces, keeping nothing."""
    (run,) = log.source.runs()
    count, more, cursor = 0, True, None
    while more:
        batch = log.source.fetch(run, cursor, 5000)
        count, more, cursor = count + len(batch.points), batch.more, batch.cursor
    return count


@pytest.mark.parametrize("extension", [".csv", ".jsonl"])
def test_a_long_table_is_read_in_bounded_memory(tmp_path, extension):
    log = Log(tmp_path / f"run{extension}")
    if extension == ".csv":
        rows = "".join(f"{i},{1 / (i + 1)},{PADDING}\n" for i in range(ROWS))
        log.write("step,loss,note\n" + rows)
    else:
        log.write(
            "".join(
                f'{{"step":{i},"loss":{1 / (i + 1)},"note":"{PADDING}"}}\n' for i in range(ROWS)
            )
        )

    peak = peak_bytes(lambda: count_all(log))

    assert log.path.stat().st_size > 3_000_000
    assert peak < 3_000_000


def test_a_long_event_file_is_read_in_bounded_memory(tmp_path):
    log = EventLog(tmp_path)
    image = tensor(1, "image", "images", dtype=7, string_val=[b"x" * 50_000])
    for i in range(0, 10_000, 100):
        log.write(image, *(scalar(step, 0.5) for step in range(i, i + 100)))
    peak = peak_bytes(lambda: count_all(log))

    assert log.file.stat().st_size > 3_000_000
    assert peak < 3_000_000


def test_a_long_file_of_wandb_is_read_in_bounded_memory(tmp_path):
    log = WandbLog(tmp_path)
    note = item("note", '"' + 50_000 * "x" + '"')
    for i in range(0, 10_000, 100):
        log.write(history(i, note, loss=0.5), *losses(range(i + 1, i + 100)))

    peak = peak_bytes(lambda: count_all(log))

    assert log.file.stat().st_size > 5_000_000
    assert peak < 3_000_000


def test_a_log_without_a_loss_is_passed_over_in_bounded_memory(tmp_path):
    log = Log(tmp_path / "run.csv")
    log.write("step,note\n" + f"1,{PADDING}\n" * (ROWS // 2))

    assert peak_bytes(log.read) < 3_000_000


@pytest.mark.parametrize("kind", ["csv", "tensorboard"])
def test_a_fetch_reads_what_is_new_and_little_more(tmp_path, kind, monkeypatch):
    if kind == "csv":
        log = Log(tmp_path / "run.csv")
        log.write("step,loss\n" + "".join(f"{i},0.5\n" for i in range(20_000)))
        new = "20000,0.5\n"
    else:
        log = EventLog(tmp_path / "run")
        log.write(version(), *[scalar(i, 0.5) for i in range(5000)])
        new = scalar(5000, 0.5)
    log.read()
    log.write(new)
    read = []
    real = os.pread

    def counted(*args):
        data = real(*args)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)

    batches = log.read()

    assert [len(batch.points) for batch in batches] == [1]
    assert sum(read) < 20_000


def test_the_adapters_load_no_library_of_the_trackers():
    code = (
        "import sys, wtwin_adapters.tensorboard, wtwin_adapters.tabular, wtwin_adapters.wandb_files;"
        "heavy = ('tensorboard', 'wandb', 'google', 'numpy');"
        "print([m for m in sys.modules if m.split('.')[0] in heavy])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
