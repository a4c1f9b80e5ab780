"""The forms in which records of event files hold one scalar, remembered so that each is decoded once.

A writer repeats itself: what stands before and behind the number of a tag is the same in each of its
records, so these bytes are looked up as a whole.
"""

# The bytes are keys of protocol buffers.
# ruff: noqa: PLR2004

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

from wtwin_adapters.naming import usable
from wtwin_adapters.tfalike import Form
from wtwin_adapters.tfevents import plugin_of
from wtwin_adapters.tfframes import FOOTER, HEADER
from wtwin_adapters.wire import fields, float32
from wtwin_watch.metrics import Names

CACHED = 4096
"""So many forms of a kind are remembered at most."""
SHORTEST = 22
"""No event with a scalar is shorter, in bytes."""
# A group of records that repeats has at most so many.
_LONGEST_GROUP = 16

# The usual beginnings of a tensor of rank 0, up to its number: field 8 of the value, its length, the
# data type, an empty shape, and the field and length of the number.
_TENSORS = {
    bytes([0x42, 0x0A, 0x08, 1, 0x12, 0, 0x22, 4]): struct.Struct("<f"),
    bytes([0x42, 0x0A, 0x08, 1, 0x12, 0, 0x2A, 4]): struct.Struct("<f"),
    bytes([0x42, 0x0E, 0x08, 2, 0x12, 0, 0x22, 8]): struct.Struct("<d"),
    bytes([0x42, 0x0E, 0x08, 2, 0x12, 0, 0x32, 8]): struct.Struct("<d"),
}


@dataclass(slots=True)
class Tag:
    """A metric as this reading knows it; ``last`` is the step it had last."""

    name: str
    last: float = -math.inf


NOT_WANTED, LONG_WAY = Tag(""), Tag("")
"""Stand for a tag that no monitor wants, and for a record that has to be decoded in full."""


