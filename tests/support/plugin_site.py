"""A throw-away installed distribution with plugins: real metadata in a folder on ``sys.path``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from wtwin_watch import plugins


@contextmanager
def installed(
    folder: Path,
    *,
    modules: Mapping[str, str],
    adapters: Mapping[str, str] | None = None,
    notifiers: Mapping[str, str] | None = None,
    requires: tuple[str, ...] = (),
    direct_url: Mapping[str, Any] | None = None,
) -> Iterator[None]:
    """Install a distribution ``acme`` for the length of a ``with``: module sources and entry points."""
    info = folder / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", "Name: acme", "Version: 1.0"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    entries = ["[wtwin_watch.adapters]", *(f"{k} = {v}" for k, v in (adapters or {}).items())]
    entries += ["[wtwin_watch.notifiers]", *(f"{k} = {v}" for k, v in (notifiers or {}).items())]
    (info / "entry_points.txt").write_text("\n".join(entries) + "\n")
    if direct_url is not None:
        (info / "direct_url.json").write_text(json.dumps(direct_url))
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(dedent(source))
    sys.path.insert(0, str(folder))
    _forget()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in modules:
            sys.modules.pop(name, None)
        _forget()


def _forget() -> None:
    plugins.known.cache_clear()
    plugins._file_adapters.cache_clear()


TOY = """
from pathlib import Path
from typing import ClassVar
from wtwin_watch.errors import SourceError
from wtwin_watch.model import Batch, Point, Restart, Run, RunKey
from wtwin_watch.protocols import Recognition, SourceOptions


class ToyOptions(SourceOptions):
    path: str


class ToySource:
    '''Reads lines "step loss", "back STEP" and "anew"; two lines a fetch.'''

    Options: ClassVar = ToyOptions
    interval_s: ClassVar[float] = 3.0
    extra: ClassVar[str | None] = None

    def __init__(self, name, options):
        self.name = name
        self.options = options

    @staticmethod
    def recognise(path):
        if path.suffix == ".toy":
            return Recognition("toy", {"path": str(path)})
        if path.suffix == ".bad":
            return Recognition("toy", {}, refused="it is bad")
        if path.is_dir() and (path / "toys").exists():
            return Recognition("toybox", {"path": str(path / "toys")})
        return None

    def runs(self):
        yield Run(RunKey(self.name, "r"), name=Path(self.options.path).stem)

    def fetch(self, run, cursor, limit):
        at = cursor["line"] if cursor else 0
        lines = Path(self.options.path).read_text().splitlines()
        points, restart, skipped, read = [], None, {}, 0
        for line in lines[at : at + 2]:
            word, _, rest = line.partition(" ")
            if word == "broken":
                raise SourceError("the toy is broken")
            if word in ("back", "anew"):
                if read:
                    break
                restart = Restart("again", float(rest) if rest else None)
            elif word == "junk":
                skipped["junk"] = skipped.get("junk", 0) + 1
            else:
                points.append(Point(self.options.loss or "loss", float(word), float(rest)))
            read += 1
        at += read
        return Batch(points, {"line": at}, at < len(lines), restart, skipped, step_name="line")

    def roots(self):
        return []

    def close(self):
        pass
"""
