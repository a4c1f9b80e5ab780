"""Growth of a ``.wandb`` file in any pieces, and any damage to it."""

import tempfile
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.wandb_writer import (
    BLOCK,
    HEADER,
    WandbLog,
    framed,
    history,
    item,
    numbered,
    run,
    shown,
    summary,
)
from wtwin_adapters.wandb_files import WandbFilesSource
from wtwin_watch.testing import check_adapter, points_of

SIZES = st.one_of(st.integers(0, 300), st.integers(BLOCK - 200, BLOCK + 200))


@st.composite
def files(draw):
    """The bytes of a file, with rows of every length around a block's, and perhaps damage."""
    records = [run()]
    for step in range(draw(st.integers(0, 8))):
        pad = item("note", '"' + "x" * draw(SIZES) + '"')
        records += [history(step, pad, loss=step / 7, lr=0.5), summary(loss=1)]
    data = bytearray(HEADER + framed(numbered(records)))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(len(HEADER), len(data)))
        data[at : at + 1] = draw(st.binary(max_size=3))
    return bytes(data)


def points_in(data, folder):
    log = WandbLog(Path(folder))
    log.file.write_bytes(data)
    return shown(points_of(log.read()))


def pieces_of(data, cuts):
    edges = [0, *sorted({min(cut, len(data)) for cut in cuts}), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@given(files(), st.lists(st.integers(0, 3 * BLOCK), max_size=8))
@settings(max_examples=100, deadline=None)
def test_a_growing_file_of_wandb_gives_the_points_of_a_finished_one(data, cuts):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        log = WandbLog(Path(folder))
        log.file.write_bytes(b"")
        growing = []
        for piece in pieces_of(data, cuts):
            log.append(piece)
            growing += shown(points_of(log.read()))

        assert growing == points_in(data, other)


@given(files(), st.lists(st.integers(0, 3 * BLOCK), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_part_of_a_file_of_wandb_gives_the_first_of_its_points(data, lengths):
    with tempfile.TemporaryDirectory() as folder:
        whole = points_in(data, f"{folder}/whole")
        for i, length in enumerate(lengths):
            found = points_in(data[:length], f"{folder}/{i}")
            assert found == whole[: len(found)]


def test_every_length_of_a_file_of_wandb_gives_the_first_of_its_points(tmp_path):
    records = numbered([run(), *(history(step, loss=1 / (step + 1)) for step in range(12))])
    data = HEADER + framed(records)
    ends = [len(HEADER) + len(framed(records[:n])) for n in range(len(records) + 1)]
    log = WandbLog(tmp_path)
    for length in range(len(data) + 1):
        log.file.write_bytes(data[:length])
        log.cursor = None
        rows = max(0, sum(end <= length for end in ends) - 2)
        assert log.losses() == [(step, 1 / (step + 1)) for step in range(rows)]


@given(st.lists(files(), min_size=1, max_size=2))
@settings(max_examples=25, deadline=None)
def test_every_run_of_wandb_keeps_the_contract(processes):
    with tempfile.TemporaryDirectory() as folder:
        log = WandbLog(Path(folder))
        for i, data in enumerate(processes):
            if i:
                log.begin(f"offline-run-20260101_00000{i}")
            log.file.write_bytes(data)

        check_adapter(
            lambda: WandbFilesSource("w", WandbFilesSource.Options(path=folder)), limits=(1, 3, 100)
        )
