"""The options of an adapter that reads files."""

from __future__ import annotations

import os
import re
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field

from wtwin_adapters.ownregex import repeats_inside_repeats
from wtwin_watch.protocols import SourceOptions

_PATTERN = frozenset("*?[")


def _text(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _some(value: Any) -> Any:
    if value in ("", [], ()):
        raise ValueError("is empty; name a file, folder or pattern")
    return value


def _regex(value: str) -> str:
    try:
        groups = re.compile(value).groupindex
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    if not any(name != "step" for name in groups):
        raise ValueError(
            r"names no metric; write one as a named group: step (?P<step>\d+) loss (?P<loss>\S+)"
        )
    if repeats_inside_repeats(value):
        raise ValueError(
            "may take for ever, since it repeats what repeats inside, as in (a+)+; make the inner one"
            " possessive, as in (a++)+, or write it without"
        )
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


class LogOptions(PathOptions):
    """Where logs are that lie in files."""

    finished: bool = False
    """Nobody writes there any more: a last line without its end counts at once."""
    pattern: Annotated[str, AfterValidator(_regex)] | None = None
    """A regular expression for the lines of a text log, with named groups: ``step``, ``loss``, ``lr`` …"""
