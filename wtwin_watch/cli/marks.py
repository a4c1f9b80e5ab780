"""How an alert is marked that isn't told: somebody has seen it, or it is silenced, also by the settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from wtwin_watch.cli.output import moment

if TYPE_CHECKING:
    from wtwin_watch.alerting.silences import Silence
    from wtwin_watch.model import Alert
    from wtwin_watch.settings import Flags


def marks(alert: Alert, silence: Silence | None, now: float) -> list[str]:
    """Say who has seen an open alert, where that still holds, and until when it is silenced."""
    found, seen = [], alert.acknowledged
    if alert.open and seen is not None and (seen.until is None or now < seen.until):
        until = "" if seen.until is None else f" (until {moment(seen.until)})"
        found.append(f"seen by {seen.by}{until}")
    if silence is not None:
        found.append(f"silenced until {moment(silence.ends_at)}")
    return found


def silence_as_json(silence: Silence | None) -> dict[str, Any] | None:
    """What JSON says of the silence that covers an alert; null where there is none."""
    if silence is None:
        return None
    return {
        "id": silence.id,
        "author": silence.author,
        "comment": silence.comment,
        "ends_at": silence.ends_at,
    }


def maintenance_now(flags: Flags, now: float) -> list[Silence]:
    """The silences that the maintenance windows of the settings are now. Raises `SettingsError`."""
    from wtwin_watch.alerting.maintenance import holding
    from wtwin_watch.settings import load_maintenance

    return holding(load_maintenance(flags, os.environ), now)
