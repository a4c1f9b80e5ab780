"""The options of an adapter that reads files."""

from __future__ import annotations

import os
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from wtwin_watch.protocols import SourceOptions


def _text(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


PathText = Annotated[str, BeforeValidator(_text), Field(min_length=1)]


class PathOptions(SourceOptions):
    """Where the files are: a file, a folder or a pattern, or a list of them; ``~`` is the home folder."""

    path: PathText | Annotated[tuple[PathText, ...], Field(min_length=1)]

    @property
    def paths(self) -> tuple[str, ...]:
        """All of them."""
        return (self.path,) if isinstance(self.path, str) else self.path
