"""Whatever bytes a log holds: it is read to its end, without an error, in bounded pieces."""

import tempfile
from pathlib import Path

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.writers import Log
from wtwin_adapters.files import GZIP
from wtwin_adapters.tabular import TabularSource
from wtwin_watch.testing import check_adapter

SCRAPS = st.sampled_from(
    [
        b"step,loss\n",
        b'{"step":1,"loss":',
        b"\n",
        b"\r",
        b'"',
        b",",
        b"1",
        b".5",
        b"{",
        b"}",
        b"\0",
        b"\xff",
    ]
)
BYTES = st.one_of(st.binary(max_size=400), st.lists(SCRAPS, max_size=80).map(b"".join))


@given(st.sampled_from([".csv", ".tsv", ".jsonl"]), st.lists(BYTES, max_size=4))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_to_their_end(extension, pieces):
    # What begins as a compressed file is unpacked, or said to be damaged.
    assume(not b"".join(pieces).startswith(GZIP))
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder, "run" + extension))
        for piece in pieces:
            log.write(piece)
            log.read()
            TabularSource.recognise(log.path)
        if pieces:
            check_adapter(lambda: TabularSource("x", TabularSource.Options(path=log.path)))
            log.come_to_rest()
            log.read(limit=1)


@given(st.lists(BYTES, min_size=2, max_size=4))
@settings(max_examples=30, deadline=None)
def test_any_rewriting_is_survived(pieces):
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder, "run.csv"))
        for piece in pieces:
            log.rewrite(b"step,loss\n1,2\n2,1\n" + piece)
            log.read()
