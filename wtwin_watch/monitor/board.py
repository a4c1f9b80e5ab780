"""What a run is told to suffer from: one detection a family, however many signals agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from wtwin_watch.model import WEIGHT, Detection, Family, Severity


class Board:
    """Holds what each signal has found, and says what is to be told of it.

    Of the findings that are open in a family the gravest speaks, of equally grave ones the oldest; what
    the others say is its evidence. Something is told when a family's first finding begins, when kind or
    severity of the one that speaks changes, and when the last one ends.
    """

    def __init__(self) -> None:
        self._open: dict[Family, dict[str, Detection]] = {}
        self._told: dict[Family, tuple[str, Severity]] = {}

    def take(self, signal: str, found: Detection) -> list[Detection]:
        """Take what ``signal`` has found, or that it is over; return what is to be told."""
        family = found.family
        findings = self._open.get(family, {})
        if found.active:
            self._open[family] = findings
            findings[signal] = found
        elif findings.pop(signal, None) is None:
            return []
        if not findings:
            del self._open[family]
            del self._told[family]
            return [found]
        lead = _lead(findings)
        told = (lead.kind, lead.severity)
        if self._told.get(family) == told:
            return []
        self._told[family] = told
        return [replace(_with_others(findings), step=found.step)]

    @property
    def findings(self) -> list[Detection]:
        """What is open, one detection a family: the one that speaks."""
        return [_with_others(findings) for findings in self._open.values()]

    def signals(self, family: Family) -> frozenset[str]:
        """Which signals have found something that is open in ``family``."""
        return frozenset(self._open.get(family, ()))

    @property
    def active(self) -> frozenset[Family]:
        """The families in which something is open."""
        return frozenset(self._open)

    def end(self, summary: str, step: float | None) -> list[Detection]:
        """Forget everything; return the ends of what was open, with ``summary`` as the reason."""
        ended = [
            replace(
                next(iter(self._open[family].values())),
                kind=self._told[family][0],
                severity=self._told[family][1],
                active=False,
                summary=summary,
                step=step,
                evidence=(),
            )
            for family in Family
            if family in self._open
        ]
        self._open.clear()
        self._told.clear()
        return sorted(ended, key=lambda one: one.family is not Family.NONFINITE)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as a JSON-able dict."""
        return {
            "open": {
                family.value: {signal: asdict(found) for signal, found in findings.items()}
                for family, findings in self._open.items()
            },
            "told": {family.value: list(told) for family, told in self._told.items()},
        }

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any]) -> Board:
        """Make the board that `snapshot` describes."""
        board = cls()
        for family, findings in snapshot["open"].items():
            board._open[Family(family)] = {
                signal: stored_detection(found) for signal, found in findings.items()
            }
        for family, (kind, severity) in snapshot["told"].items():
            board._told[Family(family)] = (kind, Severity(severity))
        return board


def _lead(findings: Mapping[str, Detection]) -> Detection:
    return max(findings.values(), key=lambda one: WEIGHT[one.severity])


def _with_others(findings: Mapping[str, Detection]) -> Detection:
    lead = _lead(findings)
    others = tuple(one.summary for one in findings.values() if one is not lead)
    return replace(lead, evidence=lead.evidence + others)


def stored_detection(stored: Mapping[str, Any]) -> Detection:
    """Make the detection that ``asdict`` wrote."""
    return Detection(
        **{
            **stored,
            "family": Family(stored["family"]),
            "severity": Severity(stored["severity"]),
            "evidence": tuple(stored["evidence"]),
            "last_lines": tuple(stored.get("last_lines", ())),
        }
    )
