"""From file, environment and flags to settings: defaults < file < environment < flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from wtwin_watch import logs, plugins
from wtwin_watch.alerting.digest import Digest
from wtwin_watch.alerting.maintenance import Window
from wtwin_watch.alerting.routing import Recipient, Routing
from wtwin_watch.errors import SettingsError, UsageError
from wtwin_watch.settings.arguments import secret_in
from wtwin_watch.settings.asked import OWNERS, asked_detector
from wtwin_watch.settings.digests import read_digests
from wtwin_watch.settings.files import Document, home, read_document, read_file, user_file
from wtwin_watch.settings.given import Entry, given_receivers, given_sources, terminal
from wtwin_watch.settings.lines import KeyPath
from wtwin_watch.settings.maintenance import read_maintenance
from wtwin_watch.settings.mistakes import Mistakes, Model, Place, keys
from wtwin_watch.settings.model import (
    AlertSettings,
    DetectorSettings,
    Flags,
    ReceiverSettings,
    ReceiverTable,
    Settings,
    SourceSettings,
    SourceTable,
    secret_values,
)
from wtwin_watch.settings.routes import read_routing, untold

TABLES = ("state", "alerts", "detector", "source", "receiver", "route", "digest", "maintenance")

_A_SOURCE = """\
    [[source]]
    adapter = "csv"
    path = "runs/*.csv"\
"""


def load_settings(
    flags: Flags, environ: Mapping[str, str], *, needs_sources: bool = True
) -> Settings:
    """Read the settings, with every secret they refer to, and check them whole.

    Raises `SettingsError` with all mistakes at once; `UsageError` where all of them were made on the
    command line. With ``needs_sources``, nothing to watch is the one where a file was read, the other where
    there was none.
    """
    mistakes = Mistakes()
    notes: list[str] = []
    document = read_document(flags.config, environ, mistakes)
    _check_tables(document, mistakes)
    state = _state(document, flags, environ, mistakes)
    alerts = _section(AlertSettings, "alerts", document, {}, {}, mistakes)
    detector = _detector(document, flags, mistakes, notes)
    sources = [*_entries("source", document, mistakes), *given_sources(flags, mistakes)]
    if flags.interval is not None:
        sources = [_with_interval(entry, flags.interval) for entry in sources]
    receivers, routing, digests = _told(document, flags, environ, alerts, mistakes, notes)
    settings = Settings(
        state=state,
        alerts=alerts,
        detector=detector,
        sources=tuple(_sources(sources, mistakes)),
        receivers=receivers,
        routing=routing,
        digests=digests,
        maintenance=read_maintenance(_entries("maintenance", document, mistakes), mistakes),
        file=document.path,
        notes=tuple(notes),
    )
    logs.hide(secret_values(settings) | _password(state))
    mistakes.check()
    if needs_sources and not settings.sources:
        if document.path is not None:
            raise SettingsError(
                [f"{document.path}: holds no source; write one into it:\n{_A_SOURCE}"]
            )
        raise UsageError(_nothing_to_watch(environ))
    return settings


def load_told(path: Path, environ: Mapping[str, str]) -> Settings:
    """Read from a file who is told of alerts and how a loss is judged; where to look isn't read.

    So the file of a daemon serves where its sources and its state are out of reach: in a training loop.
    Raises `SettingsError` with all mistakes at once.
    """
    mistakes = Mistakes()
    notes: list[str] = []
    document = read_file(path, Place(str(path)), mistakes)
    _check_tables(document, mistakes)
    alerts = _section(AlertSettings, "alerts", document, {}, {}, mistakes)
    detector = _detector(document, Flags(), mistakes, notes)
    receivers, routing, digests = _told(document, Flags(), environ, alerts, mistakes, notes)
    settings = Settings(
        state="",
        alerts=alerts,
        detector=detector,
        sources=(),
        receivers=receivers,
        routing=routing,
        digests=digests,
        file=document.path,
        notes=tuple(notes),
    )
    logs.hide(secret_values(settings))
    mistakes.check()
    return settings


def load_detector(flags: Flags) -> tuple[DetectorSettings, list[str]]:
    """Read what the command line alone says of the detector, and what is to be told of that.

    Raises `UsageError` with all mistakes at once.
    """
    mistakes = Mistakes()
    notes: list[str] = []
    detector = _detector(Document(), flags, mistakes, notes)
    mistakes.check()
    return detector, notes


def load_state(flags: Flags, environ: Mapping[str, str]) -> str:
    """Read where the state is kept, and no more: other mistakes in the settings don't matter here."""
    mistakes = Mistakes()
    state = _state(read_document(flags.config, environ, mistakes), flags, environ, mistakes)
    logs.hide(_password(state))
    mistakes.check()
    return state


