"""Folders of several event files: their points beside those that TensorBoard itself loads."""

import math
import struct
import tempfile
from collections import defaultdict
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.util import tensor_util

from tests.support.writers import EventLog, record, session_start, version
from wtwin_watch.metrics import Names, wanted
from wtwin_watch.testing import points_of

VALUES = st.one_of(
    st.floats(width=16), st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 2.0**-14])
)
STEPS = st.one_of(st.integers(-5, 400), st.sampled_from([-(2**62), 2**40, 2**62]))
TAGS = {
    "train_loss": "old",
    "loss": "float",
    "val_loss": "double",
    "lr": "half",
    "grad_norm": "content",
    "accuracy": "float",
}


def value_of(tag, number, *, told):
    """A value as a writer makes it; the plugin is told with a tag's first value of a file alone."""
    kind = TAGS[tag]
    value = Summary.Value(tag=tag)
    if kind == "old":
        value.simple_value = number
        return value
    shape = {"tensor_shape": {}}
    half = int.from_bytes(struct.pack("<e", number), "little")
    proto = {
        "float": {"dtype": 1, "float_val": [number]},
        "double": {"dtype": 2, "double_val": [number]},
        "half": {"dtype": 19, "half_val": [half]},
        "content": {"dtype": 2, "tensor_content": struct.pack("<d", number)},
    }[kind]
    value.tensor.CopyFrom(TensorProto(**shape, **proto))
    if told:
        value.metadata.plugin_data.plugin_name = "scalars"
    return value


MEDIA = [
    Summary.Value(tag="image", image=Summary.Image(height=1, width=1, encoded_image_string=b"x")),
    Summary.Value(tag="weights", histo={"num": 1, "bucket_limit": [1.0], "bucket": [1.0]}),
    Summary.Value(tag="vector", tensor=TensorProto(dtype=1, tensor_shape={"dim": [{"size": 2}]})),
]


@st.composite
def event_files(draw):
    """The bytes of a file: one writer's events, and what may be left at its end."""
    told, records = set(), [version()]
    for _ in range(draw(st.integers(0, 8))):
        values = []
        for tag in draw(
            st.lists(st.sampled_from(sorted(TAGS)), min_size=1, max_size=3, unique=True)
        ):
            values.append(value_of(tag, draw(VALUES), told=tag not in told))
            told.add(tag)
        if draw(st.booleans()):
            values.insert(draw(st.integers(0, len(values))), draw(st.sampled_from(MEDIA)))
        events = Event(wall_time=1.7e9, step=draw(STEPS), summary=Summary(value=values))
        records.append(record(events))
    data = b"".join(records)
    tail = draw(st.sampled_from(["whole", "torn", "zeros"]))
    return {"whole": data, "torn": data[:-7], "zeros": data + bytes(40)}[tail]


def as_tensorboard_loads(path):
    """Every scalar that a monitor may want; a tag's plugin is remembered from its first value."""
    found, plugins = [], {}
    for event in EventFileLoader(str(path)).Load():
        for value in event.summary.value if event.HasField("summary") else ():
            plugin = value.metadata.plugin_data.plugin_name or plugins.get(value.tag)
            plugins[value.tag] = plugin
            if plugin == "scalars" and wanted(value.tag, Names()):
                number = float(tensor_util.make_ndarray(value.tensor))
                found.append((value.tag, float(event.step), repr(number)))
    return found


@given(st.lists(event_files(), min_size=1, max_size=4), st.sampled_from([3, 10_000]))
@settings(max_examples=80, deadline=None)
def test_the_points_of_many_files_are_those_that_tensorboard_loads(files, limit):
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder, "run"))
        expected = []
        for i, data in enumerate(files):
            log.begin(f"{1_700_000_000 + i}.host.{i}.0")
            log.write(data)
            expected += as_tensorboard_loads(log.file)

        points = points_of(log.read(limit))

        assert [(p.metric, p.step, repr(p.value)) for p in points] == expected


@st.composite
def sessions(draw):
    """Where each session of a training begins, and how many steps it makes."""
    begins = st.integers(0, 60)
    return draw(st.lists(st.tuples(begins, st.integers(0, 25)), min_size=1, max_size=5))


@given(sessions(), st.booleans(), st.sampled_from([7, 10_000]))
@settings(max_examples=80, deadline=None)
def test_what_restarts_leave_is_what_tensorboard_shows(training, one_file, limit):
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder, "run"))
        log.write(version())
        for i, (first, count) in enumerate(training):
            if i and not one_file:
                log.begin(f"{1_700_000_000 + i}.host.{i}.0")
                log.write(version())
            if i:
                log.write(session_start(first))
            for step in range(first, first + count):
                value = Summary.Value(tag="loss", simple_value=i + step / 128)
                log.write(record(Event(wall_time=1.7e9, step=step, summary=Summary(value=[value]))))
        shown = EventAccumulator(str(log.folder), size_guidance={"scalars": 0}).Reload()
        expected = defaultdict(list)
        for tag in shown.Tags()["scalars"]:
            expected[tag] = [(float(e.step), e.value) for e in shown.Scalars(tag)]

        left = []
        for batch in log.read(limit):
            if batch.restart is not None:
                left = [kept for kept in left if kept[0] < batch.restart.step]
            left += [(p.step, p.value) for p in batch.points]

        assert left == expected["loss"]
