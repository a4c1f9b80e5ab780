"""A digest in words: what fired, what people weren't told, what was watched."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo

from wtwin_watch.alerting.budget import WEEK_S
from wtwin_watch.model import WEIGHT, Alert, Family, Message, Severity
from wtwin_watch.notify.render import what
from wtwin_watch.store.digest import Facts

MOST_LINES = 15
_LINE_CHARS, _NAME_CHARS = 120, 50


def compose(facts: Facts, zone: tzinfo = UTC) -> Message:
    """Put the facts into words, with times of ``zone``."""
    told = [(a, name) for a, name in facts.alerts if a.severity is not Severity.INFO]
    noted = [a for a, _ in facts.alerts if a.severity is Severity.INFO]
    lines = _alerts(told, facts)
    if not facts.runs:
        lines.append("No run was watched in this time.")
    rows = [
        ("Period", f"{_moment(facts.start, zone)} to {_moment(facts.end, zone)}"),
        ("Runs watched", f"{facts.runs}, {facts.new_runs} of them new"),
        ("Information", _counted(what(a.family, a.kind) for a in noted)),
        ("Not told", ", ".join(f"{count} {choice}" for choice, count in facts.held.items())),
        ("Sources down", _down(facts)),
        ("Budget", _budget(told, facts)),
    ]
    title = f"Digest: {_number(len(told), 'alert')} in {_number(facts.runs, 'run')}"
    return Message(title, "\n".join(lines), tuple((label, text) for label, text in rows if text))


def expected(facts: Facts) -> float | None:
    """How many false alarms the budget has room for in this time; None where there is no budget."""
    if facts.budget is None:
        return None
    return facts.budget.told_a_week * (facts.end - facts.start) / WEEK_S


def lasting(seconds: float) -> str:
    """Write a time span in its two largest units: ``1d4h``, ``2h10m``, ``40s``."""
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (rest, "s")]
    first = next((i for i, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return "".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count) or "0s"


def _alerts(told: list[tuple[Alert, str]], facts: Facts) -> list[str]:
    """A line for each run and kind, the gravest first, then the earliest."""
    if not told:
        return ["No alert fired."]
    episodes: dict[tuple[str, str, str], list[Alert]] = {}
    for alert, name in told:
        key = (name, what(alert.family, alert.kind), str(alert.run))
        episodes.setdefault(key, []).append(alert)
    graded = sorted(episodes.items(), key=lambda item: -_gravest(item[1]))
    lines = [_line(alerts, kind, name, facts) for (name, kind, _), alerts in graded[:MOST_LINES]]
    if len(graded) > MOST_LINES:
        lines.append(f"… and {len(graded) - MOST_LINES} more; 'wtwin-watch alerts' lists them")
    return lines


def _line(alerts: list[Alert], kind: str, name: str, facts: Facts) -> str:
    latest, end = alerts[-1], facts.end
    grave = max(alerts, key=lambda alert: WEIGHT[alert.severity]).severity
    times = "" if len(alerts) == 1 else f"{len(alerts)} times, "
    lasted = lasting(sum(_lasted_s(alert, end) for alert in alerts))
    if latest.resolved_at is None or latest.resolved_at >= end:
        how = "fires still"
        if latest.acknowledged is not None:
            how += f", seen by {latest.acknowledged.by or 'somebody'}"
    else:
        how = latest.outcome or "over"
    why = facts.untold.get(latest.id)
    untold = f"told to nobody ({why}), " if why is not None else ""
    where = _cut(name, _NAME_CHARS)
    return _cut(f"{grave.value}: {kind} ({where}), {untold}{times}{lasted}, {how}", _LINE_CHARS)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _gravest(alerts: list[Alert]) -> int:
    return max(WEIGHT[alert.severity] for alert in alerts)


def _lasted_s(alert: Alert, end: float) -> float:
    begun = alert.started_at if alert.fired_at is None else alert.fired_at
    return min(end, end if alert.resolved_at is None else alert.resolved_at) - begun


def _down(facts: Facts) -> str:
    spans: dict[str, float] = {}
    for alert, _ in facts.alerts:
        if alert.family is Family.SOURCE:
            begun = max(alert.started_at, facts.start)
            ended = facts.end if alert.resolved_at is None else min(alert.resolved_at, facts.end)
            spans[alert.run.source] = spans.get(alert.run.source, 0.0) + ended - begun
    texts = [
        f"{source} for {lasting(span)}{' and still' if source in facts.down else ''}"
        for source, span in spans.items()
    ]
    return ", ".join(texts + [f"{source} now" for source in facts.down if source not in spans])


def _budget(fired: list[tuple[Alert, str]], facts: Facts) -> str:
    """How many alerts told of a rise by its evidence, against those that chance alone brings."""
    by_chance = expected(facts)
    if by_chance is None:
        return ""
    by_evidence = sum(
        alert.detection.strength is not None and alert.id not in facts.untold for alert, _ in fired
    )
    return f"{_number(by_evidence, 'alert')} told of a rise; chance alone brings {by_chance:.2g}"


def _counted(texts: Iterable[str]) -> str:
    counts: dict[str, int] = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    return ", ".join(f"{text} {_times(count)}" for text, count in counts.items())


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _moment(seconds: float, zone: tzinfo) -> str:
    return f"{datetime.fromtimestamp(seconds, zone):%Y-%m-%d %H:%M %Z}"