def load_maintenance(flags: Flags, environ: Mapping[str, str]) -> tuple[Window, ...]:
    """Read the maintenance windows, and no more: other mistakes in the settings don't matter here."""
    mistakes = Mistakes()
    document = read_document(flags.config, environ, mistakes)
    windows = read_maintenance(_entries("maintenance", document, mistakes), mistakes)
    mistakes.check()
    return windows


def _check_tables(document: Document, mistakes: Mistakes) -> None:
    for key in document.values:
        if key not in TABLES:
            near = plugins.did_you_mean(key, TABLES)
            mistakes.add(document.place((key,)), f"unknown key{near or '; remove it'}", key)


def default_state(environ: Mapping[str, str]) -> str:
    """Say where the state is kept if nothing else is said."""
    if given := environ.get("STATE_DIRECTORY"):
        return str(Path(given.split(":")[0]) / "state.db")
    base = environ.get("XDG_STATE_HOME", "")
    folder = Path(base) if base.startswith("/") else home(environ) / ".local" / "state"
    return str(folder / "wtwin-watch" / "state.db")


def _state(document: Document, flags: Flags, environ: Mapping[str, str], mistakes: Mistakes) -> str:
    cure = (
        "leave it out and set PGPASSWORD, use ~/.pgpass, or give the whole URL in WTWIN_WATCH_STATE"
    )
    if flags.state is not None:
        place, state = Place("--state", asked=True), flags.state
        secret = secret_in(state) or ("a password" if _password(state) else None)
    elif state := environ.get("WTWIN_WATCH_STATE", ""):
        place, secret = Place("$WTWIN_WATCH_STATE"), None
    elif "state" in document.values:
        place, state = document.place(("state",)), document.values["state"]
        secret = "a password" if isinstance(state, str) and _password(state) else None
    else:
        return default_state(environ)
    if not isinstance(state, str) or not state.strip() or "\x00" in state:
        mistakes.add(place, "should be a path or a database URL", "state")
        return default_state(environ)
    if secret:
        mistakes.add(place, f"holds {secret}; {cure}", "state")
    return state


def _password(state: str) -> set[str]:
    """Find the passwords in a database URL."""
    if "://" not in state:
        return set()
    try:
        url = urlsplit(state)
        query = parse_qsl(url.query)
    except ValueError:
        return set()
    found = {value for name, value in query if "password" in name.lower()}
    return {secret for secret in (url.password, *found) if secret}


def _section(
    model: type[Model],
    key: str,
    document: Document,
    given: Mapping[str, Any],
    places: Mapping[str, Place],
    mistakes: Mistakes,
) -> Model:
    def where(path: KeyPath) -> Place:
        return (places.get(str(path[0])) if path else None) or document.place((key, *path))

    values = document.values.get(key, {})
    if not isinstance(values, dict):
        mistakes.add(where(()), f"should be a table; write [{key}]", key)
        values = {}
    return mistakes.validate(model, {**values, **given}, where, key) or model()


def _detector(
    document: Document, flags: Flags, mistakes: Mistakes, notes: list[str]
) -> DetectorSettings:
    asked = asked_detector(flags, mistakes)
    written = document.values.get("detector", {})
    if isinstance(written, dict):
        name = written.get("name", DetectorSettings.model_fields["name"].default)
        _check_owners(name, written, document, mistakes)
        if asked.name not in (None, name):
            # Another detector is asked for now than the file has parameters of.
            kept = {key: value for key, value in written.items() if key not in OWNERS}
            document = replace(document, values={**document.values, "detector": kept})
            if asked.note:
                notes.append(asked.note)
    given = dict(asked.values)
    if asked.name is not None:
        given["name"] = asked.name
    places = dict(asked.places)
    if asked.name is None:
        del places["name"]
    return _section(DetectorSettings, "detector", document, given, places, mistakes)


def _check_owners(
    name: Any, written: Mapping[str, Any], document: Document, mistakes: Mistakes
) -> None:
    """Note the parameters of one detector that stand in the table of another one."""
    for key in written:
        owner = OWNERS.get(key, name)
        if owner != name and name in OWNERS.values():
            text = f"belongs to the detector {owner!r}, not to {name!r}; {_cure(owner, written)}"
            mistakes.add(document.place(("detector", key)), text, f"detector.{key}")


def _cure(owner: str, written: Mapping[str, Any]) -> str:
    return "remove it" if "name" in written else f'remove it, or write name = "{owner}"'


def _entries(key: str, document: Document, mistakes: Mistakes) -> list[Entry]:
    """List the tables of an array of tables."""
    tables = document.values.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        mistakes.add(
            document.place((key,)), f"should be tables; write [[{key}]], with two brackets", key
        )
        return []

    def entry(index: int, table: Mapping[str, Any]) -> Entry:
        return Entry(table, lambda path: document.place((key, index, *path)))

    return [entry(index, table) for index, table in enumerate(tables)]


