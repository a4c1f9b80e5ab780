"""Adapters and notifiers by name: found by their entry points, loaded when they are first asked for.

Entry points are listed once a process. A plugin that can't be loaded is a `SettingsError` that tells
the cure: the name that was probably meant, or the command that installs what is missing.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Collection, Iterator
from functools import cache
from importlib import metadata
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from wtwin_watch.errors import SettingsError
from wtwin_watch.protocols import Adapter, FileAdapter, NotifierPlugin, Recognition

ADAPTERS = "wtwin_watch.adapters"
NOTIFIERS = "wtwin_watch.notifiers"


@cache
def known(group: str) -> dict[str, EntryPoint]:
    """List the plugins of a group by name, in the order of their names; imports none of them."""
    # Of two installed under one name the one found first on sys.path is used, as for modules.
    found: dict[str, EntryPoint] = {}
    for point in metadata.entry_points(group=group):
        found.setdefault(point.name, point)
    return dict(sorted(found.items()))


def load_adapter(name: str) -> Adapter:
    """Import the adapter called ``name``. Raises `SettingsError` saying what to install or to write."""
    return cast(Adapter, _load(ADAPTERS, name))


def load_notifier(name: str) -> NotifierPlugin:
    """Import the notifier called ``name``. Raises `SettingsError` saying what to install or to write."""
    return cast(NotifierPlugin, _load(NOTIFIERS, name))


def recognise(
    path: Path, without: Collection[str] = ()
) -> tuple[str, FileAdapter, Recognition] | None:
    """Ask every file adapter what ``path`` is: its name, itself and what it makes of the path.

    An adapter that would refuse the path gives way to one that can read it. Adapters named in
    ``without`` aren't asked. Reads as much of the file as the adapters need, usually its head.
    """
    refusal = None
    for name, adapter in _file_adapters().items():
        if name in without:
            continue
        recognition = adapter.recognise(path)
        if recognition is not None and recognition.refused is None:
            return name, adapter, recognition
        if recognition is not None and refusal is None:
            refusal = name, adapter, recognition
    return refusal


def did_you_mean(word: str, known_words: Collection[str]) -> str:
    """Say which known word was probably meant, as the end of a sentence; empty if none is near."""
    near = difflib.get_close_matches(word, sorted(known_words), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def install_command(distribution: Distribution, extra: str) -> str:
    """Tell how to add an optional dependency group to a distribution, the way it was installed."""
    name = distribution.name
    plain = f"pip install {shlex.quote(f'{name}[{extra}]')}"
    try:
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        url = str(origin.get("url", ""))
        if "dir_info" in origin:
            edit = "-e " if origin["dir_info"].get("editable") else ""
            folder = unquote(urlsplit(url).path)
            return f"pip install {edit}{shlex.quote(f'.[{extra}]')}  (in {folder})"
        if "vcs_info" in origin:
            vcs = origin["vcs_info"]
            url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
        elif "archive_info" not in origin:
            return plain
    except (ValueError, KeyError, TypeError, AttributeError):
        return plain
    return f"pip install {shlex.quote(f'{name}[{extra}] @ {url}')}"


def _load(group: str, name: str) -> Any:
    kind = "adapter" if group == ADAPTERS else "notifier"
    point = known(group).get(name)
    if point is None:
        names = ", ".join(known(group)) or "none"
        hint = did_you_mean(name, known(group)) or f"; there is: {names}"
        raise SettingsError([f"this version has no {kind} {name!r}{hint}"])
    try:
        plugin = point.load()
    except ModuleNotFoundError as error:
        raise SettingsError([_missing(kind, point, error.name or str(error))]) from error
    # A plugin is somebody else's code: whatever its import raises is told, and spoils no other.
    except Exception as error:
        text = f"the {kind} {name!r} can't be loaded: {type(error).__name__}: {error}"
        raise SettingsError([text]) from error
    extra = getattr(plugin, "extra", None)
    absent = _absent(point.dist, extra) if extra and point.dist else []
    if extra and point.dist and absent:
        raise SettingsError(
            [
                f"the {kind} {name!r} needs {' and '.join(absent)}, which isn't installed;"
                f" install it with: {install_command(point.dist, extra)}"
            ]
        )
    return plugin


def _missing(kind: str, point: EntryPoint, absent: str) -> str:
    module = absent.partition(".")[0]
    if module == point.module.partition(".")[0]:
        return f"the {kind} {point.name!r} lacks its own module {absent!r}; install it again"
    said = f"the {kind} {point.name!r} needs the module {module!r}, which isn't installed"
    for requirement, extra in _optional(point.dist):
        if extra and _same(requirement, module) and point.dist:
            return f"{said}; install it with: {install_command(point.dist, extra)}"
    return f"{said}; install the package that brings it"


def _absent(distribution: Distribution, extra: str) -> list[str]:
    """Name the distributions of an optional group that aren't installed."""
    absent = []
    for requirement, group in _optional(distribution):
        if group == extra:
            try:
                metadata.distribution(requirement)
            except metadata.PackageNotFoundError:
                absent.append(requirement)
    return absent


def _optional(distribution: Distribution | None) -> Iterator[tuple[str, str]]:
    """List a distribution's optional requirements with the group each belongs to."""
    for line in (distribution and distribution.requires) or []:
        requirement, _, marker = line.partition(";")
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        group = re.search(r"""extra\s*==\s*["']([^"']+)["']""", marker)
        if name and group:
            yield name[0], group[1]


def _folded(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _same(requirement: str, module: str) -> bool:
    # ``mlflow-skinny`` brings the module mlflow, ``psycopg`` itself.
    return _folded(requirement).split("-")[0] == _folded(module).split("-")[0]


@cache
def _file_adapters() -> dict[str, FileAdapter]:
    adapters = {}
    for name in known(ADAPTERS):
        try:
            adapter = load_adapter(name)
        except SettingsError:  # it is told where the adapter is asked for by name
            continue
        if callable(getattr(adapter, "recognise", None)):
            adapters[name] = cast(FileAdapter, adapter)
    return adapters
