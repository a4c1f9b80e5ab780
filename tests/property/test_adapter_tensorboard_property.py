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


WALLS = st.sampled_from([1.7e9, 0.0, -1.0, 5e9, 9e9, 1e13, float("nan"), float("inf")])
STARTS = st.sampled_from([0, 100, 120, 16_370, 2_097_140, 268_435_440, -3, 2**40])


def logged(tag, style, step, wall, value):
    """A record as a writer of one of the styles makes it."""
    if style == "old":
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
        return record(Event(wall_time=wall, step=step, summary=summary))
    proto = (
        {"dtype": 2, "double_val": [value]}
        if style == "double"
        else {"dtype": 1, "float_val": [value]}
    )
    return tensor(step, tag, "scalars", tensor_shape={}, wall_time=wall, **proto)


@st.composite
def stretches(draw):
    """Stretches of groups that repeat, as training loops log them, with what may come between."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        kinds = st.tuples(st.sampled_from(TAGS), st.sampled_from(["old", "new", "double"]))
        group = draw(st.lists(kinds, min_size=1, max_size=4))
        step, stride = draw(STARTS), draw(st.integers(0, 3))
        wall = draw(WALLS)
        for _ in range(draw(st.integers(1, 30))):
            values = [
                draw(FLOATS) if draw(st.integers(0, 20)) == 0 else 1 / (7 + step % 5) for _ in group
            ]
            found += [
                logged(tag, style, step, wall, value)
                for (tag, style), value in zip(group, values, strict=True)
            ]
            step += stride
            if draw(st.integers(0, 25)) == 0:
                wall = draw(WALLS)
    return found


def finite(when):
    return when if 0.0 <= when < 1e12 else None


@given(stretches(), st.sampled_from([1, 7, 50, 10_000]))
@settings(max_examples=150, deadline=None)
def test_long_stretches_of_like_records_are_those_of_tensorboards_loader(records, limit):
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder, "run"))
        log.write(version(), *records)

        points = points_of(log.read(limit))

        said = [(p.metric, p.step, repr(p.value), p.wall_time) for p in points]
        assert said == [(*found[:3], finite(found[3])) for found in as_tensorboard_reads(log.file)]


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


@given(stretches(), st.lists(st.integers(0, 4000), max_size=6), st.data())
@settings(max_examples=80, deadline=None)
def test_a_damaged_or_growing_stretch_gives_the_same_points_in_any_pieces(records, cuts, data):
    raw = bytearray(version() + b"".join(records))
    for _ in range(data.draw(st.integers(0, 2))):
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    with tempfile.TemporaryDirectory() as folder:
        whole, growing = EventLog(Path(folder, "whole")), EventLog(Path(folder, "growing"))
        whole.write(bytes(raw))
        edges = [0, *sorted({min(cut, len(raw)) for cut in cuts}), len(raw)]
        batches = []
        for start, end in pairwise(edges):
            growing.write(bytes(raw[start:end]))
            batches += growing.read(limit=40)

        assert list(map(repr, points_of(batches))) == list(map(repr, points_of(whole.read())))
        assert list(map(repr, points_of(batches))) == one_by_one(whole)


def one_by_one(log):
    """The points of a file when each record is looked at alone."""
    log.cursor = None
    return list(map(repr, points_of(log.read(limit=1))))


@given(st.lists(st.lists(events(), max_size=8), min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_every_run_keeps_the_contract(files):
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder, "run"))
        for i, records in enumerate(files):
            log.begin(f"{1_700_000_000 + i}.host.1.0")
            log.write(version(1.7e9 + i), *records)

        check_adapter(lambda: TensorBoardSource("tb", TensorBoardSource.Options(path=folder)))
