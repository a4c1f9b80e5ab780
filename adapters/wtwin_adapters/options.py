"""The options of an adapter that reads files."""

from __future__ import annotations

import os
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from wtwin_watch.protocols import SourceOptions

_PATTERN = frozenset("*?[")


def _text(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _some(value: Any) -> Any:
    if value in ("", [], ()):
        raise ValueError("is empty; name a file, folder or pattern")
    return value


PathText = Annotated[str, BeforeValidator(_text), Field(min_length=1)]


class PathOptions(SourceOptions):
    """Where the files are: a file, a folder or a pattern, or a list of them; ``~`` is the home folder."""

    files: ClassVar[str] = "log files"
    """What is looked for there."""

    path: Annotated[
        PathText | Annotated[tuple[PathText, ...], Field(min_length=1)], BeforeValidator(_some)
    ]

    @property
    def paths(self) -> tuple[str, ...]:
        """All of them."""
        return (self.path,) if isinstance(self.path, str) else self.path

    @property
    def no_runs(self) -> str:
        """Say where nothing was found."""
        where = " or ".join(self.paths)
        how = "below" if _PATTERN.isdisjoint(where) else "match"
        return f"no {self.files} {how} {where} yet"


class LineOptions(PathOptions):
    """Where logs of lines are."""

    finished: bool = False
    """Nobody writes there any more: a last line without its end counts at once."""
