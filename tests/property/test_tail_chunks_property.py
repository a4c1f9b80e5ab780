"""However a log grows between two looks, the points are those of one reading."""

import tempfile
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.writers import Log
from wtwin_watch.testing import check_adapter

CELLS = st.sampled_from(
    [
        "0.5",
        "1.25",
        "3",
        "-2e-3",
        "",
        "nan",
        "inf",
        "N/A",
        "x",
        "1_0",
        '"4"',
        '"a,b"',
        '"',
        " 7 ",
        "\0",
    ]
)
CSV_LINES = st.one_of(
    st.lists(CELLS, min_size=1, max_size=5).map(",".join),
    st.integers(-3, 40).map(lambda step: f"{step},{1 / (step + 10)},0.1,x"),
    st.sampled_from(
        ["", "step,loss,lr,note", "loss,note,step", "note;loss;step", "prose\r", "\0\0"]
    ),
)
JSON_LINES = st.one_of(
    st.integers(-3, 40).map(lambda step: f'{{"step": {step}, "loss": {1 / (step + 10)}}}'),
    st.sampled_from(
        [
            '{"step": 1, "loss": NaN}',
            '{"step": 5, "train": {"loss": 0.5}, "lr": 1}',
            '{"step": 6, "loss": null, "val_loss": 2}',
            '{"step": 7, "loss": 1}{"step": 8, "loss": 2} {"step": 9',
            '{"step": 7, "loss": 1}{"step": 8, "loss": 2}',
            '{"loss": "0.25"}',
            "[1]",
            "{",
            "",
        ]
    ),
)
DENSE = st.builds(
    lambda first, n: [f"{i},{1 / (i + 1)},0.1,x" for i in range(first, first + n)],
    st.integers(0, 20),
    st.integers(1, 60),
)


@st.composite
def logs(draw):
    """The bytes of a log and its extension: odd lines among plain ones."""
    extension, line = draw(st.sampled_from([(".csv", CSV_LINES), (".jsonl", JSON_LINES)]))
    lines = draw(st.lists(line, max_size=25))
    if extension == ".csv":
        lines = ["step,loss,lr,note", *draw(DENSE), *lines]
    end = draw(st.sampled_from(["\n", "\r\n"]))
    bom = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return extension, bom + "".join(line + end for line in lines).encode()


def said(batches):
    """Restarts and points in their order, NaN equal to NaN."""
    out = []
    for batch in batches:
        out += [repr(batch.restart)] * (batch.restart is not None)
        out += map(repr, batch.points)
    return out


@given(logs(), st.lists(st.integers(0, 3000), max_size=12), st.sampled_from([1, 2, 5, 10_000]))
@settings(max_examples=150, deadline=None)
def test_a_growing_log_gives_the_same_points_as_a_finished_one(log, cuts, limit):
    extension, data = log
    with tempfile.TemporaryDirectory() as folder:
        whole = Log(Path(folder, "whole" + extension))
        whole.write(data)
        growing = Log(Path(folder, "growing" + extension))
        edges = [0, *sorted({min(cut, len(data)) for cut in cuts}), len(data)]
        batches = []
        for start, end in pairwise(edges):
            growing.write(data[start:end])
            batches += growing.read(limit)

        assert said(batches) == said(whole.read())


@given(logs())
@settings(max_examples=50, deadline=None)
def test_every_log_keeps_the_contract(log):
    extension, data = log
    with tempfile.TemporaryDirectory() as folder:
        whole = Log(Path(folder, "whole" + extension))
        whole.write(data)

        check_adapter(lambda: type(whole.source)("logs", whole.source.Options(path=folder)))


@st.composite
def epochs(draw):
    """Rows of a log whose steps mostly begin anew each epoch: pairs of both."""
    rows = []
    for epoch in draw(st.lists(st.integers(1, 6), max_size=8)):
        first, n = draw(st.sampled_from([0, 1, 50])), draw(st.integers(1, 12))
        rows += [(epoch, first + 10 * i) for i in range(n)]
    return rows


@given(
    epochs(),
    st.sampled_from([".csv", ".jsonl"]),
    st.lists(st.integers(0, 2000), max_size=8),
    st.sampled_from([1, 5, 10_000]),
)
@settings(max_examples=150, deadline=None)
def test_steps_within_epochs_are_counted_the_same_however_a_log_grows(rows, extension, cuts, limit):
    lines = [f"{epoch},{step},0.5\n" for epoch, step in rows]
    if extension == ".jsonl":
        lines = [f'{{"epoch": {e}, "iter": {s}, "loss": 0.5}}\n' for e, s in rows]
    data = "".join(["epoch,iter,loss\n" * (extension == ".csv"), *lines]).encode()
    with tempfile.TemporaryDirectory() as folder:
        single, whole, growing = (
            Log(Path(folder, name + extension)) for name in ("single", "whole", "growing")
        )
        whole.write(data)
        one_by_one = []
        for end in range(len(lines) + 1):
            # So every row is taken by itself.
            single.write(data.splitlines(keepends=True)[end] if end < data.count(b"\n") else b"")
            one_by_one += single.read(limit)
        batches = []
        for start, end in pairwise([0, *sorted({min(cut, len(data)) for cut in cuts}), len(data)]):
            growing.write(data[start:end])
            batches += growing.read(limit)

        assert said(batches) == said(whole.read()) == said(one_by_one)


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**6), 10**6).map(str),
    st.sampled_from(["", "1E5", "-0", "0.1e-3", "12345678901234567890"]),
)


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=40),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["", '"']),
)
@settings(max_examples=150, deadline=None)
def test_plain_rows_hold_what_pythons_float_reads(rows, delimiter, mark):
    lines = ["step,loss,lr,val_loss".replace(",", delimiter)]
    for step, row in enumerate(rows):
        lines.append(delimiter.join(f"{mark}{cell}{mark}" for cell in (str(step), *row)))
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder, "run.csv"))
        log.write("\n".join(lines) + "\n")
        found = [(p.metric, p.step, p.value) for p in log.points() if p.metric]

    assert found == [
        (name, step, float(cell))
        for step, row in enumerate(rows)
        for name, cell in zip(("loss", "lr", "val_loss"), row, strict=True)
        if cell
    ]
