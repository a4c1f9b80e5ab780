"""Reading event files record by record, with a short way for the records that hold one scalar.

A record is a length (8 bytes), its checksum (4), the event, and the event's checksum (4). The length's
checksum is always checked, once for each distinct header, since a wrong length loses the rest of the
file; the event's only where the event can't be decoded, as TensorBoard's fast loader does it.
"""

# The bytes in `_scan` are keys of protocol buffers, told by the comment there.
# ruff: noqa: PLR2004

from __future__ import annotations

import math
import os
from collections import Counter
from itertools import repeat
from typing import Any

from wtwin_adapters.growing import Position
from wtwin_adapters.tfalike import FEW, SANE_TIME, read_alike
from wtwin_adapters.tfevents import decode
from wtwin_adapters.tfforms import CACHED, LONG_WAY, NOT_WANTED, SHORTEST, Forms
from wtwin_adapters.tfframes import FOOTER, HEADER, is_sound, record_length
from wtwin_adapters.wire import float32, float64
from wtwin_watch.metrics import Names
from wtwin_watch.model import Point, Restart

MAX_RECORD = 1 << 24
"""A larger record is passed over without being read, in bytes."""
_CHUNK = 1 << 18
_ZEROS = bytes(HEADER)
_MAX_BYTES = 1 << 28
# A group of records that repeats is looked for again after so many bytes.
_LOOK_AGAIN, _LOOK_AGAIN_LATEST = 1 << 9, 1 << 15
_WORTH_IT = 64

_new = tuple.__new__


