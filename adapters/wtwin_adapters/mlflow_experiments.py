"""Which of a tracker's experiments are watched: those that the settings name, or all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator


def _several(given: Any) -> Any:
    return (given,) if isinstance(given, str) else given


Experiments = Annotated[tuple[str, ...], BeforeValidator(_several)]
"""Names or ids, as a text or a list."""


def choose(
    wanted: Sequence[str], there: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Choose among the experiments that are ``there``, names by ids; and say which aren't."""
    ids = {name: number for number, name in there.items()}
    chosen = [ids.get(name, name) for name in wanted] if wanted else list(there)
    missing = tuple(n for n, number in zip(wanted, chosen, strict=False) if number not in there)
    return {number: there[number] for number in chosen if number in there}, missing


def missing_id(name: str) -> str:
    """The id of the run that stands for an experiment that isn't there: fetching it says so."""
    return f"experiment {name}"


def is_missing(run: str) -> bool:
    """Whether a run's id is one of `missing_id`."""
    return run.startswith(missing_id(""))


def no_experiment(missing: Iterable[str], there: Iterable[str]) -> str:
    """Say that experiments aren't there, and which are."""
    names = ", ".join(repr(name) for name in missing)
    known = ", ".join(sorted(there)[:10]) or "none"
    return f"no active experiment {names}; correct the source's experiments; there is: {known}"


def no_runs(experiments: Sequence[str], more: str) -> str:
    """Say where there is no run."""
    where = f"experiment {' or '.join(experiments)}" if experiments else "any experiment"
    return f"no run in {where} {more}"
