import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wtwin_watch.settings.lines import KeyPath, Lines

BARE = st.text("abcXYZ019_-", min_size=1, max_size=5)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)


def basic(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def multi_line(text: str) -> str:
    return '"""\n' + text.replace("\\", "\\\\").replace('"', '""\\"') + '\n""""'


KEY = BARE | TEXT.map(basic)
SPACE = st.sampled_from(["", " ", "\t "])
GAP = st.sampled_from(["", "\n", " # ] } , \" ' [[x]]\n", "\n\n  "])
SCALAR = st.one_of(
    TEXT.map(basic),
    TEXT.map(multi_line),
    TEXT.filter(lambda text: "'" not in text).map(lambda text: f"'{text}'"),
    TEXT.filter(lambda text: "'" not in text).map(lambda text: f"'''{text}\n''''"),
    st.sampled_from(["1", "-1.5e3", "inf", "true", "1979-05-27 07:32:00", "07:32:00"]),
)


@st.composite
def arrays(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    items = draw(st.lists(values, max_size=3))
    parts = [f"{draw(GAP)}{item}{draw(GAP)}" for item in items]
    return "[" + ",".join(parts) + ("," if items and draw(st.booleans()) else "") + "]"


@st.composite
def inline_tables(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    pairs = draw(st.lists(st.tuples(KEY, values), max_size=3))
    return "{ " + ", ".join(f"{key}{draw(SPACE)}= {value}" for key, value in pairs) + " }"


VALUE = st.recursive(SCALAR, lambda values: arrays(values) | inline_tables(values), max_leaves=6)
DOTTED = st.lists(KEY, min_size=1, max_size=3).map(" . ".join)
LINE = st.one_of(
    st.builds("{} = {}".format, DOTTED, VALUE),
    DOTTED.map("[{}]".format),
    DOTTED.map("[[ {} ]] # x".format),
    st.sampled_from(["", "# a = 1"]),
)


def paths(value: Any, path: KeyPath = ()) -> set[KeyPath]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return {path}.union(*(paths(item, (*path, key)) for key, item in items))


@given(st.lists(LINE, max_size=8))
def test_every_key_that_the_reader_finds_has_a_line_and_no_other_has(lines: list[str]):
    kept: list[str] = []
    for line in lines:
        try:
            tomllib.loads("\n".join([*kept, line]))
        except tomllib.TOMLDecodeError:
            continue
        kept.append(line)
    text = "\n".join(kept)

    found = Lines(text).found

    assert set(found) == paths(tomllib.loads(text)) - {()}
    assert all(1 <= line <= text.count("\n") + 1 for line in found.values())