class Reader:
    """Takes points from event files until ``limit`` is reached or the steps go back (``full``).

    ``seen`` are the last steps of the metrics: a lower one is a restart. ``others`` are the tags of other
    plugins than scalars. Both are brought up to date.
    """

    def __init__(
        self,
        names: Names,
        limit: int,
        seen: dict[str, float],
        others: set[bytes],
        restart: Restart | None = None,
    ) -> None:
        self.points: list[Point] = []
        self.skipped: Counter[str] = Counter()
        self.restart = restart
        self.full = False
        self.events = 0
        self._broken = False
        # The present file can't be read on: where a record should begin, there is none.
        self._limit = limit
        self._forms = Forms(names, seen, others)
        self._look_again = _LOOK_AGAIN
        self._needed = 0
        self._left = _MAX_BYTES

    @property
    def given(self) -> int:
        """How many points it holds."""
        return len(self.points)

    @property
    def begun(self) -> bool:
        """It holds points or a restart."""
        return bool(self.points or self.restart)

    def next_file(self, *, beside: bool) -> None:
        """Get ready for another file; one written ``beside`` the last has steps of its own."""
        self._forms.forget()
        self._forms.beside = beside

    def keep_seen(self) -> None:
        """Bring ``seen`` up to date."""
        self._forms.keep_seen()

    def read(self, _path: str, fd: int, size: int, place: Position) -> None:
        """Read a file on from ``place``, which moves, up to ``size``."""
        self._broken = False
        wish = _CHUNK
        while place.offset < size and not self.full:
            data = os.pread(fd, wish, place.offset)
            at_end = place.offset + len(data) >= size
            taken = self._scan(data, place, at_end=at_end)
            place.offset += taken
            self._left -= taken
            if self._left <= 0:
                self.full = True
            if taken:
                wish = _CHUNK
            elif self._broken or at_end or not self._needed:
                break
            elif self._needed <= MAX_RECORD:
                wish = self._needed
            elif place.offset + self._needed <= size:
                place.offset += self._needed
                self.skipped["record over 16 MiB"] += 1
            else:
                break
        if self._broken and not place.damaged:
            self.skipped["no record here, file given up"] += 1
        place.damaged = self._broken

    def _scan(self, data: bytes, place: Position, *, at_end: bool) -> int:  # noqa: PLR0912, PLR0915
        """Take whole records from the start of ``data``; returns the bytes taken.

        One function with the short way inside it: a call a record would halve its speed.
        """
        forms, points = self._forms, self.points
        lengths, frames, heads = forms.lengths, forms.frames, forms.heads
        pos, end, room, events = 0, len(data), self._limit - len(points), 0
        whole = not place.part
        longest = end - HEADER
        append = points.append
        self._needed = 0
        look_at = 0
        while pos <= longest:
            if pos >= look_at and whole:
                taken, records = self._take_alike(data, pos, room)
                if taken:
                    pos += taken
                    events += records
                    room = self._limit - len(points)
                    continue
                look_at = pos + self._look_again
            length = lengths.get(data[pos : pos + HEADER])
            if length is None:
                length = self._length(data[pos : pos + HEADER])
                if length is None:
                    break
            i = pos + HEADER
            stop = i + length
            if stop + FOOTER > end:
                self._needed = length + HEADER + FOOTER
                break
            # The short way: wall time (09), step (10) of up to 28 bits, and up to the end a summary of
            # one value. What stands around its number repeats, so it is looked up as a whole.
            if length >= SHORTEST and data[i] == 0x09 and data[i + 9] == 0x10 and whole:
                step, j, byte = data[i + 10], i + 11, 0
                if step > 127:
                    byte = data[j]
                    j += 1
                    step += (byte << 7) - 128
                    if byte > 127:
                        byte = data[j]
                        j += 1
                        step += (byte << 14) - 16384
                        if byte > 127:
                            byte = data[j]
                            j += 1
                            step += (byte << 21) - 2097152
                tag = LONG_WAY if byte > 127 else frames.get(data[j : stop - 4])
                if tag is not None:
                    value = float32(data, stop - 4)[0]
                elif head := heads.get(data[j : j + 14 + data[j + 5]]):
                    tag, size, unpack = head
                    k = j + 14 + data[j + 5]
                    rest = data[k + size : stop]
                    if (rest and not forms.only_scalars(rest)) or j + 2 + data[j + 1] != stop:
                        tag = LONG_WAY
                    else:
                        value = unpack(data, k)[0]
                else:
                    tag, value = forms.framed(data, j, stop)
                if tag is NOT_WANTED:
                    pos = stop + FOOTER
                    events += 1
                    continue
                if tag is not LONG_WAY:
                    at = step + 0.0
                    if at < tag.last and not self._go_back(at, tag.last):
                        break
                    if not room:
                        self.full = True
                        break
                    room -= 1
                    wall = float64(data, i + 1)[0]
                    when = wall if 0.0 <= wall < SANE_TIME else None
                    append(_new(Point, (tag.name, at, value, when)))
                    tag.last = at
                    pos = stop + FOOTER
                    events += 1
                    continue
            if not self._take(data, i, stop, place, last=at_end and stop + FOOTER == end):
                break
            room = self._limit - len(points)
            whole = True
            pos = stop + FOOTER
            events += 1
        self.events += events
        return pos

    def _take_alike(self, data: bytes, pos: int, room: int) -> tuple[int, int]:
        """Take the groups of records that repeat from ``pos`` on; returns the bytes and the records."""
        self._look_again = min(2 * self._look_again, _LOOK_AGAIN_LATEST)
        tags, forms = self._forms.group(data, pos)
        width = sum(tag is not NOT_WANTED for tag in tags)
        if not forms or room < FEW * width:
            return 0, 0
        alike = read_alike(data, pos, forms, room // width if width else room)
        if alike is None:
            return 0, 0
        block: list[Any] = [None] * (width * alike.count)
        at = 0
        for tag, (steps, values, walls) in zip(tags, alike.columns, strict=True):
            if tag is NOT_WANTED:
                continue
            if steps[0] < tag.last:
                return 0, 0
            rows = zip(repeat(tag.name), steps, values, walls)
            block[at::width] = map(_new, repeat(Point), rows)
            at += 1
        for tag, (steps, _, _) in zip(tags, alike.columns, strict=True):
            if tag is not NOT_WANTED:
                tag.last = steps[-1]
        self.points += block
        if alike.count * len(forms) >= _WORTH_IT:
            self._look_again = _LOOK_AGAIN
        return alike.count * sum(form.size for form in forms), alike.count * len(forms)

    def _take(self, data: bytes, start: int, stop: int, place: Position, *, last: bool) -> bool:
        """Take a record the long way; False if it must wait."""
        others = len(self._forms.others)
        try:
            event = decode(data, start, stop, self._forms.wants, self._forms.others)
        except ValueError:
            if not is_sound(data, start, stop):
                # Over a network the last record may be seen before its bytes are.
                if last:
                    return False
                self.skipped["corrupt record"] += 1
            else:
                self.skipped["record that is no event"] += 1
            return True
        if len(self._forms.others) != others:
            self._forms.heads.clear()
        step = float(event.step)
        if event.starts_session and not self._start_session(step):
            return False
        values = [(tag, value) for label, value in event.values if (tag := self._forms.tag(label))]
        if not place.part:
            highest = max((tag.last for tag, _ in values), default=-math.inf)
            if step < highest and not self._go_back(step, highest):
                return False
        room = self._limit - len(self.points)
        rest = values[place.part :]
        self.full = len(rest) > room
        if self.full and self.points:
            return False
        wall = event.wall_time if 0.0 <= event.wall_time < SANE_TIME else None
        for tag, value in rest[:room]:
            self.points.append(Point(tag.name, step, value, wall))
            tag.last = step
        place.part = place.part + room if self.full else 0
        return not self.full

    def _start_session(self, step: float) -> bool:
        self.keep_seen()
        if all(last < step for last in self._forms.seen.values()):
            return True
        if self.points or self.restart:
            self.full = True
            return False
        self._restart(f"the writer starts again at step {step:.15g}", step)
        return True

    def _go_back(self, step: float, last: float) -> bool:
        if self.points or self.restart:
            self.full = True
            return False
        self._restart(f"steps go back from {last:.15g} to {step:.15g}", step)
        return True

    def _restart(self, reason: str, step: float) -> None:
        self.restart = Restart(reason, step)
        self._forms.rewind(step)

    def _length(self, header: bytes) -> int | None:
        """Check a header not met before; None if there is no record yet, or none at all (``broken``)."""
        if header == _ZEROS:
            return None
        length = record_length(header)
        if length is None:
            self._broken = True
            return None
        lengths = self._forms.lengths
        if len(lengths) >= CACHED:
            lengths.clear()
        lengths[header] = length
        return length
