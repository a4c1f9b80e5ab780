"""What a metric is, told from its name: the roles that monitors use and the usual spellings.

Adapters ask `wanted` which metrics to read at all, a monitor asks `choose` which of them it follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache


class Role(StrEnum):
    """The part a metric plays for a monitor."""

    LOSS = "loss"
    LR = "lr"
    GRAD_NORM = "grad_norm"
    VAL_LOSS = "val_loss"
    THROUGHPUT = "throughput"


@dataclass(frozen=True, slots=True)
class Names:
    """Names a user gave for roles, exactly as logged; None means: find it by the usual spellings."""

    step: str | None = None
    loss: str | None = None
    lr: str | None = None
    grad_norm: str | None = None
    val_loss: str | None = None
    throughput: str | None = None


# The spellings of a role in the order in which they are believed. Compared after `_plain`.
_SPELLINGS: dict[Role, tuple[str, ...]] = {
    Role.LOSS: (
        "train loss", "training loss", "loss train", "loss training", "train loss step",
        "loss", "lm loss", "total loss", "train total loss", "loss total", "train loss total",
        "loss train total",
        "step loss", "batch loss", "tr loss", "nll loss", "ce loss", "cross entropy loss",
        "train lm loss", "train ce loss", "train nll loss", "train cross entropy loss",
        "losses loss", "losses train", "train loss epoch", "train box loss", "avg loss", "avr loss",
        "reduced train loss",
    ),
    Role.LR: (
        "lr", "learning rate", "train lr", "train learning rate", "optim lr", "lr 0", "lr pg0", "x lr0",
        "optim learning rate group0", "lr adam", "lr adam w", "lr sgd", "lr adam pg1", "lr adam w pg1",
        "lr sgd pg1", "lr decoupled adam w group0",
    ),
    Role.GRAD_NORM: (
        "grad norm", "gradient norm", "gradnorm", "train grad norm", "train gradient norm",
        "global grad norm", "total norm", "gnorm", "optim total grad norm",
    ),
    Role.VAL_LOSS: (
        "val loss", "valid loss", "validation loss", "eval loss", "test loss", "dev loss",
        "loss val", "loss valid", "loss validation", "loss eval", "loss test",
    ),
    Role.THROUGHPUT: (
        "tokens per second", "tokens per sec", "tokens s", "tok s", "throughput", "samples per second",
        "samples per sec", "samples s", "steps per second", "steps per sec", "it s",
        "train samples per second", "train steps per second", "iterations per second",
    ),
}  # fmt: skip

_STEP_SPELLINGS = (
    "step", "global step", "train step", "train global step", "iteration", "iter", "iterations",
    "current steps", "num updates", "num steps", "steps", "batch", "update", "updates",
    "trainer global step", "time total timesteps", "total timesteps", "time iterations", "epoch",
)  # fmt: skip


@lru_cache(maxsize=65536)
def _plain(name: str) -> str:
    """Fold case, punctuation and camel case: ``Loss/train`` and ``train_loss`` become words."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return " ".join(re.split(r"[^a-z0-9]+", spaced.lower())).strip()


_BELIEF = {
    spelling: (role, rank)
    for role, spellings in _SPELLINGS.items()
    for rank, spelling in enumerate(spellings)
}


@lru_cache(maxsize=65536)
def belief(name: str) -> tuple[Role, int] | None:
    """Say which role ``name`` usually has, and how early it stands in that role's list (0 is first)."""
    return _BELIEF.get(_plain(name))


def wanted(name: str, names: Names) -> bool:
    """Whether a monitor may use this metric, so that an adapter should read it."""
    return any(name == getattr(names, role) for role in Role) or belief(name) is not None


def choose(seen: Iterable[str], names: Names) -> dict[Role, str]:
    """Choose the metric that plays each role among those ``seen``: the user's name, else the best known.

    A user's name is taken only where it was seen; its role is then not filled by another.
    """
    seen = list(seen)
    given = {Role(f.name): getattr(names, f.name) for f in fields(names) if f.name != "step"}
    best: dict[Role, tuple[int, str]] = {}
    for name in seen:
        known = belief(name)
        if known and given[known[0]] is None and (known[1], name) < best.get(known[0], (10**9, "")):
            best[known[0]] = (known[1], name)
    chosen = {role: name for role, (_, name) in best.items()}
    return chosen | {
        role: name for role, name in given.items() if name is not None and name in seen
    }


def choose_step(columns: Iterable[str], names: Names) -> str | None:
    """Choose the column that counts steps, or None where none is known: then rows are counted."""
    columns = list(columns)
    if names.step is not None:
        return names.step if names.step in columns else None
    ranks = {spelling: rank for rank, spelling in enumerate(_STEP_SPELLINGS)}
    known = [(ranks[_plain(name)], name) for name in columns if _plain(name) in ranks]
    return min(known)[1] if known else None
