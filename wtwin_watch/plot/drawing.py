"""Draws a view of a run's loss as a PNG that can still be read at 360 pixels wide.

Needs the extra ``plot``; matplotlib is loaded by the first picture, without any window system.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from wtwin_watch.monitor.curve import Curve
from wtwin_watch.plot.view import Mark, Moment, View, free_corner, view
from wtwin_watch.plugins import install_command

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE_INCHES = (7.2, 4.8)
DPI = 150
"""1080 x 720 pixels: three times the width at which it must still be readable."""

_INK, _GREY, _BLUE = "#1f2937", "#6b7280", "#2563eb"
_COLOURS = {Moment.ONSET: "#b45309", Moment.ALERT: "#dc2626", Moment.RESOLVED: "#15803d"}
_HEADLINE_CHARS, _DETAIL_CHARS = 46, 66
_BEHIND = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.8}
_LINE, _LABEL_WIDTH = 0.105, 0.17
"""Parts of the picture that a line of text, and a mark's label, take."""


def available() -> bool:
    """Whether pictures can be drawn."""
    return find_spec("matplotlib") is not None


def lacking() -> str:
    """Say what to install where pictures can't be drawn."""
    try:
        command = install_command(distribution("wtwin-watch"), "plot")
    except PackageNotFoundError:
        command = "pip install matplotlib"
    return f"a plot needs matplotlib, which isn't installed; install it with: {command}"


def draw(curve: Curve, marks: Sequence[Mark], headline: str, detail: str = "") -> bytes:
    """Draw ``curve`` with its forecast, the ``marks`` and W below; return the PNG.

    Takes some tenths of a second. No part of the texts is read as markup.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    seen = view(curve, marks)
    figure = Figure(figsize=SIZE_INCHES, dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    top, bottom = figure.subplots(
        2, 1, sharex=True, gridspec_kw={"height_ratios": (3.2, 1), "hspace": 0.08}
    )
    figure.subplots_adjust(left=0.115, right=0.985, top=0.845, bottom=0.095)
    _title(figure, headline, detail)
    _draw_loss(top, seen, marks)
    _draw_score(bottom, seen, marks)
    for axes in (top, bottom):
        axes.set_xlim(*seen.x)
        _plain(axes)
    top.tick_params(labelbottom=False)
    bottom.xaxis.set_major_formatter(_steps)
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def _title(figure: Any, headline: str, detail: str) -> None:
    texts = (
        (0.955, headline, _HEADLINE_CHARS, 17, "bold", _INK),
        (0.89, detail, _DETAIL_CHARS, 13, "normal", _GREY),
    )
    for y, text, most, size, weight, colour in texts:
        figure.text(
            0.02, y, _shown(text, most), fontsize=size, fontweight=weight, color=colour,
            va="center", parse_math=False,
        )  # fmt: skip


def _draw_loss(axes: Axes, seen: View, marks: Sequence[Mark]) -> None:
    if seen.logarithmic:
        axes.set_yscale("log")
    step = seen.step
    axes.set_ylim(*seen.y)
    axes.fill_between(step, seen.band_low, seen.band_high, color=_BLUE, alpha=0.16, lw=0)
    axes.fill_between(step, seen.low, seen.high, color=_INK, alpha=0.25, lw=0)
    axes.plot(step, seen.mean, color=_INK, lw=1.8)
    axes.plot(step, seen.expected, color=_BLUE, lw=2.4, ls=(0, (4, 1.5)))
    if len(seen.lost):
        axes.plot(
            seen.lost, np.full(len(seen.lost), 1.0), "x", color=_COLOURS[Moment.ALERT], ms=8, mew=2.2,
            transform=axes.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip
    _draw_marks(axes, seen, marks, labelled=True)
    _name_lines(axes, seen, marks)


def _name_lines(axes: Axes, seen: View, marks: Sequence[Mark]) -> None:
    """Say which line is which, in a corner that is free."""
    right, top = free_corner(seen, marks)
    names = [("loss", _INK)]
    if not np.isnan(seen.expected).all():
        names.append(("expected", _BLUE))
    if len(seen.lost):
        names.append(("x not finite", _COLOURS[Moment.ALERT]))
    for row, (name, colour) in enumerate(names):
        height = 0.96 - _LINE * row if top else 0.04 + _LINE * (len(names) - 1 - row)
        axes.text(
            0.985 if right else 0.015, height, name, color=colour, fontsize=14, fontweight="bold",
            transform=axes.transAxes, ha="right" if right else "left", va="top" if top else "bottom",
            bbox=_BEHIND,
        )  # fmt: skip


def _draw_marks(axes: Axes, seen: View, marks: Sequence[Mark], *, labelled: bool) -> None:
    inside = [mark for mark in marks if seen.x[0] <= mark.step <= seen.x[1]]
    named: set[Moment] = set()
    for mark in inside:
        colour = _COLOURS[mark.moment]
        style = ":" if mark.moment is Moment.ONSET else "-"
        axes.axvline(mark.step, color=colour, lw=2.4, ls=style, zorder=1.5)
        if not labelled or mark.moment in named:
            continue
        # The onset's label stands to the left of its line, the others' to the right of theirs.
        share = (mark.step - seen.x[0]) / (seen.x[1] - seen.x[0])
        left = (mark.moment is Moment.ONSET and share > _LABEL_WIDTH) or share > 1.0 - _LABEL_WIDTH
        height = 0.96 - _LINE * len(named)
        named.add(mark.moment)
        axes.text(
            share + (-0.008 if left else 0.008), height, mark.moment.value, color=colour, fontsize=14,
            fontweight="bold", transform=axes.transAxes, ha="right" if left else "left", va="top",
            bbox=_BEHIND,
        )  # fmt: skip


def _draw_score(axes: Axes, seen: View, marks: Sequence[Mark]) -> None:
    axes.set_ylim(*seen.score_limits)
    score = np.clip(seen.score, -1e6, 1e6)
    red = _COLOURS[Moment.ALERT]
    axes.fill_between(
        seen.step, 0.0, score, where=score > 0.0, interpolate=True, color=red, alpha=0.35
    )
    axes.plot(seen.step, score, color=_INK, lw=1.6)
    axes.axhline(0.0, color=red, lw=1.4)
    _draw_marks(axes, seen, marks, labelled=False)
    axes.text(
        0.015, 0.93, "W  (alert above 0)", fontsize=13, color=_GREY, va="top",
        transform=axes.transAxes, bbox=_BEHIND,
    )  # fmt: skip


def _plain(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator, NullFormatter

    axes.tick_params(labelsize=13, colors=_GREY, length=3)
    axes.grid(visible=True, color="#e5e7eb", lw=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if axes.get_yscale() == "linear":
        axes.yaxis.set_major_locator(MaxNLocator(4))
    else:
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def _steps(step: float, _: object = None) -> str:
    """Write a step shortly: 12k, 1.5M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(step) >= 10 * size or (abs(step) >= size and step % (size / 10) == 0):
            return f"{step / size:.5g}{unit}"
    return f"{step:.6g}"


def _shown(text: str, most: int) -> str:
    """One line that the font can draw."""
    from matplotlib import font_manager

    known = font_manager.get_font(font_manager.findfont("DejaVu Sans")).get_charmap()
    line = " ".join(text.split())
    line = "".join(char if ord(char) in known else "?" for char in line)
    return line if len(line) <= most else line[: most - 1] + "…"