def _with_interval(entry: Entry, interval: str) -> Entry:
    def where(path: KeyPath) -> Place:
        return Place("--interval", asked=True) if path[:1] == ("interval",) else entry.where(path)

    return Entry({**entry.values, "interval": interval}, where)


def _sources(entries: list[Entry], mistakes: Mistakes) -> list[SourceSettings]:
    names = _names("source", "adapter", entries, mistakes)
    sources = []
    for entry, name in zip(entries, names, strict=True):
        table = _core(SourceTable, "source", entry, mistakes)
        kind = entry.values.get("adapter")
        if not isinstance(kind, str):
            continue  # `_core` has said so
        try:
            adapter = plugins.load_adapter(kind)
        except SettingsError as error:
            mistakes.add(entry.where(("adapter",)), str(error), "source.adapter")
            continue
        options = _options(adapter.Options, SourceTable, "source", entry, mistakes)
        if table is not None and options is not None:
            interval_s = adapter.interval_s if table.interval is None else table.interval
            sources.append(SourceSettings(name, kind, interval_s, options, entry.place.text, table))
    return sources


def _told(
    document: Document,
    flags: Flags,
    environ: Mapping[str, str],
    alerts: AlertSettings,
    mistakes: Mistakes,
    notes: list[str],
) -> tuple[tuple[ReceiverSettings, ...], Routing, tuple[Digest, ...]]:
    """Read who is told: the receivers, which of them of what, and the digests."""
    receivers = _entries("receiver", document, mistakes)
    kinds = {str(entry.values.get("notifier")) for entry in receivers}
    receivers += given_receivers(flags, environ, kinds, mistakes, notes)
    if not receivers:
        receivers = [terminal()]
        notes.append("no receiver is given: alerts are shown on this terminal only")
    names = _names("receiver", "notifier", receivers, mistakes)
    routing = read_routing(
        _entries("route", document, mistakes),
        alerts.receivers,
        document.place(("alerts", "receivers")),
        names,
        mistakes,
    )
    told = _receivers(receivers, names, mistakes)
    digests = read_digests(_entries("digest", document, mistakes), names, told, mistakes)
    notes += untold(routing, [name for name in names if name not in {d.receiver for d in digests}])
    return tuple(told), routing, tuple(digests)


def _receivers(
    entries: list[Entry], names: list[str], mistakes: Mistakes
) -> list[ReceiverSettings]:
    receivers = []
    for entry, name in zip(entries, names, strict=True):
        table = _core(ReceiverTable, "receiver", entry, mistakes)
        kind = entry.values.get("notifier")
        if not isinstance(kind, str):
            continue  # `_core` has said so
        try:
            notifier = plugins.load_notifier(kind)
        except SettingsError as error:
            mistakes.add(entry.where(("notifier",)), str(error), "receiver.notifier")
            continue
        options = _options(notifier.Options, ReceiverTable, "receiver", entry, mistakes)
        if table is not None and options is not None:
            # Who forgets alerts it isn't reminded of must be told of each by itself.
            grouped = not hasattr(notifier, "renew") if table.group is None else table.group
            recipient = Recipient(name, table.severity, grouped)
            receivers.append(ReceiverSettings(name, kind, options, entry.place.text, recipient))
    return receivers


def _core(model: type[Model], table: str, entry: Entry, mistakes: Mistakes) -> Model | None:
    own = keys(model)
    values = {key: value for key, value in entry.values.items() if key in own}
    return mistakes.validate(model, values, entry.where, table)


def _options(
    model: type[Model],
    core: type[SourceTable | ReceiverTable],
    table: str,
    entry: Entry,
    mistakes: Mistakes,
) -> Model | None:
    own = keys(core)
    values = {key: value for key, value in entry.values.items() if key not in own}
    return mistakes.validate(model, values, entry.where, table, own)


def _names(table: str, kind: str, entries: list[Entry], mistakes: Mistakes) -> list[str]:
    """Name every entry: as it says, else after its kind, with a number from the second of a kind on."""
    taken: dict[str, Place] = {}
    for entry in entries:
        name = entry.values.get("name")
        if not isinstance(name, str):
            continue
        place = entry.where(("name",))
        if name in taken:
            text = (
                f"{name!r} is already the name of the {table} at {taken[name].text}; choose another"
            )
            mistakes.add(place, text, f"{table}.name")
        taken.setdefault(name, place)
    names = []
    for entry in entries:
        name = entry.values.get("name")
        if not isinstance(name, str):
            base, number = str(entry.values.get(kind)), 1
            name = base
            while name in taken:
                number += 1
                name = f"{base}-{number}"
            taken[name] = entry.place
        names.append(name)
    return names


def _nothing_to_watch(environ: Mapping[str, str]) -> str:
    return (
        "nothing to watch. Name logs to watch, for example:\n"
        "    wtwin-watch --csv 'runs/*.csv'\n"
        f"or write them into {user_file(environ)}:\n{_A_SOURCE}"
    )
