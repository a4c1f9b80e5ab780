"""What a framework's callback does about an alert: nothing, unless it was asked to stop or to save."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from wtwin_watch.errors import SettingsError
from wtwin_watch.model import WEIGHT, Alert, Severity

On = bool | str
"""False: never. True: when an alert is critical. ``"warning"``: when one is at least that grave."""


class Act(NamedTuple):
    """What is to be done now."""

    stop: bool
    save: bool


class Actions:
    """Decides what is to be done about alerts. Raises `SettingsError` for what is no severity."""

    def __init__(self, stop_on_alert: On, checkpoint_on_alert: On) -> None:
        self._stop = _least("stop_on_alert", stop_on_alert)
        self._save = _least("checkpoint_on_alert", checkpoint_on_alert)
        self._saved: set[str] = set()

    @property
    def wanted(self) -> bool:
        """Whether there is anything that it may ask for."""
        return self._stop is not None or self._save is not None

    def decide(self, firing: Iterable[Alert]) -> Act:
        """Say what the alerts that fire ask for; a checkpoint is asked for once an alert."""
        firing = list(firing)
        new = {alert.id for alert in firing if _grave(alert, self._save)} - self._saved
        self._saved |= new
        return Act(any(_grave(alert, self._stop) for alert in firing), bool(new))


def _least(option: str, given: On) -> Severity | None:
    if given is False:
        return None
    if given is True:
        return Severity.CRITICAL
    try:
        return Severity(given)
    except ValueError:
        known = ", ".join(repr(severity.value) for severity in Severity)
        raise SettingsError([f"{option}={given!r}: give True, False or one of {known}"]) from None


def _grave(alert: Alert, least: Severity | None) -> bool:
    return least is not None and WEIGHT[alert.severity] >= WEIGHT[least]
