"""The settings file as a JSON Schema, for editors. The committed copy is ``config/settings.schema.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from wtwin_watch import plugins
from wtwin_watch.errors import SettingsError
from wtwin_watch.settings.digests import DigestTable
from wtwin_watch.settings.maintenance import MaintenanceTable
from wtwin_watch.settings.model import (
    AlertSettings,
    DetectorSettings,
    ReceiverTable,
    SourceTable,
)
from wtwin_watch.settings.routes import RouteTable


def settings_schema() -> dict[str, Any]:
    """Describe the settings file, with the options of every plugin that can be loaded."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of wtwin-watch",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "state": {
                "type": "string",
                "minLength": 1,
                "description": "where the state is kept: a path, or a database URL without a password",
            },
            "alerts": _of(AlertSettings),
            "detector": _of(DetectorSettings),
            "source": {
                "type": "array",
                "items": {"anyOf": _kinds(plugins.ADAPTERS, "adapter", SourceTable)},
            },
            "receiver": {
                "type": "array",
                "items": {"anyOf": _kinds(plugins.NOTIFIERS, "notifier", ReceiverTable)},
            },
            "route": {"type": "array", "items": _of(RouteTable)},
            "digest": {"type": "array", "items": _of(DigestTable)},
            "maintenance": {"type": "array", "items": _of(MaintenanceTable)},
        },
    }


def _kinds(group: str, key: str, table: type[BaseModel]) -> list[dict[str, Any]]:
    """Describe a table once for each plugin: its own keys and those of the plugin's options."""
    load = plugins.load_adapter if group == plugins.ADAPTERS else plugins.load_notifier
    core = _of(table)
    kinds = []
    for name in plugins.known(group):
        try:
            options = _of(load(name).Options)
        except SettingsError:  # its extra isn't installed
            continue
        properties = {**core["properties"], key: {"const": name}, **options["properties"]}
        required = [*core.get("required", ()), *options.get("required", ())]
        kinds.append({**options, "title": name, "properties": properties, "required": required})
    return kinds


def _of(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    inlined: dict[str, Any] = _inlined(schema, definitions)
    inlined.setdefault("properties", {})
    return inlined


def _inlined(value: Any, definitions: Mapping[str, Any]) -> Any:
    """Put definitions where they are referred to, since two plugins may use one name for two things."""
    if isinstance(value, list):
        return [_inlined(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if reference := value.get("$ref"):
        rest = {key: item for key, item in value.items() if key != "$ref"}
        definition = definitions[str(reference).rpartition("/")[2]]
        return _inlined({**definition, **rest}, definitions)
    return {
        key: _inlined(item, definitions)
        for key, item in value.items()
        # pydantic's titles repeat the keys; a property called title is no text but a schema.
        if key != "title" or not isinstance(item, str)
    }
