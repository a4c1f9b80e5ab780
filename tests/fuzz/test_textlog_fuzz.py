"""Whatever a text log holds and however it grows: it is read, and the points are those of one reading."""

import tempfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wtwin_adapters.logfiles import LogSource
from wtwin_adapters.recognition import recognise_log, recognise_trainer
from wtwin_adapters.sink import Progress, Sink
from wtwin_adapters.textrows import TextRows
from wtwin_watch.errors import SourceError
from wtwin_watch.metrics import Names
from wtwin_watch.testing import read_on

SCRAPS = st.sampled_from(
    [
        *(
            b"step",
            b"iteration",
            b"iter ",
            b"epoch ",
            b"loss",
            b"lr",
            b"val_loss",
            b"train_inner",
            b"s:1",
        ),
        *(
            b" ",
            b":",
            b"=",
            b"|",
            b"/",
            b"[",
            b"]",
            b"{",
            b"}",
            b"'",
            b'"',
            b"\n",
            b"\r",
            b"\x1b[3",
        ),
        *(
            b"1",
            b"100",
            b"2.5",
            b"1e9",
            b"nan",
            b",",
            b"%",
            b"\0",
            b"\xff",
            b":::MLLOG ",
            b"{'loss': 2}",
        ),
    ]
)
BYTES = st.one_of(st.binary(max_size=300), st.lists(SCRAPS, max_size=60).map(b"".join))
KINDS = (
    *("Megatron-LM", "modded-nanogpt", "nanoGPT", "llm.c", "fairseq", "MLPerf", "Hugging Face"),
    *(
        "progress bar",
        "key=value",
        "ESPnet",
        "Marian",
        "OpenNMT",
        "darknet",
        "CLU",
        "steps with blocks",
    ),
)


@pytest.mark.parametrize("kind", KINDS)
@given(BYTES)
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_read_by_every_pattern(kind, content):
    lines = content + b"\n"
    sink = Sink(Progress(), 100)

    used = TextRows(Names(), {"pattern": kind}).take(lines, sink, last=False)

    assert used == len(lines) or sink.full


@given(st.sampled_from(["run.log", "run.json", "run"]), st.lists(BYTES, max_size=4))
@settings(max_examples=100, deadline=None)
def test_any_file_is_recognised_or_not_and_read_or_refused(name, pieces):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        source = LogSource("x", LogSource.Options(path=str(path)))
        cursor = None
        for piece in pieces:
            with path.open("ab") as file:
                file.write(piece)
            recognise_log(path)
            recognise_trainer(path)
            (run,) = source.runs()
            cursor = read_on(source, run, cursor)[-1].cursor
        path.touch()
        finished = LogSource("x", LogSource.Options(path=str(path), finished=True))
        (run,) = finished.runs()
        with suppress(SourceError):
            read_on(finished, run)


LINES = {
    "Megatron-LM": " iteration {0}/ 99 | learning rate: 1E-4 | lm loss: {1} | grad norm: {2} |",
    "modded-nanogpt": "step:{0}/99 train_loss:{1} train_time:9ms",
    "nanoGPT": "iter {0}: loss {1}, time 9.0ms, mfu 5%",
    "llm.c": "step {0}/99 | loss {1} (+1.2z)| norm {2} (+0.1z)| lr 6e-04",
    "fairseq": "| epoch 001: {0} / 99 loss={1}, num_updates={0}, gnorm={2}",
    "Hugging Face": "{{'loss': {1}, 'grad_norm': {2}, 'epoch': 0.5}}",
    "progress bar": "\r 5%|# | {0}/99 [00:01<00:08, 9.0it/s, loss={1}]",
    "key=value": "[rank0] step: {0} loss: {1} grad_norm: {2}",
}
BETWEEN = st.sampled_from(
    ["", "prose with a loss", "\x1b[31mwarning\x1b[0m", "saved checkpoint-5", "\r", "nan"]
)


@st.composite
def text_logs(draw):
    line = LINES[draw(st.sampled_from(sorted(LINES)))]
    rows = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), min_size=2, max_size=25))
    # Two rows in a row at the start, so that a log is known for what it is from its first rows on.
    lines = [line.format(step, loss / 8, 0.5) for step, loss in rows]
    for _ in range(draw(st.integers(0, 5))):
        lines.insert(draw(st.integers(2, len(lines))), draw(BETWEEN))
    return "".join(line + draw(st.sampled_from(["\n", "\r\n"])) for line in lines).encode()


@given(text_logs(), st.lists(st.integers(0, 2000), max_size=10), st.sampled_from([1, 2, 5, 10_000]))
@settings(max_examples=150, deadline=None)
def test_a_growing_text_log_gives_the_same_points_as_a_finished_one(data, cuts, limit):
    with tempfile.TemporaryDirectory() as folder:
        (whole := Path(folder, "whole.log")).write_bytes(data)
        (growing := Path(folder, "growing.log")).touch()
        edges = [0, *sorted({min(cut, len(data)) for cut in cuts}), len(data)]
        source, cursor, batches = _open(growing), None, []
        for start, end in pairwise(edges):
            with growing.open("ab") as file:
                file.write(data[start:end])
            (run,) = source.runs()
            batches += read_on(source, run, cursor, limit)
            cursor = batches[-1].cursor
        finished = _open(whole)
        (run,) = finished.runs()

        assert said(batches) == said(read_on(finished, run))


def said(batches):
    """Restarts and points in their order."""
    out = []
    for batch in batches:
        out += [repr(batch.restart)] * (batch.restart is not None)
        out += map(repr, batch.points)
    return out


def _open(path):
    return LogSource("x", LogSource.Options(path=str(path)))
