"""Mistakes in the settings: collected, so that all are told at once, each with its place and cure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from wtwin_watch.errors import SettingsError, UsageError
from wtwin_watch.plugins import did_you_mean
from wtwin_watch.settings.lines import KeyPath

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a setting was given: ``config.toml:12``, ``--alpha``, ``$SLACK_WEBHOOK_URL``."""

    text: str
    line: int = 0
    asked: bool = False
    """It was given on the command line."""


Where = Callable[[KeyPath], Place]
"""Tells the place of a key, seen from some table."""


class Mistakes:
    """What is wrong so far. Nothing is raised before `check`."""

    def __init__(self) -> None:
        self._found: list[tuple[Place, str]] = []

    def add(self, place: Place, text: str, key: str = "") -> None:
        """Note a mistake. The key is shown where the place doesn't name it: in a file."""
        self._found.append((place, f"{key}: {text}" if key and place.line else text))

    def check(self) -> None:
        """Raise `UsageError` if all mistakes were made on the command line, else `SettingsError`."""
        if not self._found:
            return
        ordered = sorted(self._found, key=lambda found: found[0].line)
        lines = [f"{place.text}: {text}" for place, text in ordered]
        if all(place.asked for place, _ in ordered):
            raise UsageError(*lines)
        raise SettingsError(lines)

    def validate(
        self,
        model: type[Model],
        values: Mapping[str, Any],
        where: Where,
        table: str,
        also_known: Collection[str] = (),
    ) -> Model | None:
        """Make a ``model`` of ``values``, or note what is wrong with them and return None.

        ``also_known`` are keys of the same table that are read elsewhere, for the did-you-mean.
        """
        try:
            return model.model_validate(values)
        except ValidationError as error:
            known = {*also_known, *keys(model)}
            for path, text in _problems(error, values, known):
                key = ".".join(map(str, (table, *path)))
                self.add(where(path), text, key)
            return None


def keys(model: type[BaseModel]) -> set[str]:
    """List the keys of a table as they are written."""
    return {field.alias or name for name, field in model.model_fields.items()}


def _problems(
    error: ValidationError, values: Mapping[str, Any], known: Collection[str]
) -> Iterator[tuple[KeyPath, str]]:
    """Tell what is wrong at which path, once each."""
    found: dict[KeyPath, list[str]] = {}
    # include_input would put what may be a secret into the text
    for problem in error.errors(include_url=False, include_input=False):
        path = _written(problem, values)
        text = _explained(problem, path, known)
        if text not in found.setdefault(path, []):
            found[path].append(text)
    for path, texts in found.items():
        # Of the forms that a value may have, the one that fits further in is the one that was meant.
        if not any(other[: len(path)] == path and other != path for other in found):
            first, *others = texts
            yield path, " or ".join([first, *(text.removeprefix("should be ") for text in others)])


def _written(problem: Any, values: Any) -> KeyPath:
    """Keep of a problem's path what is written in the file; pydantic adds the form it tried."""
    path: list[str | int] = []
    for part in problem["loc"]:
        if isinstance(values, list | tuple):
            there = isinstance(part, int) and part < len(values)
        else:
            there = isinstance(values, Mapping) and part in values
        if there:
            values = values[part]
        if there or (problem["type"] == "missing" and part == problem["loc"][-1]):
            path.append(part)
    return tuple(path)


def _explained(problem: Any, path: KeyPath, known: Collection[str]) -> str:
    if problem["type"] == "extra_forbidden":
        near = did_you_mean(str(path[-1]), known) if len(path) == 1 else ""
        return f"unknown key{near or '; remove it'}"
    if problem["type"] == "missing":
        return "is missing; add it"
    if problem["type"] in {"too_short", "string_too_short"} and problem["ctx"]["min_length"] == 1:
        return "should not be empty"
    text = str(problem["msg"]).removeprefix("Value error, ")
    text = re.sub(r"^(Input|Value|String|List|Tuple|Dictionary) should", "should", text)
    return text.replace("valid tuple", "valid list").replace("valid dictionary", "valid table")
