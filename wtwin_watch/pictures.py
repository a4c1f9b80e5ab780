"""Pictures of the loss for those who were told of an alert: shown after the text, which never waits for them.

Best effort: what can't be drawn or shown is logged and left out. The curve is the one that the run's last
checkpoint has kept, so that a picture is to be had also after a restart.
"""

from __future__ import annotations

import queue
import threading

import structlog

from wtwin_watch.errors import DeliveryError, SnapshotError, StoreError
from wtwin_watch.model import Event, Notification, Receipt
from wtwin_watch.monitor.curve import Curve
from wtwin_watch.notify.render import caption
from wtwin_watch.plot import available, draw, lacking, marks_of
from wtwin_watch.protocols import Illustrating, Notifier
from wtwin_watch.store import Store

log = structlog.get_logger("wtwin_watch.notify")

MOST_WAITING = 32
LEAST_COLUMNS = 2


class Pictures:
    """Draws and shows pictures, one after the other, in a thread of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: queue.Queue[tuple[Illustrating, Notification, Receipt] | None] = queue.Queue(
            MOST_WAITING
        )
        self._thread: threading.Thread | None = None
        self._able: bool | None = None

    def sent(self, notifier: Notifier, notification: Notification, receipt: Receipt) -> None:
        """Show a picture beside a notification that was delivered, if it begins an alert. Waits for nothing.

        Called from the threads of the receivers.
        """
        if notification.event is not Event.FIRING or not isinstance(notifier, Illustrating):
            return
        if notifier.wants_pictures and notification.previous is None and self._can_draw():
            try:
                self._waiting.put_nowait((notifier, notification, receipt))
            except queue.Full:
                log.info("no plot, too many wait", run=notification.run.name)

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, name="pictures", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """End after the pictures that wait, waiting for them at most ``timeout_s``."""
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            return
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _can_draw(self) -> bool:
        if self._able is None:
            self._able = available()
            if not self._able:
                log.info(f"alerts are told without a plot: {lacking()}")
        return self._able

    def _run(self) -> None:
        while (asked := self._waiting.get()) is not None:
            notifier, notification, receipt = asked
            try:
                picture = self.picture(notification)
                if picture is not None:
                    notifier.illustrate(notification, receipt, picture)
            except (DeliveryError, StoreError, SnapshotError) as error:
                log.warning("no plot", run=notification.run.name, error=str(error))
            except Exception as error:
                # The text of an unexpected error may hold a URL or a token: its class must do.
                log.warning("no plot", run=notification.run.name, error=type(error).__name__)

    def picture(self, notification: Notification) -> bytes | None:
        """Draw the loss of a notification's run; None where nothing is kept of it, as of a source."""
        kept = self._store.curve(notification.run.key)
        curve = Curve.restore(kept) if kept is not None else Curve()
        if len(curve) < LEAST_COLUMNS:
            return None
        headline, detail = caption(notification.alert.detection, notification.run.name)
        return draw(curve, marks_of(notification.alert), headline, detail)
