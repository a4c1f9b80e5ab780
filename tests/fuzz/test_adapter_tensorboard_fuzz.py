"""Whatever bytes an event file holds: it is read to its end, without an error."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.writers import EventLog, framed, scalar, session_start, tensor, version
from wtwin_adapters.eventfiles import recognise_events
from wtwin_adapters.tensorboard import TensorBoardSource
from wtwin_adapters.tfevents import decode
from wtwin_watch.testing import check_adapter

SOUND = [
    version(),
    scalar(3, 0.5),
    scalar(2**33, 0.25, "train/loss"),
    session_start(2),
    tensor(5, plugin="scalars", dtype=1, tensor_shape={}, float_val=[0.5]),
    tensor(6, plugin="images", dtype=19, tensor_shape={}, half_val=[1]),
]


@st.composite
def damaged(draw):
    """Sound records with bytes changed, left out or put in."""
    data = bytearray(b"".join(draw(st.lists(st.sampled_from(SOUND), max_size=6))))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        piece = draw(st.binary(max_size=12))
        data[at : at + draw(st.integers(0, 12))] = piece
    return bytes(data)


FILES = st.one_of(
    st.binary(max_size=300), damaged(), st.lists(st.binary(max_size=60).map(framed)).map(b"".join)
)


@given(st.lists(FILES, min_size=1, max_size=3))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_to_their_end(pieces):
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder))
        for piece in pieces:
            log.write(piece)
            log.read()
        recognise_events(log.file)
        check_adapter(lambda: TensorBoardSource("x", TensorBoardSource.Options(path=log.folder)))


@given(st.one_of(st.binary(max_size=200), damaged()))
@settings(max_examples=300, deadline=None)
def test_decoding_any_bytes_gives_an_event_or_a_value_error(data):
    try:
        event = decode(data, 0, len(data), lambda _: True, set())
    except ValueError:
        return
    assert all(isinstance(value, float) for _, value in event.values)


@pytest.mark.parametrize(
    "data", [b"\x09", b"\x12\xff", b"\x2a\xff\xff\xff\xff\x0f", b"\x10" + b"\xff" * 99]
)
def test_a_field_that_runs_past_its_message_is_a_value_error(data):
    with pytest.raises(ValueError, match=r"longer than its message|without an end"):
        decode(data, 0, len(data), lambda _: True, set())
