"""Whether a user's regular expression may take for ever on some line."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"\\."  # an escape
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"  # a class
    r"|\((?:\?(?:P<\w+>|[:=!>]|<[=!]|P=\w+|#[^)]*|[aiLmsux-]+:?|\(\w+\)))?"  # what opens a group
    r"|[*+?][+?]?|\{\d*,?\d*\}[+?]?|[)|]|.",
    re.S,
)


def repeats_inside_repeats(regex: str) -> bool:
    """Say whether something that repeats without end holds another such thing: ``(a+)+``, ``(a|b*)*``.

    Such a search may cost time exponential in the length of a line. What is possessive (``a++``) or in an
    atomic group ``(?>…)`` gives nothing back, and is safe.
    """
    # For each group that is open: whether it is atomic, and whether something in it repeats without end.
    open_groups: list[list[bool]] = [[False, False]]
    closed = False
    for token in _TOKEN.findall(regex):
        if token.startswith("(") and not token.endswith(")"):
            open_groups.append([token == "(?>", False])
            inside = False
        elif token == ")" and len(open_groups) > 1:
            atomic, repeats = open_groups.pop()
            inside = repeats and not atomic
            open_groups[-1][1] |= inside
        elif _endless(token):
            if closed and not token.endswith("+", 1):
                return True
            if not (len(token) > 1 and token.endswith("+")):
                open_groups[-1][1] = True
            inside = False
        else:
            inside = False
        closed = inside
    return False


def _endless(token: str) -> bool:
    return token[:1] in ("*", "+") or (token.startswith("{") and ",}" in token)
