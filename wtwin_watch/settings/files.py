"""The settings file: where it is looked for, and how it is read."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wtwin_watch.settings.lines import KeyPath, Lines
from wtwin_watch.settings.mistakes import Mistakes, Place

SYSTEM_FILE = Path("/etc/wtwin-watch/config.toml")
LARGEST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Document:
    """A settings file as read, or an empty one. Its values aren't checked yet."""

    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Lines | None = None

    def place(self, path: KeyPath) -> Place:
        """Say where a key stands, or should stand."""
        if self.path is None or self.lines is None:
            return Place("settings")
        line = self.lines.find(path)
        return Place(f"{self.path}:{line}", line)


def find_file(config: Path | None, environ: Mapping[str, str]) -> tuple[Path, Place | None] | None:
    """Say which settings file is to be read, and who named it; None if there is none.

    A file that was named must be there; one that lies at a usual place may be.
    """
    if config is not None:
        return config, Place("--config", asked=True)
    if named := environ.get("WTWIN_WATCH_CONFIG"):
        return Path(named).expanduser(), Place("$WTWIN_WATCH_CONFIG")
    for path in (user_file(environ), SYSTEM_FILE):
        try:
            if path.exists():
                return path, None
        except OSError:  # a folder that we may not enter: reading it will say so
            return path, None
    return None


def user_file(environ: Mapping[str, str]) -> Path:
    """Say where a person's own settings file lies, or would."""
    base = environ.get("XDG_CONFIG_HOME", "")
    # The XDG specification has relative paths ignored.
    folder = Path(base) if base.startswith("/") else home(environ) / ".config"
    return folder / "wtwin-watch" / "config.toml"


def home(environ: Mapping[str, str]) -> Path:
    """Say the home folder; the root folder where there is none, as for a bare service."""
    return Path(environ.get("HOME") or "/")


def read_document(config: Path | None, environ: Mapping[str, str], mistakes: Mistakes) -> Document:
    """Read the settings file, if there is one. What keeps it from being read is a mistake."""
    found = find_file(config, environ)
    if found is None:
        return Document()
    path, namer = found
    return read_file(path, namer or Place(str(path)), mistakes)


def read_file(path: Path, place: Place, mistakes: Mistakes) -> Document:
    """Read the settings file at ``path``, which was named at ``place``, as `read_document` does."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        mistakes.add(place, f"{path} can't be read: {error.strerror}; check the path")
        return Document()
    if len(data) > LARGEST_BYTES:
        mistakes.add(place, f"{path} is larger than 1 MiB; this is no settings file")
        return Document()
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        mistakes.add(Place(f"{path}:{line}", line), "is not UTF-8 text; save the file as UTF-8")
        return Document()
    try:
        values = tomllib.loads(text)
        return Document(path, values, Lines(text))
    except tomllib.TOMLDecodeError as error:
        at = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
        line = int(at[1]) if at else text.count("\n") + 1
        what = re.sub(r" \(at .*\)$", "", str(error))
        where = f", at column {at[2]}" if at else ", at the end of the file"
        mistakes.add(Place(f"{path}:{line}", line), f"is not TOML: {what}{where}")
    except RecursionError:
        mistakes.add(place, f"{path} has too many brackets inside each other")
    return Document()