class Forms:
    """The tags and forms met in one reading.

    ``seen`` are the last steps of the metrics, ``others`` the tags of other plugins than scalars.
    """

    def __init__(self, names: Names, seen: dict[str, float], others: set[bytes]) -> None:
        self.seen = seen
        self.others = others
        self.beside = False
        """The present file is written beside another, so it has steps of its own."""
        self.lengths: dict[bytes, int] = {}
        """By the headers of records."""
        self.frames: dict[bytes, Tag] = {}
        """By what stands before a float at the end of a record."""
        self.heads: dict[bytes, tuple[Tag, int, Callable[..., tuple[float]]]] = {}
        """By what stands before a number that is followed by metadata."""
        self._names = names
        self._tags: dict[bytes, Tag | None] = {}
        self._metadata: dict[bytes, bool] = {}

    def tag(self, label: bytes) -> Tag | None:
        """The metric that a tag's name, as it stands in the file, is; None if no monitor wants it."""
        if label in self._tags:
            return self._tags[label]
        if len(self._tags) >= CACHED:
            self.forget()
        tag = None
        if self.wants(label):
            name = label.decode()
            tag = Tag(name, -math.inf if self.beside else self.seen.get(name, -math.inf))
        self._tags[label] = tag
        return tag

    def wants(self, label: bytes) -> bool:
        """Whether a monitor may want the metric of this name."""
        try:
            return usable(label.decode(), self._names)
        except UnicodeDecodeError:
            return False

    def forget(self) -> None:
        """Forget all tags, whose last steps are kept."""
        self.keep_seen()
        for cache in (self._tags, self.frames, self.heads):
            cache.clear()

    def keep_seen(self) -> None:
        """Bring ``seen`` up to date."""
        for tag in self._tags.values():
            if tag is not None and tag.last > -math.inf:
                self.seen[tag.name] = tag.last

    def rewind(self, step: float) -> None:
        """Let no metric be farther than ``step``."""
        self.keep_seen()
        for name, last in self.seen.items():
            self.seen[name] = min(last, step)
        for tag in self._tags.values():
            if tag is not None:
                tag.last = min(tag.last, step)

    def group(self, data: bytes, pos: int) -> tuple[list[Tag], list[Form]]:
        """Find the records from ``pos`` on until the first one's tag comes again; none if it doesn't."""
        tags: list[Tag] = []
        forms: list[Form] = []
        labels: list[bytes] = []
        while len(forms) < _LONGEST_GROUP:
            found = self._form(data, pos)
            if found is None:
                break
            tag, label, form = found
            if labels and label == labels[0]:
                return tags, forms
            # A tag may stand in a group once, since its steps are compared within its column.
            if tag is not NOT_WANTED and any(tag is other for other in tags):
                break
            tags.append(tag)
            forms.append(form)
            labels.append(label)
            pos += form.size
        return [], []

    def _form(self, data: bytes, pos: int) -> tuple[Tag, bytes, Form] | None:
        """Say how the record at ``pos`` lies if it holds one scalar in a form that was met already."""
        length = self.lengths.get(data[pos : pos + HEADER])
        i = pos + HEADER
        if length is None or length < SHORTEST or i + length + FOOTER > len(data):
            return None
        if data[i] != 0x09 or data[i + 9] != 0x10:
            return None
        stop, j = i + length, i + 11
        while data[j - 1] > 127 and j < i + 14:
            j += 1
        if data[j - 1] > 127:
            return None
        at, double = stop - 4, False
        label = data[j:at]
        tag = self.frames.get(label)
        if tag is None:
            at = j + 14 + data[j + 5]
            label = data[j:at]
            head = self.heads.get(label)
            if head is None or j + 2 + data[j + 1] != stop:
                return None
            tag, size, _ = head
            rest = data[at + size : stop]
            if rest and not self.only_scalars(rest):
                return None
            double = size == 8
        return tag, label, Form(length + HEADER + FOOTER, j - i - 10, at - pos, double)

    def framed(self, data: bytes, start: int, stop: int) -> tuple[Tag, float]:
        """Read a summary of one value that was not met in this form yet, and remember its form."""
        single = (
            data[start] == 0x2A
            and data[start + 1] == stop - start - 2
            and data[start + 2] == 0x0A
            and data[start + 3] == stop - start - 4
            and data[start + 4] == 0x0A
        )
        k = start + 6 + data[start + 5]
        if not single or k >= stop:
            return LONG_WAY, 0.0
        label = data[start + 6 : k]
        tag = self.tag(label) or NOT_WANTED
        if k + 5 == stop and data[k] == 0x15:
            if len(self.frames) >= CACHED:
                self.frames.clear()
            self.frames[data[start : stop - 4]] = tag
            return tag, float32(data, k + 1)[0]
        form = _TENSORS.get(data[k : k + 8])
        if form is None and tag is NOT_WANTED:
            return tag, 0.0
        if form is None or label in self.others or k + 8 + form.size > stop:
            return LONG_WAY, 0.0
        rest = data[k + 8 + form.size : stop]
        if rest and not self.only_scalars(rest):
            return LONG_WAY, 0.0
        if len(self.heads) >= CACHED:
            self.heads.clear()
        self.heads[data[start : k + 8]] = (tag, form.size, form.unpack_from)
        return tag, form.unpack_from(data, k + 8)[0]

    def only_scalars(self, rest: bytes) -> bool:
        """Whether what follows a number in its value is the metadata of scalars."""
        known = self._metadata.get(rest)
        if known is None:
            if len(self._metadata) >= CACHED:
                self._metadata.clear()
            known = self._metadata[rest] = _is_of_scalars(rest)
        return known


def _is_of_scalars(metadata: bytes) -> bool:
    """Whether bytes are the metadata field of a value, naming the plugin for scalars, and no more."""
    try:
        found = list(fields(metadata, 0, len(metadata)))
        return (
            len(found) == 1
            and found[0][:2] == (9, 2)
            and (plugin_of(metadata, *found[0][2:]) in (b"", b"scalars"))
        )
    except ValueError:
        return False
