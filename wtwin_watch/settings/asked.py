"""Which detector the command line asks for, and with which parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wtwin_watch.settings.mistakes import Mistakes, Place
from wtwin_watch.settings.model import Flags

OWNERS = {
    "far": "trend",
    "min_effect": "trend",
    "alpha": "classic",
    "warmup_steps": "classic",
    "n_consec": "classic",
    "mad_window": "classic",
    "tau": "classic",
    "calibration_frac": "classic",
    "threshold_window": "classic",
    "use_adaptive_T": "classic",
}
"""Whose parameter a setting is."""
_FLAGS = {
    "far": "far",
    "min_effect": "min_effect",
    "alpha": "alpha",
    "warmup": "warmup_steps",
    "n_consec": "n_consec",
    "mad_window": "mad_window",
    "tau": "tau",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for: ``name`` None where nothing about the detector was."""

    name: str | None
    values: Mapping[str, Any]
    """By the names of the settings."""
    places: Mapping[str, Place]
    note: str = ""
    """What to tell if the detector is another one for it."""


def asked_detector(flags: Flags, mistakes: Mistakes) -> Asked:
    """Read the flags: a parameter of a detector asks for that detector, if no other one is named."""
    given = {flag: value for flag in _FLAGS if (value := getattr(flags, flag)) is not None}
    first = {OWNERS[_FLAGS[flag]]: flag for flag in reversed(given)}
    name, note = flags.detector, ""
    if name is None and first:
        name = OWNERS[_FLAGS[next(iter(given))]]
        note = (
            f"{_option(first[name])} is a parameter of the detector {name!r}, so that one is used"
        )
    for flag in given:
        owner = OWNERS[_FLAGS[flag]]
        if name in OWNERS.values() and owner != name:
            text = f"belongs to the detector {owner!r}, not to {name!r}"
            cure = f"remove it, or give --detector {owner}"
            if flags.detector is None:
                cure = f"remove it, or {_option(first[str(name)])}"
            mistakes.add(Place(_option(flag), asked=True), f"{text}; {cure}")
    mine = {flag: value for flag, value in given.items() if OWNERS[_FLAGS[flag]] == name}
    places = {_FLAGS[flag]: Place(_option(flag), asked=True) for flag in mine}
    return Asked(
        name,
        {_FLAGS[flag]: value for flag, value in mine.items()},
        {**places, "name": Place("--detector", asked=True)},
        note,
    )


def _option(flag: str) -> str:
    return "--" + flag.replace("_", "-")
