"""For receivers to which there is nothing but alerts: a digest is refused, in the settings and here."""

from __future__ import annotations

from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event, Notification

NO_DIGEST = "it takes alerts alone, which begin and end"


def check(notification: Notification, described: str) -> None:
    """Raise `DeliveryError` for a digest, such as one that waited while its receiver was changed."""
    if notification.event is Event.DIGEST:
        raise DeliveryError(f"{described} can't have a digest: {NO_DIGEST}", permanent=True)
