"""TensorBoard's own loader as the oracle, and growth in any pieces."""

import tempfile
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.util import tensor_util

from tests.support.writers import EventLog, record, tensor, version
from wtwin_adapters.tensorboard import TensorBoardSource
from wtwin_watch.metrics import Names, wanted
from wtwin_watch.testing import check_adapter, points_of

TAGS = ["loss", "train/loss", "val_loss", "lr", "learning_rate/group/0", "layer/weights", "x" * 130]
FLOATS = st.floats(width=32)


@st.composite
def events(draw):
    """Events in the shapes that writers make; metadata stands with every value, as the oracle needs it."""
    step = draw(st.one_of(st.integers(0, 300), st.integers(-(2**62), 2**62)))
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["float_val", "content", "double_val"]))
        value = draw(FLOATS)
        proto = {
            "float_val": {"dtype": 1, "float_val": [value]},
            "double_val": {"dtype": 2, "double_val": [value]},
            "content": {
                "dtype": 2,
                "tensor_content": memoryview(b"\0" * 6 + b"\xe0\x3f").tobytes(),
            },
        }[kind]
        return tensor(step, draw(st.sampled_from(TAGS)), "scalars", tensor_shape={}, **proto)
    values = [
        Summary.Value(tag=draw(st.sampled_from(TAGS)), simple_value=draw(FLOATS))
        for _ in range(draw(st.integers(1, 3)))
    ]
    return record(Event(wall_time=1.7e9 + step % 7, step=step, summary=Summary(value=values)))


def as_tensorboard_reads(path):
    """Every scalar that a monitor may want, by TensorBoard's loader."""
    found = []
    for event in EventFileLoader(str(path)).Load():
        for value in event.summary.value if event.HasField("summary") else ():
            number = tensor_util.make_ndarray(value.tensor)
            if wanted(value.tag, Names()) and number.shape == ():
                found.append((value.tag, float(event.step), repr(float(number)), event.wall_time))
    return found


@given(st.lists(events(), max_size=12))
@settings(max_examples=80, deadline=None)
def test_the_points_are_those_of_tensorboards_loader(records):
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder, "run"))
        log.write(version(), *records)

        points = points_of(log.read(limit=5))

        said = [(p.metric, p.step, repr(p.value), p.wall_time) for p in points]
        assert said == as_tensorboard_reads(log.file)


@given(st.lists(events(), max_size=10), st.lists(st.integers(0, 900), max_size=8))
@settings(max_examples=80, deadline=None)
def test_a_growing_file_gives_the_same_points_as_a_finished_one(records, cuts):
    data = version() + b"".join(records)
    with tempfile.TemporaryDirectory() as folder:
        whole, growing = EventLog(Path(folder, "whole")), EventLog(Path(folder, "growing"))
        whole.write(data)
        edges = [0, *sorted({min(cut, len(data)) for cut in cuts}), len(data)]
        batches = []
        for start, end in pairwise(edges):
            growing.write(data[start:end])
            batches += growing.read()

        def said(batches):
            restarts = [batch.restart for batch in batches if batch.restart]
            return restarts, list(map(repr, points_of(batches)))

        assert said(batches) == said(whole.read())


@given(st.lists(st.lists(events(), max_size=8), min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_every_run_keeps_the_contract(files):
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder, "run"))
        for i, records in enumerate(files):
            log.begin(f"{1_700_000_000 + i}.host.1.0")
            log.write(version(1.7e9 + i), *records)

        check_adapter(lambda: TensorBoardSource("tb", TensorBoardSource.Options(path=folder)))
