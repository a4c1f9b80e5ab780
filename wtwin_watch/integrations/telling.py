"""Who is told of an alert in a training loop where no receiver is configured: the log of the program."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from wtwin_watch.model import Alert, Event, Run, Severity
from wtwin_watch.notify import render

log = logging.getLogger("wtwin_watch")


class Teller(Protocol):
    """Tells people what happened to an alert."""

    def tell(self, event: Event, alert: Alert, run: Run) -> None:
        """Take note of what is to be told. Returns at once, and never raises."""
        ...

    def state(self) -> dict[str, Any]:
        """Who was told of which open alert: JSON-able."""
        ...

    def recall(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        ...

    def flush(self, timeout_s: float) -> bool:
        """Wait until all is told, at most ``timeout_s`` seconds; whether that was so."""
        ...

    def close(self, timeout_s: float) -> None:
        """`flush`, and let go of what there is to let go of. It may be told more afterwards."""
        ...


class LogTeller:
    """Tells the logger ``wtwin_watch``: a warning when an alert fires or changes, otherwise information."""

    def tell(self, event: Event, alert: Alert, run: Run) -> None:
        """Log what happened, in the words that receivers get."""
        message = render.message(event, alert, run)
        grave = event is not Event.RESOLVED and alert.severity is not Severity.INFO
        witnesses = "; ".join(alert.detection.evidence)
        evidence = f" Evidence: {witnesses}." if grave and witnesses else ""
        level = logging.WARNING if grave else logging.INFO
        log.log(level, "%s: %s%s", message.title, message.summary, evidence)

    def state(self) -> dict[str, Any]:
        """A log needs no memory."""
        return {}

    def recall(self, state: Mapping[str, Any]) -> None:
        """A log needs no memory."""

    def flush(self, timeout_s: float) -> bool:
        """All is told already."""
        return True

    def close(self, timeout_s: float) -> None:
        """There is nothing to let go of."""
