"""Which line a key of a TOML document stands on, which `tomllib` doesn't tell."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator

KeyPath = tuple[str | int, ...]
"""The way to a value: keys, and places in arrays counted from 0."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}#\n]*")
# The closing delimiter of a multi-line string may have one or two quotes more before it.
_STRINGS = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)


class Lines:
    """Where the keys of a document stand. ``text`` must be TOML that `tomllib` has read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._lengths: dict[KeyPath, int] = {}
        self.found: dict[KeyPath, int] = {}
        """Every key and array element, with its line counted from 1."""
        self._read()

    def find(self, path: KeyPath) -> int:
        """Say the line of ``path``, or of the nearest table around it; 1 for the document."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.found:
                return self.found[path[:length]]
        return 1

    def _read(self) -> None:
        table: KeyPath = ()
        while self._skip_blank():
            if self._take("[["):
                table = self._header(self._key())
                index = self._lengths.get(table, 0)
                self._lengths[table] = index + 1
                table = (*table, index)
                self._note(table)
                self._at += 2
            elif self._take("["):
                table = self._header(self._key())
                self._note(table)
                self._at += 1
            else:
                self._pair(table)

    def _header(self, key: list[str]) -> KeyPath:
        """Say what a header's dotted key leads to: into the last element of each array on the way."""
        path: KeyPath = ()
        for part in key:
            if path in self._lengths:
                path = (*path, self._lengths[path] - 1)
            path = (*path, part)
            self._note(path)
        return path

    def _pair(self, table: KeyPath) -> None:
        path = table
        for part in self._key():
            path = (*path, part)
            self._note(path)
        self._at += 1  # the equals sign
        self._skip_blank()
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        if self._take("["):
            for index in self._until("]"):
                self._note((*path, index))
                self._value((*path, index))
        elif self._take("{"):
            for _ in self._until("}"):
                self._pair(path)
        elif string := _STRINGS.match(self._text, self._at):
            self._at = string.end()
        else:
            self._match(_BARE_VALUE)

    def _until(self, closing: str) -> Iterator[int]:
        """Stop before each item of an array or inline table, and pass its end."""
        index = 0
        while self._skip_blank() and not self._take(closing):
            yield index
            index += 1
            self._skip_blank()
            self._take(",")

    def _key(self) -> list[str]:
        """Read a dotted key and the space behind it."""
        parts = []
        while True:
            self._match(_SPACE)
            quoted = _STRINGS.match(self._text, self._at)
            if quoted:
                self._at = quoted.end()
                parts.append(str(tomllib.loads(f"key = {quoted[0]}")["key"]))
            else:
                parts.append(self._match(_BARE_KEY))
            self._match(_SPACE)
            if not self._take("."):
                return parts

    def _note(self, path: KeyPath) -> None:
        self.found.setdefault(path, bisect_right(self._starts, self._at))

    def _skip_blank(self) -> bool:
        """Pass white space, line ends and comments; say whether anything follows."""
        self._match(_BLANK)
        return self._at < len(self._text)

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise ValueError(f"not TOML at character {self._at}")
        self._at = match.end()
        return match[0]

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False
