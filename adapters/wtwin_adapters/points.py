"""Points that were read column by column, and are made when somebody looks at them.

A batch is looked through once, point by point. Points that are all there at once are objects for Python's
garbage collector to go through again and again, which costs as much as reading them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress, cycle, repeat
from operator import is_not
from typing import Any, overload

from wtwin_adapters.numbers import Column
from wtwin_watch.model import ROW_LOGGED, Point

_new = tuple.__new__


class Block:
    """Rows in columns of one length. Only if ``sparse`` may there be None in them."""

    __slots__ = ("_count", "_flat", "_names", "_steps", "_there")

    def __init__(
        self,
        names: Sequence[str],
        steps: Sequence[float],
        columns: Sequence[Column],
        *,
        sparse: bool,
    ) -> None:
        rows: Iterable[tuple[float | None, ...]] = zip(*columns, strict=True)
        if sparse:
            rows = list(rows)
            none = (None,) * len(columns)
            if none in rows:
                # A row that lacks all values is a point that says it was logged.
                names = [*names, ROW_LOGGED]
                rows = [(*row, 0.0 if row == none else None) for row in rows]
        self._names = names
        self._steps = steps
        self._flat = list(chain.from_iterable(rows))
        self._there = bytes(map(is_not, self._flat, repeat(None))) if sparse else None
        self._count = self._there.count(1) if self._there is not None else len(self._flat)

    def __len__(self) -> int:
        """How many points these are."""
        return self._count

    def __iter__(self) -> Iterator[Point]:
        """Give the points, row by row."""
        steps = chain.from_iterable(map(repeat, self._steps, repeat(len(self._names))))
        cells: Iterable[Any] = zip(
            cycle(self._names), steps, self._flat, repeat(None), strict=False
        )
        if self._there is not None:
            cells = compress(cells, self._there)
        return map(_new, repeat(Point), cells)


class Points(Sequence[Point]):
    """A sequence of points that grows by single ones and by blocks."""

    def __init__(self) -> None:
        self._parts: list[list[Point] | Block] = []
        self._count = 0

    def append(self, point: Point) -> None:
        """Add one."""
        if not self._parts or isinstance(self._parts[-1], Block):
            self._parts.append([])
        self._parts[-1].append(point)  # type: ignore[union-attr]
        self._count += 1

    def add(self, block: Block) -> None:
        """Add those of a block."""
        self._parts.append(block)
        self._count += len(block)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Point]:
        return chain.from_iterable(self._parts)

    @overload
    def __getitem__(self, index: int) -> Point: ...
    @overload
    def __getitem__(self, index: slice) -> list[Point]: ...
    def __getitem__(self, index: int | slice) -> Point | list[Point]:
        points = list(self)
        self._parts = [points]  # looked at in any order, it may as well be a list
        return points[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
