import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from wtwin_watch import plugins
from wtwin_watch.alerting import matching
from wtwin_watch.settings import Flags, load_settings
from wtwin_watch.settings.asked import OWNERS
from wtwin_watch.settings.digests import DigestTable
from wtwin_watch.settings.maintenance import MaintenanceTable
from wtwin_watch.settings.mistakes import keys
from wtwin_watch.settings.model import (
    AlertSettings,
    DetectorSettings,
    ReceiverTable,
    SourceTable,
)
from wtwin_watch.settings.routes import RouteTable
from wtwin_watch.settings.schema import settings_schema

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config" / "example.toml"
SCHEMA = ROOT / "config" / "settings.schema.json"
SHIPPED = {
    plugins.ADAPTERS: ("csv", "mlflow", "mlflow-files", "tensorboard", "wandb-files"),
    plugins.NOTIFIERS: ("alertmanager", "apprise", "pagerduty", "slack", "terminal", "webhook"),
}


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-not-a-real-token")
    monkeypatch.setenv("TRAINING_WEBHOOK_SECRET", "whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB")


@pytest.mark.usefixtures("secrets")
def test_the_example_is_right():
    settings = load_settings(Flags(config=EXAMPLE), {})

    assert [source.name for source in settings.sources] == ["logs", "tensorboard"]
    assert [receiver.name for receiver in settings.receivers] == ["team", "hook"]
    assert settings.notes == ()


def test_values_that_the_example_shows_are_the_defaults():
    text = EXAMPLE.read_text()
    shown = tomllib.loads(re.sub(r"^# (\w+ = [^\"]\S*)$", r"\1", text, flags=re.M))

    assert AlertSettings.model_validate(shown["alerts"]) == AlertSettings()
    assert set(shown["alerts"]) == keys(AlertSettings) - {"receivers"}
    # Left out it is every receiver there is.
    assert "# receivers = [" in text
    assert DetectorSettings.model_validate(shown["detector"]) == DetectorSettings()
    assert set(shown["detector"]) == keys(DetectorSettings) - {"min_effect"}
    # Its default depends on the run, so the example shows the usual one, with a word on the other.
    assert "# min_effect = 0.0005 " in text


def test_the_committed_schema_is_the_one_that_check_prints():
    assert json.loads(SCHEMA.read_text()) == settings_schema()


def test_the_schema_knows_every_key_of_the_example():
    schema = settings_schema()["properties"]

    def allowed(table: str, kind: str, value: str) -> set[str]:
        kinds = schema[table]["items"]["anyOf"]
        [properties] = [k["properties"] for k in kinds if k["properties"][kind] == {"const": value}]
        return set(properties)

    example = tomllib.loads(EXAMPLE.read_text())
    assert set(example) <= set(schema)
    for table in ("alerts", "detector"):
        assert set(example[table]) <= set(schema[table]["properties"])
    for source in example["source"]:
        assert set(source) <= allowed("source", "adapter", source["adapter"])
    for receiver in example["receiver"]:
        assert set(receiver) <= allowed("receiver", "notifier", receiver["notifier"])


def test_the_detectors_of_the_settings_are_those_of_the_monitor():
    from wtwin_watch.monitor.options import ClassicOptions, TrendOptions

    assert DetectorSettings().options() == TrendOptions()
    assert DetectorSettings(name="classic").options() == ClassicOptions()
    parameters = {
        field.name: options().name
        for options in (TrendOptions, ClassicOptions)
        for field in fields(options)
    }
    assert parameters == OWNERS
    assert set(parameters) == keys(DetectorSettings) - {"name"}


def test_the_labels_and_operators_that_a_route_may_use_are_documented():
    section = documented()["Routes: `[[route]]`"]

    assert set(re.findall(r"^\| `(\w+)` \| [a-z`]", section, flags=re.M)) >= set(matching.LABELS)
    rows = re.findall(r"^\| ((?:`[=!~>]+`(?:, )?)+) \|", section, flags=re.M)
    assert {part.strip("`") for row in rows for part in row.split(", ")} == set(matching.Operator)


def documented() -> dict[str, str]:
    """The sections of docs/configuration.md by their headings."""
    text = (ROOT / "docs" / "configuration.md").read_text()
    parts = re.split(r"^#+ (.+)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def plugin_tables() -> list[tuple[str, set[str]]]:
    tables = []
    for group, names in SHIPPED.items():
        for name in names:
            load: Any = plugins.load_adapter if group == plugins.ADAPTERS else plugins.load_notifier
            kind = "Adapter" if group == plugins.ADAPTERS else "Notifier"
            tables.append((f"{kind} `{name}`", keys(load(name).Options)))
    return tables


def test_every_key_is_documented_in_its_section():
    sections = documented()
    names = keys(SourceTable) | {"step", "loss", "lr", "grad_norm", "val_loss", "throughput"}
    tables = [
        ("Alerts: `[alerts]`", keys(AlertSettings)),
        ("Detector: `[detector]`", keys(DetectorSettings)),
        ("Sources: `[[source]]`", names),
        ("Receivers: `[[receiver]]`", keys(ReceiverTable)),
        ("Routes: `[[route]]`", keys(RouteTable)),
        ("Digests: `[[digest]]`", keys(DigestTable)),
        ("Maintenance windows: `[[maintenance]]`", keys(MaintenanceTable)),
        *((heading, own - names) for heading, own in plugin_tables()),
    ]

    missing = [
        (heading, key)
        for heading, own in tables
        for key in sorted(own)
        if f"| `{key}` |" not in sections.get(heading, "")
    ]

    assert missing == []


@pytest.mark.parametrize("model", [AlertSettings, DetectorSettings])
def test_documented_defaults_are_the_defaults(model):
    table = model.__name__.removesuffix("Settings").lower()
    [section] = [text for heading, text in documented().items() if f"`[{table}" in heading]
    rows = re.findall(r"^\| `(\w+)` \| (?:`([^`]*)`|none) \|", section, flags=re.M)

    shown = tomllib.loads("\n".join(f"{key} = {value}" for key, value in rows if value))

    assert {key for key, _ in rows} == keys(model)
    assert model.model_validate(shown) == model()
