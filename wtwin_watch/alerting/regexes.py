"""How long a regular expression may search at worst.

Routes and silences are looked at by the thread that follows all runs, and Python's ``re`` can't be stopped:
``(a+)+`` beside a name of forty letters would take hours. So the ways in which an expression can match are
counted before it is taken.
"""

from __future__ import annotations

import math
import re

_LENGTH = 100
"""The characters of a name that is long, but not absurd."""
_MOST_WAYS = float(_LENGTH) ** 4
"""A tenth of this is tried in about a second; four endless repetitions one after the other have it."""
_TOKEN = re.compile(
    r"\\."  # an escape
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"  # a class
    r"|\((?:\?(?:P<\w+>|[:=!>]|<[=!]|P=\w+|#[^)]*|[aiLmsux-]+:?|\(\w+\)))?"  # what opens a group
    r"|(?P<repeat>[*+?]|\{(?=[\d,])(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\})(?P<giving>[+?]?)"
    r"|[|)]|.",
    re.DOTALL,
)


def may_search_for_ever(regex: str) -> bool:
    """Whether there may be a name beside which matching ``regex``, which is valid, takes minutes or more.

    Careful rather than exact: what repeats alternatives or other repetitions, as ``(a|b)*`` does, counts.
    """
    return _ways(regex) > _MOST_WAYS


def _ways(regex: str) -> float:
    """In how many ways the parts of a long name may be shared out among those of ``regex``, at most."""
    # Of each open group: the ways of its alternatives so far, of this one but for its last part, and of that.
    total, before, last = 0.0, 1.0, 1.0
    outer: list[tuple[float, float, float]] = []
    for token in _TOKEN.finditer(regex):
        text = token[0]
        if token["repeat"] is not None:
            last = _repeated(token, last)
        elif text.startswith("("):
            outer.append((total, before * last, 1.0))
            total, before, last = 0.0, 1.0, 1.0
        elif text == ")" and outer:
            inside = total + before * last
            total, before, last = *outer.pop()[:2], inside
        elif text == "|":
            total, before, last = total + before * last, 1.0, 1.0
        else:
            before, last = before * last, 1.0
    return total + before * last


def _repeated(token: re.Match[str], once: float) -> float:
    """The ways of something that has ``once`` ways, as often as ``token`` says."""
    least, most = {"*": (0, _LENGTH), "+": (1, _LENGTH), "?": (0, 1)}.get(token["repeat"], (0, 0))
    if token["least"] is not None:
        least = int(token["least"] or 0)
        most = _LENGTH if token["comma"] and not token["most"] else int(token["most"] or least)
    if once <= 1.0:
        # What is possessive gives nothing back, so there is one way.
        return 1.0 if token["giving"] == "+" else float(max(1, min(most, _LENGTH) - least + 1))
    try:
        return once ** min(most, _LENGTH) + (least == 0)
    except OverflowError:
        return math.inf
