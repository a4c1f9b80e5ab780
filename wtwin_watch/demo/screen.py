"""What the demo shows: a line for each thing said, with the speaker in front, and a curve that moves.

On a terminal the latest line about the training is drawn over itself; elsewhere there is no colour and
nothing is drawn over.
"""

from __future__ import annotations

import os
import shutil
import textwrap
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TextIO

_BARS = "▁▂▃▄▅▆▇█"
_COLOURS = {"training": "36", "watcher": "33", "receiver": "35", "demo": "1"}
_GOOD, _BAD, _DIM = "32", "31", "2"
_SPEAKER_WIDTH = max(map(len, _COLOURS)) + 2
_CLOCK_WIDTH = len("00.0 s  ")
_REDRAW_S = 0.1


class Screen:
    """Writes to ``stream``; draws and colours if that is a terminal and ``$NO_COLOR`` isn't set."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str] = os.environ) -> None:
        self._stream = stream
        able = environ.get("TERM") != "dumb" and _encodes(stream, _BARS)
        self._terminal = stream.isatty() and able
        self._colours = self._terminal and not environ.get("NO_COLOR")
        self._started = time.monotonic()
        self._live = ""
        self._drawn = False
        self._drawn_at = 0.0

    @property
    def lively(self) -> bool:
        """Whether `live` shows anything."""
        return self._terminal

    def say(self, speaker: str, text: str, good: bool | None = None) -> None:
        """Add a line for good. ``good`` colours it as what should be, or should not."""
        clock = f"{time.monotonic() - self._started:4.1f} s  "
        width = self._columns() - _SPEAKER_WIDTH - _CLOCK_WIDTH if self._terminal else 0
        first, *rest = (
            textwrap.wrap(text, max(20, width), break_on_hyphens=False) if width else [text]
        )
        tone = {True: _GOOD, False: _BAD, None: ""}[good]
        line = self._painted(clock, _DIM) + self._label(speaker) + self._painted(first, tone)
        indent = " " * (_SPEAKER_WIDTH + _CLOCK_WIDTH)
        self._erase()
        self._stream.write(
            "\n".join([line, *(indent + self._painted(more, tone) for more in rest)]) + "\n"
        )
        self._draw()

    def live(self, speaker: str, text: str) -> None:
        """Show a line that the next one replaces; nothing where nothing can be drawn over."""
        if not self._terminal:
            return
        room = self._columns() - _SPEAKER_WIDTH - _CLOCK_WIDTH - 1
        self._live = " " * _CLOCK_WIDTH + self._label(speaker) + text[:room]
        if time.monotonic() - self._drawn_at >= _REDRAW_S:
            self._erase()
            self._draw()

    def end_live(self) -> None:
        """Take the moving line away."""
        self._erase()
        self._live = ""

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
        self._drawn = False

    def _draw(self) -> None:
        self._stream.write(self._live)
        self._drawn, self._drawn_at = bool(self._live), time.monotonic()
        self._stream.flush()

    def _label(self, speaker: str) -> str:
        return self._painted(f"{speaker:<{_SPEAKER_WIDTH}}", _COLOURS.get(speaker, ""))

    def _painted(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colours and code else text

    def _columns(self) -> int:
        return shutil.get_terminal_size().columns


def _encodes(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def sparkline(values: Sequence[float], width: int) -> str:
    """Draw values from 0 up as at most ``width`` bars; a bar is the mean of its share of the values."""
    if not values:
        return ""
    count = min(width, len(values))
    edges = [round(i * len(values) / count) for i in range(count + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    top = max(means) or 1.0
    return "".join(_BARS[min(len(_BARS) - 1, int(mean / top * len(_BARS)))] for mean in means)
