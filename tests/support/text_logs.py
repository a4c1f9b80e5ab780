"""Text logs read by a pattern of the tests' choice."""

from dataclasses import dataclass

from wtwin_adapters.sink import Progress, Sink
from wtwin_adapters.textrows import TextRows
from wtwin_watch.metrics import Names
from wtwin_watch.model import Point


@dataclass
class Read:
    points: list[Point]
    step_name: str | None
    skipped: dict[str, int]


def read_text(text, pattern, names=Names()):  # noqa: B008 - frozen
    """Read ``text`` by the pattern of this name, all at once."""
    rows = TextRows(names, {"pattern": pattern})
    sink = Sink(Progress(), 100_000)
    chunk = text.encode()
    assert rows.take(chunk, sink, last=False) == len(chunk)
    return Read(sink.points, rows.step_name, dict(sink.skipped))
