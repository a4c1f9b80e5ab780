"""Times of day and time zones as people write them."""

from __future__ import annotations

import re
from datetime import UTC, time, tzinfo
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import BeforeValidator, InstanceOf, WithJsonSchema

from wtwin_watch.plugins import did_you_mean


def _read_time(value: Any) -> time:
    # A bare 09:00:00 is a time to TOML.
    if isinstance(value, time):
        return value.replace(tzinfo=None)
    found = (
        re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", value, re.ASCII)
        if isinstance(value, str)
        else None
    )
    if found is None:
        raise ValueError('should be a time of day such as "09:00"')
    return time(int(found[1]), int(found[2]))


def _read_zone(value: Any) -> tzinfo:
    if not isinstance(value, str):
        raise ValueError('should be the name of a time zone, such as "Europe/Berlin"')
    if value == "UTC":
        return UTC
    try:
        return ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = available_timezones()
    if not known:
        raise ValueError(
            "this machine has no time zones; install the package tzdata, or leave it out"
        )
    near = did_you_mean(value, known)
    raise ValueError(
        f"no time zone is called {value!r}{near or '; name one such as Europe/Berlin'}"
    )


TimeOfDay = Annotated[
    time,
    BeforeValidator(_read_time),
    WithJsonSchema({"type": "string", "examples": ["09:00"]}),
]
Zone = Annotated[
    InstanceOf[tzinfo],
    BeforeValidator(_read_zone),
    WithJsonSchema({"type": "string", "examples": ["Europe/Berlin"]}),
]
