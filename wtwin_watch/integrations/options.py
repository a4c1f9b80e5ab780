"""The detector that a `Watch` is asked for: that of the settings, with the options that were given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from wtwin_watch.errors import SettingsError
from wtwin_watch.monitor.far import parse_far
from wtwin_watch.monitor.options import ClassicOptions, DetectorOptions, TrendOptions

_KINDS: dict[str, type[DetectorOptions]] = {"trend": TrendOptions, "classic": ClassicOptions}
_OWNERS = {field.name: kind for kind, of in _KINDS.items() for field in fields(of)}


def detector_options(
    base: DetectorOptions, kind: str | None, given: Mapping[str, Any]
) -> DetectorOptions:
    """Return ``base`` with the options ``given``; one of another detector asks for that one.

    ``kind`` names the detector, ``trend`` or ``classic``. Raises `SettingsError` saying what is wrong.
    """
    mistakes = [_unknown(name) for name in given if name not in _OWNERS]
    if kind is not None and kind not in _KINDS:
        mistakes.append(f"detector={kind!r}: there are 'trend' and 'classic'")
    if mistakes:
        raise SettingsError(mistakes)
    owners = {_OWNERS[name] for name in given}
    wanted = kind or (owners.pop() if len(owners) == 1 else base.name)
    strangers = [name for name in given if _OWNERS[name] != wanted]
    if strangers:
        raise SettingsError(
            [
                f"{name}: belongs to the detector {_OWNERS[name]!r}, not to {wanted!r}"
                for name in strangers
            ]
        )
    known = asdict(base) if base.name == wanted else {}
    try:
        if "far" in given:
            given = {**given, "far": parse_far(given["far"])}
        return _KINDS[wanted](**{**known, **given})
    except (TypeError, ValueError) as error:
        raise SettingsError([f"detector {wanted!r}: {error}"]) from error


def _unknown(name: str) -> str:
    from wtwin_watch.plugins import did_you_mean  # only for a mistake: it comes with pydantic

    return f"{name}: no option of Watch or of a detector{did_you_mean(name, _OWNERS)}"
