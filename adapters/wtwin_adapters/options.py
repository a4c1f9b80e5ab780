"""The options of an adapter that reads files."""

from __future__ import annotations

import os
from typing import Annotated, Any

from annotated_types import MinLen
from pydantic import BeforeValidator

from wtwin_watch.protocols import SourceOptions


def _text(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


PathText = Annotated[str, BeforeValidator(_text), MinLen(1)]


class PathOptions(SourceOptions):
    """Where the files are: a file, a folder or a pattern, or a list of them; ``~`` is the home folder."""

    path: PathText | Annotated[tuple[PathText, ...], MinLen(1)]

    @property
    def paths(self) -> tuple[str, ...]:
        """All of them."""
        return (self.path,) if isinstance(self.path, str) else self.path
