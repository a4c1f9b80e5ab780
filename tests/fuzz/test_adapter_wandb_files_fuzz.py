"""Whatever bytes a ``.wandb`` file holds: it is read to its end, without an error."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.wandb_writer import HEADER, WandbLog, end, framed, history, item, run
from wtwin_adapters.wandb_files import WandbFilesSource
from wtwin_adapters.wandb_records import HISTORY, RUN, Rows, parts, run_facts
from wtwin_watch.testing import check_adapter

SOUND = [run(), history(1, loss=0.5), history(0, item(["a", "loss"], "{}"), lr=1), end(3)]


@st.composite
def damaged(draw, frame):
    """Sound records with bytes changed, left out or put in."""
    data = bytearray(frame(draw(st.lists(st.sampled_from(SOUND), max_size=6))))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        data[at : at + draw(st.integers(0, 12))] = draw(st.binary(max_size=12))
    return bytes(data)


BYTES = st.one_of(
    st.binary(max_size=300),
    damaged(framed),
    st.lists(st.binary(max_size=60), max_size=5).map(framed),
)


@given(st.lists(BYTES, min_size=1, max_size=3))
@settings(max_examples=150, deadline=None)
def test_any_bytes_in_a_file_of_wandb_are_read_to_their_end(pieces):
    with tempfile.TemporaryDirectory() as folder:
        log = WandbLog(Path(folder))
        for piece in pieces:
            log.append(piece)
            log.read()
        WandbFilesSource.recognise(log.file)
        check_adapter(
            lambda: WandbFilesSource("w", WandbFilesSource.Options(path=folder)), limits=(1, 50)
        )


@given(st.one_of(st.binary(max_size=200), damaged(b"".join)))
@settings(max_examples=300, deadline=None)
def test_decoding_any_bytes_gives_a_row_or_a_value_error(data):
    rows = Rows(lambda _: True)
    try:
        found = parts(data)
        row = rows.row(data, *found.get(HISTORY, (0, len(data))))
        run_facts(data, *found.get(RUN, (0, len(data))))
    except ValueError:
        return
    assert all(isinstance(value, float | str | None) for _, value in row.values)


def test_a_header_alone_is_no_error():
    with tempfile.TemporaryDirectory() as folder:
        log = WandbLog(Path(folder))
        assert log.file.read_bytes() == HEADER
        assert log.losses() == []
