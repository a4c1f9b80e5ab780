"""How the processes of the demo talk to the one that shows it: a JSON object a line on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any


def say(what: str, **fields: Any) -> None:
    """Write one line at once. ``what`` is what happened; a NaN isn't JSON and raises ValueError."""
    sys.stdout.write(json.dumps({"said": what, **fields}, allow_nan=False) + "\n")
    sys.stdout.flush()


def heard(line: str) -> Mapping[str, Any] | None:
    """Read a line of JSON; None for any other, such as a traceback's."""
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None
