"""Real logs in their original formats, where they are at hand: what a person found in them is read."""

import csv
import os
from collections import Counter
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.util import tensor_util

from wtwin_adapters.tabular import TabularSource
from wtwin_adapters.tensorboard import TensorBoardSource
from wtwin_watch.metrics import Names, wanted
from wtwin_watch.testing import check_adapter, points_of, read_on

CORPUS = os.environ.get("WTWIN_WATCH_CORPUS")
pytestmark = pytest.mark.skipif(not CORPUS, reason="WTWIN_WATCH_CORPUS doesn't name the corpus")
SAMPLES = Path(CORPUS or ".", "samples")
TABLES = ("csv", "tsv", "jsonl")


def truth():
    with (SAMPLES / "truth.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_tables_hold_what_is_known_of_them():
    read = 0
    for row in truth():
        path = SAMPLES / row["file"]
        found = TabularSource.recognise(path)
        if row["format"] not in TABLES:
            assert found is None, row["file"]
            continue
        assert found is not None
        assert (found.format, found.refused) == (row["format"], None)
        names = {"loss": row["loss"], "step": row["step"]}
        source = TabularSource("s", TabularSource.Options(**found.options, **names, finished=True))
        (run,) = source.runs()
        batches = read_on(source, run)
        losses = [p for p in points_of(batches) if p.metric == row["loss"]]
        ends = (losses[0].step, losses[-1].step, losses[-1].value)
        assert len(losses) == int(row["points"]), row["file"]
        assert ends == tuple(float(row[k]) for k in ("first_step", "last_step", "last_loss"))
        assert {batch.step_name for batch in batches} == {row["step"]}
        read += 1
    assert read == 8


def test_every_curve_of_the_corpus_is_read_row_by_row():
    with (SAMPLES.parent / "corpus/index.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows[::8]:
        path = SAMPLES.parent / "corpus" / row["file"]
        if path.suffix != ".csv":
            continue
        with path.open(newline="") as file:
            losses = [float(r["loss"]) for r in csv.DictReader(file) if r["loss"]]
        source = TabularSource("s", TabularSource.Options(path=path, finished=True))
        (run,) = source.runs()

        points = [p.value for p in points_of(read_on(source, run)) if p.metric == "loss"]

        assert list(map(repr, points)) == list(map(repr, losses)), row["file"]


def event_files():
    found = SAMPLES.rglob("events.out.tfevents.*") if CORPUS else []
    # TensorBoard's loader stops at a corrupt byte, and refuses compressed files with another error.
    return sorted(p for p in found if p.suffix != ".gz" and "corrupt" not in p.parent.name)


@pytest.mark.parametrize(
    "path", event_files(), ids=lambda path: f"{path.parent.name}/{path.name[-12:]}"
)
def test_event_files_hold_what_tensorboards_loader_reads(path):
    expected, plugins = [], {}
    for event in EventFileLoader(str(path)).Load():
        for value in event.summary.value if event.HasField("summary") else ():
            # Writers may say the plugin with a tag's first value alone.
            plugin = value.metadata.plugin_data.plugin_name or plugins.get(value.tag)
            plugins[value.tag] = plugin
            if wanted(value.tag, Names()) and plugin == "scalars":
                number = float(tensor_util.make_ndarray(value.tensor))
                expected.append((value.tag, float(event.step), repr(number)))
    source = TensorBoardSource("tb", TensorBoardSource.Options(path=path))
    (run,) = source.runs()

    points = points_of(read_on(source, run))

    assert [(p.metric, p.step, repr(p.value)) for p in points] == expected


def test_a_corrupt_byte_costs_one_event_where_tensorboards_loader_stops():
    folder = SAMPLES / "made/tensorboard/corrupt_mid_byte"
    (path,) = folder.iterdir()
    read_by_tensorboard = sum(1 for _ in EventFileLoader(str(path)).Load())
    source = TensorBoardSource("tb", TensorBoardSource.Options(path=folder))
    (run,) = source.runs()

    (batch,) = read_on(source, run)

    assert read_by_tensorboard < 300
    assert int((batch.position or "").removeprefix("event ")) > 400


def test_the_samples_keep_the_contract():
    points = check_adapter(
        lambda: TensorBoardSource(
            "tb", TensorBoardSource.Options(path=[SAMPLES / "made/tensorboard" / f for f in MADE])
        ),
        limits=(7, 10_000),
    )

    counts = Counter({run: len(found) for run, found in points.items()})
    assert counts["restart"] > 0


MADE = (
    "old_style",
    "new_style",
    "restart",
    "steps",
    "truncated",
    "zero_filled_tail",
    "partial_header",
)
