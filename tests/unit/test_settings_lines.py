import tomllib

import pytest

from wtwin_watch.settings.lines import Lines

DOCUMENT = r'''# a comment [not.a.table]
state = "here"   # key = "no"

[alerts]
for = "0s"
"cool down" = '10m'
quoted."a.b" = 1

[[source]]
adapter = "csv"
text = """
adapter = "no"
[[source]] \""" ""
end"""

[[source]]
adapter = "csv"
list = [
  "one", # [[source]]
  { x = 1, y = [2, 3] },
  'three]',
]
inline = { a.b = 1, c = { d = "}" } }

[[source.rule]]
name = "first"
[[source.rule]]
name = "second"
[source.rule.deep]
when = 1979-05-27 07:32:00
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("state",), 2),
        (("alerts",), 4),
        (("alerts", "for"), 5),
        (("alerts", "cool down"), 6),
        (("alerts", "quoted"), 7),
        (("alerts", "quoted", "a.b"), 7),
        (("source",), 9),
        (("source", 0), 9),
        (("source", 0, "text"), 11),
        (("source", 1), 16),
        (("source", 1, "adapter"), 17),
        (("source", 1, "list"), 18),
        (("source", 1, "list", 0), 19),
        (("source", 1, "list", 1, "y", 1), 20),
        (("source", 1, "list", 2), 21),
        (("source", 1, "inline", "a", "b"), 23),
        (("source", 1, "inline", "c", "d"), 23),
        (("source", 1, "rule", 0, "name"), 26),
        (("source", 1, "rule", 1), 27),
        (("source", 1, "rule", 1, "deep", "when"), 30),
    ],
)
def test_a_key_stands_on_the_line_where_it_is_written(path, line):
    tomllib.loads(DOCUMENT)

    assert Lines(DOCUMENT).find(path) == line


def test_what_is_missing_is_told_by_the_table_where_it_should_stand():
    lines = Lines(DOCUMENT)

    assert lines.find(("source", 1, "interval")) == 16
    assert lines.find(("alerts", "for", "whatever")) == 5
    assert lines.find(("detector",)) == 1


def test_an_array_of_inline_tables_is_located_like_tables():
    text = 'source = [\n  { adapter = "csv" },\n  { adapter = "tensorboard" },\n]\n'

    assert Lines(text).find(("source", 1, "adapter")) == 3


def test_lines_are_counted_in_a_file_with_dos_line_ends():
    assert Lines("a = 1\r\n\r\n[b]\r\nc = 2\r\n").find(("b", "c")) == 4
