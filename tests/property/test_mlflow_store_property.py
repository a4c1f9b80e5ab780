"""Metrics of a file store, whatever is in them and however they grow."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wtwin_adapters.mlflow_metricfile import read_run
from wtwin_watch.testing import points_of

_LINES = st.one_of(
    st.binary(max_size=40),
    st.builds(
        lambda at, value, step: f"{1_790_000_000_000 + at} {value!r} {step}".encode(),
        st.integers(0, 10**6),
        st.floats(),
        st.integers(-(10**6), 10**6),
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("metrics")


def rows(batches):
    return [(p.metric, repr(p.value), p.wall_time) for p in points_of(batches)]


def read_all(files, cursor, limit):
    batches = []
    while not batches or batches[-1].more:
        batches.append(read_run(files, json.loads(json.dumps(cursor)), limit))
        cursor = batches[-1].cursor
    return batches


@given(
    lines=st.lists(_LINES, max_size=30), cuts=st.lists(st.integers(0, 900)), limit=st.integers(1, 9)
)
def test_a_metric_of_a_store_gives_the_same_points_however_it_grows(folder, lines, cuts, limit):
    content = b"".join(line + b"\n" for line in lines)
    path = folder / "loss"
    files = {"loss": str(path)}
    path.write_bytes(content)
    whole = read_all(files, None, 1000)

    path.write_bytes(b"")
    cursor, grown = None, []
    for cut in [*sorted(cut for cut in cuts if cut < len(content)), len(content)]:
        path.write_bytes(content[:cut])
        grown += read_all(files, cursor, limit)
        cursor = grown[-1].cursor

    assert rows(grown) == rows(whole)
    assert sum(sum(b.skipped.values()) for b in grown) == sum(
        sum(b.skipped.values()) for b in whole
    )
