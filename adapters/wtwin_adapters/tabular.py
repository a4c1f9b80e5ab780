"""CSV, TSV and JSON Lines logs, read as they grow: the adapter ``csv``.

One file is one run. ``path`` names a file, a folder (its files ``.csv``, ``.tsv``, ``.jsonl`` and
``.ndjson`` at any depth) or a pattern of files or folders, or a list of them. A file of another name is
read as what it is, like the adapter ``log`` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from wtwin_adapters.logfiles import LogSource
from wtwin_adapters.recognition import CSV, JSONL, recognise_table
from wtwin_watch.protocols import Recognition


class TabularSource(LogSource):
    """Log files with a row a step.

    Listing costs one ``stat`` a file and a folder. Fetching costs what is new.
    """

    extensions: ClassVar[tuple[str, ...]] = (*CSV, *JSONL)
    tables: ClassVar[tuple[str, ...]] = (*CSV, *JSONL)

    @staticmethod
    def recognise(path: Path) -> Recognition | None:
        """Say by its content whether ``path`` is a table; a folder may hold many kinds and is none."""
        return recognise_table(path)
