"""Text that a run supplied, made safe to hand on: it steers no terminal and breaks no encoding."""

from __future__ import annotations

import re

# C0 and C1 controls (newline apart), line and paragraph separators, the marks that turn the direction of
# writing round, the non-characters, and lone surrogates, which a file name that isn't UTF-8 brings along.
_UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff"
    "\ud800-\udfff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAK = re.compile(r"\s*\n\s*")


def block(text: str) -> str:
    """Return ``text`` with its line breaks, and every other control character shown as U+FFFD."""
    text = text.replace("\r\n", "\n").replace("\t", " ")
    return _UNSAFE.sub("\ufffd", text).strip()


def line(text: str) -> str:
    """Return ``text`` on one line, every control character shown as U+FFFD."""
    return _BREAK.sub(" ", block(text))


def encodable(text: str) -> str:
    """Return ``text`` as it is, but for lone surrogates, which no UTF-8 can hold."""
    return _SURROGATE.sub("\ufffd", text)


def shorten(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of ``text``, the last one an ellipsis where it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
