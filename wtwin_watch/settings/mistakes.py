"""Mistakes in the settings: collected, so that all are told at once, each with its place and cure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
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
            raise UsageError("\n".join(lines))
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
            # include_input would put what may be a secret into the text
            for problem in error.errors(include_url=False, include_input=False):
                path = problem["loc"]
                key = ".".join(str(part) for part in (table, *path) if part != "")
                self.add(where(path), _explained(problem, known), key)
            return None


def keys(model: type[BaseModel]) -> set[str]:
    """List the keys of a table as they are written."""
    return {field.alias or name for name, field in model.model_fields.items()}


def _explained(problem: Any, known: Collection[str]) -> str:
    if problem["type"] == "extra_forbidden":
        word = str(problem["loc"][-1])
        near = did_you_mean(word, known) if len(problem["loc"]) == 1 else ""
        return f"unknown key{near or '; remove it'}"
    if problem["type"] == "missing":
        return "is missing; add it"
    text = str(problem["msg"]).removeprefix("Value error, ").replace("Input should", "should")
    return text.replace("Extra inputs are not permitted", "unknown key")
