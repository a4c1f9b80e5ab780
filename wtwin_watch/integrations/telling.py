"""Who is told of an alert in a training loop: the log of the program, or the receivers of a settings file."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from wtwin_watch.errors import SettingsError
from wtwin_watch.model import Alert, Event, Run, Severity
from wtwin_watch.notify import render

if TYPE_CHECKING:
    from wtwin_watch.settings import Settings

log = logging.getLogger("wtwin_watch")


class Teller(Protocol):
    """Tells people what happened to an alert."""

    def tell(self, event: Event, alert: Alert, run: Run) -> None:
        """Take note of what is to be told. Returns at once."""
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


def settings_for(notify: str | os.PathLike[str] | Settings) -> Settings:
    """Read the settings that ``notify`` names, or is. Raises `SettingsError` with all that is wrong."""
    from wtwin_watch.settings import Settings, load_told

    if isinstance(notify, Settings):
        return notify
    if not isinstance(notify, str | os.PathLike):
        raise SettingsError([f"notify={notify!r}: give the path of a settings file, or Settings"])
    settings = load_told(Path(notify), os.environ)
    for note in settings.notes:
        log.warning("%s: %s", notify, note)
    return settings


def sender(settings: Settings) -> Teller:
    """Make the one that tells the receivers of ``settings``; `SettingsError` where one can't be had."""
    from wtwin_watch.integrations.sending import Sender

    return Sender(settings)
