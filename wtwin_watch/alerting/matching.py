"""Which alerts are meant: matchers over an alert's labels, as routes and silences use them.

A text such as ``project=myteam/llm run=~"sweep-.*" severity>=warning`` means the alerts for which all of
it holds. Labels are ``source``, ``project``, ``run``, ``group``, ``tag``, ``family``, ``kind`` and
``severity``. A run has any number of tags: ``tag=x`` holds if one of them is x, ``tag!=x`` if none is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from wtwin_watch.alerting.regexes import may_search_for_ever
from wtwin_watch.model import WEIGHT, Alert, Family, Run, Severity

LABELS = ("source", "project", "run", "group", "tag", "family", "kind", "severity")
Labels = Mapping[str, tuple[str, ...]]
"""The values of each label: one, but for tags."""

_PART = re.compile(r"(?P<label>\w+)\s*(?P<operator>>=|!=|=~|!~|=)(?P<value>.*)", re.DOTALL)
_LONGEST = 500
_VALUES = {
    "family": tuple(family.value for family in Family),
    "severity": tuple(severity.value for severity in Severity),
}


class Operator(StrEnum):
    """How a value is compared; patterns are regular expressions for the whole value."""

    IS = "="
    IS_NOT = "!="
    LIKE = "=~"
    UNLIKE = "!~"
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition on one label."""

    label: str
    operator: Operator
    value: str

    def holds(self, labels: Labels) -> bool:
        """Whether the condition holds for an alert with ``labels``."""
        values = labels.get(self.label, ("",)) or ("",)
        match self.operator:
            case Operator.IS:
                return self.value in values
            case Operator.IS_NOT:
                return self.value not in values
            case Operator.LIKE:
                return any(re.fullmatch(self.value, value) for value in values)
            case Operator.UNLIKE:
                return not any(re.fullmatch(self.value, value) for value in values)
            case Operator.AT_LEAST:
                least = WEIGHT[Severity(self.value)]
                return any(WEIGHT[Severity(value)] >= least for value in values if value)

    def __str__(self) -> str:
        return f"{self.label}{self.operator}{shlex.quote(self.value)}"


def parse(text: str) -> tuple[Matcher, ...]:
    """Read matchers, set apart by spaces; an empty text matches everything.

    Raises `ValueError` saying what is wrong with the text.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"should have at most {_LONGEST} characters")
    try:
        parts = shlex.split(text)
    except ValueError:
        raise ValueError(f"has a quotation mark without its end: {text}") from None
    return tuple(_matcher(part) for part in parts)


def parse_labels(text: str) -> Labels:
    """Read the labels of an alert that is only thought of: ``project=x tag=a tag=b``.

    Those left out are empty. Raises `ValueError` saying what is wrong with the text.
    """
    given: dict[str, tuple[str, ...]] = {}
    for matcher in parse(text):
        if matcher.operator is not Operator.IS:
            raise ValueError(f"{matcher} is a condition; an alert's label is written label=value")
        if matcher.label in given and matcher.label != "tag":
            raise ValueError(f"an alert has one {matcher.label}, not several")
        given[matcher.label] = (*given.get(matcher.label, ()), matcher.value)
    return {label: given.get(label, () if label == "tag" else ("",)) for label in LABELS}


def labels_of(alert: Alert, run: Run) -> Labels:
    """The labels of an alert of ``run``; one about a source has no run, and so no name of one."""
    return {
        "source": (alert.run.source,),
        "project": (run.project,),
        "run": (run.name if alert.run.run else "",),
        "group": (run.group or "",),
        "tag": run.tags,
        "family": (alert.family.value,),
        "kind": (alert.kind,),
        "severity": (alert.severity.value,),
    }


def all_hold(matchers: Iterable[Matcher], labels: Labels) -> bool:
    """Whether every condition holds."""
    return all(matcher.holds(labels) for matcher in matchers)


def _matcher(part: str) -> Matcher:
    found = _PART.fullmatch(part)
    if found is None:
        raise ValueError(f"{part!r} is no condition; write label=value, such as severity=critical")
    label, operator, value = found["label"], Operator(found["operator"]), found["value"]
    if label not in LABELS:
        raise ValueError(f"{label!r} is no label; there are {', '.join(LABELS)}")
    if operator in {Operator.LIKE, Operator.UNLIKE}:
        try:
            re.compile(value)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{value!r} is no regular expression: {error}") from None
        if may_search_for_ever(value):
            raise ValueError(
                f"{value!r} may take hours to match a long name; repeat single characters or [classes],"
                " not groups that repeat or choose, and use at most four .* or the like"
            )
    if operator is Operator.AT_LEAST and label != "severity":
        raise ValueError(f"{part!r}: only a severity can be compared with >=")
    if label in _VALUES and operator not in {Operator.LIKE, Operator.UNLIKE}:
        known = _VALUES[label]
        if value not in known:
            raise ValueError(f"{value!r} is no {label}; there are {', '.join(known)}")
    return Matcher(label, operator, value)
