"""The settings: read from file, environment and flags, and checked once, before anything starts."""

from wtwin_watch.settings.load import (
    load_detector,
    load_maintenance,
    load_settings,
    load_state,
    load_told,
)
from wtwin_watch.settings.model import (
    AlertSettings,
    DetectorSettings,
    Flags,
    ReceiverSettings,
    Settings,
    SourceSettings,
    allowed_false_alarms,
    secret_values,
)

__all__ = [
    "AlertSettings",
    "DetectorSettings",
    "Flags",
    "ReceiverSettings",
    "Settings",
    "SourceSettings",
    "allowed_false_alarms",
    "load_detector",
    "load_maintenance",
    "load_settings",
    "load_state",
    "load_told",
    "secret_values",
]
