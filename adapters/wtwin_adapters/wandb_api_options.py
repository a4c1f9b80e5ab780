"""The options of the adapter ``wandb``: which projects, which of their runs, and by which key."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator

from wtwin_adapters.wandb_api_budget import PER_MINUTE
from wtwin_watch.protocols import SourceOptions
from wtwin_watch.secrets import Secret

_PROJECT = re.compile(r"[^/\s?#]+/[^/\s?#]+")
_KEY = re.compile(r"(?:[^\s-]+-)?[A-Za-z0-9_]{40,}")
STATES = ("running", "finished", "failed", "crashed", "killed", "preempting", "preempted")


def _some(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _check_project(project: str) -> str:
    if not _PROJECT.fullmatch(project):
        raise ValueError(f"{project!r} should be ENTITY/PROJECT, such as 'myteam/llm'")
    return project


def _check_state(state: str) -> str:
    if state not in STATES:
        raise ValueError(f"W&B has no run state {state!r}; there is: {', '.join(STATES)}")
    return state


def _check_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("should be an address such as 'https://wandb.example.com'")
    if parts.username or parts.password or parts.query:
        raise ValueError("should hold no user, password or query; the key goes into api_key")
    return url.rstrip("/")


def _check_key(key: SecretStr) -> SecretStr:
    if not _KEY.fullmatch(key.get_secret_value()):
        raise ValueError("is no W&B key, which has 40 or more letters, digits and _")
    return key


def _key_of_environment() -> SecretStr | None:
    key = os.environ.get("WANDB_API_KEY", "").strip()
    return SecretStr(key) if key else None


def _url_of_environment() -> str | None:
    return os.environ.get("WANDB_BASE_URL", "").strip().rstrip("/") or None


Texts = Annotated[tuple[str, ...], Field(min_length=1)]
ApiKey = Annotated[Secret, AfterValidator(_check_key)]


class WandbOptions(SourceOptions):
    """Which runs of which W&B projects; every filter that is given has to hold."""

    project: (
        Annotated[str, AfterValidator(_check_project)]
        | Annotated[tuple[Annotated[str, AfterValidator(_check_project)], ...], Field(min_length=1)]
    )
    state: (
        Annotated[str, AfterValidator(_check_state)]
        | tuple[Annotated[str, AfterValidator(_check_state)], ...]
    ) = ()
    tag: str | tuple[str, ...] = ()
    group: str | tuple[str, ...] = ()
    sweep: str | tuple[str, ...] = ()
    run_name: str | tuple[str, ...] = ()
    """Patterns (``*``, ``?``, ``[…]``) of names as the W&B page shows them."""
    ended_within_h: float = Field(24.0, ge=0, le=24 * 366)
    """Runs whose last sign of life is longer ago are not listed, hours."""
    requests_per_minute: float = Field(PER_MINUTE, gt=0, le=1e6)
    """Of all sources of a server together: the least that one of them says."""
    base_url: Annotated[str, AfterValidator(_check_url)] | None = Field(
        default_factory=_url_of_environment
    )
    api_key: ApiKey | None = Field(default_factory=_key_of_environment)

    @field_validator("project", "state", "tag", "group", "sweep", "run_name")
    @classmethod
    def _as_tuple(cls, value: Any) -> Any:
        return _some(value)

    @property
    def projects(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys(_some(self.project)))

    @property
    def no_runs(self) -> str:
        """Say where nothing was found."""
        return f"W&B lists no such run in {' or '.join(self.projects)} yet"

    def filters(self, alive_since: str) -> dict[str, Any]:
        """Say in the words of W&B which runs are to be listed; ``alive_since`` is an ISO time."""
        asked: list[dict[str, Any]] = [
            {"$or": [{"state": "running"}, {"heartbeat_at": {"$gt": alive_since}}]}
        ]
        for name, values in (("state", self.state), ("tags", self.tag), ("group", self.group)):
            if values:
                asked.append({name: {"$in": list(_some(values))}})
        if self.sweep:
            asked.append({"sweep": {"$in": list(_some(self.sweep))}})
        return {"$and": asked}

    def wants(self, listed: Mapping[str, Any]) -> bool:
        """Whether a listed run is one of those asked for, whatever the server made of the filters."""
        tags = set(listed.get("tags") or ())
        name = str(listed.get("displayName") or listed.get("name") or "")
        return (
            (not self.state or listed.get("state") in self.state)
            and (not self.tag or not tags.isdisjoint(self.tag))
            and (not self.group or listed.get("group") in self.group)
            and (not self.sweep or listed.get("sweepName") in self.sweep)
            and (not self.run_name or any(fnmatchcase(name, p) for p in self.run_name))
        )
