"""Whether what should have arrived arrived, and only that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FIRING, CHANGED = "run.alert.firing", "run.alert.changed"


@dataclass(frozen=True, slots=True)
class Delivery:
    """What of a webhook the verdict looks at. ``at`` is when it arrived, unix seconds."""

    id: str
    at: float
    type: str
    family: str
    source: str
    alert: str
    title: str = ""
    summary: str = ""

    @classmethod
    def read(cls, id: str, at: float, payload: Mapping[str, Any]) -> Delivery:
        """Take it from a webhook's JSON; what isn't there is empty."""
        data = payload.get("data")
        data = data if isinstance(data, Mapping) else {}

        def text(value: Any) -> str:
            return value if isinstance(value, str) else ""

        return cls(
            id=id,
            at=at,
            type=text(payload.get("type")),
            family=text(data.get("family")),
            source=text(data.get("source")),
            alert=text(data.get("alert_id")),
            title=text(data.get("title")),
            summary=text(data.get("summary")),
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """What happened. ``rot_began_at`` is None where the labels stayed clean."""

    deliveries: Sequence[Delivery]
    refusals: Sequence[str]
    rot_began_at: float | None
    followed_to: Mapping[str, float | None]
    """Source → the last step that the watcher judged of its run."""


def complaints(facts: Facts, sources: Sequence[str], last_step: int) -> list[str]:
    """Say what is missing and what is too much, a sentence each; nothing if all is as it should be.

    A rotting run is told once a source, after the rot began. Later the same alert may be told in more exact
    words (``changed``). A delivery that comes again with its id is the same one. Each source's run was
    followed to ``last_step``.
    """
    told = list({d.id: d for d in reversed(facts.deliveries)}.values())[::-1]
    found = [f"the receiver refused a delivery: {reason}" for reason in facts.refusals]
    for source in sources:
        step = facts.followed_to.get(source)
        if step is None:
            found.append(f"{source}: the watcher never followed the run")
        elif step != last_step:
            found.append(f"{source}: the watcher followed to step {step:g} of {last_step}")
    fired: dict[str, Delivery] = {}
    for delivery in told:
        about = f"{delivery.source}: {delivery.type} about {delivery.family}"
        first = fired.get(delivery.source)
        if facts.rot_began_at is None:
            found.append(f"{about} arrived, though nothing is wrong with the run")
        elif delivery.source not in sources or delivery.family != "loss":
            found.append(f"{about} arrived, which nobody expected")
        elif delivery.at < facts.rot_began_at:
            found.append(f"{about} arrived before the labels began to rot")
        elif delivery.type == FIRING and first is None:
            fired[delivery.source] = delivery
        elif delivery.type == FIRING:
            found.append(f"{about} arrived a second time")
        elif delivery.type != CHANGED or first is None or delivery.alert != first.alert:
            found.append(f"{about} arrived, which nobody expected")
    if facts.rot_began_at is not None:
        found += [f"{s}: no alert about the loss arrived" for s in sources if s not in fired]
    return found
