"""Real logs in their original formats, where they are at hand: what a person found in them is read."""

import os
from collections import Counter
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.util import tensor_util

from wtwin_adapters.tensorboard import TensorBoardSource
from wtwin_watch.metrics import Names, wanted
from wtwin_watch.testing import check_adapter, points_of, read_on

CORPUS = os.environ.get("WTWIN_WATCH_CORPUS")
pytestmark = pytest.mark.skipif(not CORPUS, reason="WTWIN_WATCH_CORPUS doesn't name the corpus")
SAMPLES = Path(CORPUS or ".", "samples")


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
