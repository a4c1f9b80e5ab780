"""A bound on how long a delivery may take, whatever the other side does.

A socket's timeout starts anew with each byte, and looking up a host's name has none at all; so a delivery
runs in a thread of its own that is left behind when its time is over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from wtwin_watch.errors import DeliveryError

T = TypeVar("T")

SEND_TIMEOUT_S = 25.0
"""All of one delivery, seconds. The contract of `Notifier.send` is half a minute."""

_MOST_LEFT_BEHIND = 4


class Deadline:
    """Runs deliveries to one receiver, each for at most ``timeout_s`` seconds.

    ``where`` names the receiver in errors. A delivery that was given up may still end well, so the
    receiver can see the notification twice. When four such are still hanging, the next is refused at
    once: a receiver that never ends a connection must not gather threads.
    """

    def __init__(self, where: str, timeout_s: float = SEND_TIMEOUT_S) -> None:
        self._where = where
        self._timeout_s = timeout_s
        self._left_behind: list[threading.Thread] = []

    def run(self, deliver: Callable[[], T]) -> T:
        """Return what ``deliver`` returns, or raise what it raises; `DeliveryError` when its time is over."""
        self._left_behind = [thread for thread in self._left_behind if thread.is_alive()]
        if len(self._left_behind) >= _MOST_LEFT_BEHIND:
            raise DeliveryError(
                f"{self._where}: {len(self._left_behind)} earlier deliveries still hang"
            )
        outcome: SimpleQueue[Callable[[], T]] = SimpleQueue()
        thread = threading.Thread(
            target=lambda: outcome.put(_attempt(deliver)),
            name=f"deliver to {self._where}",
            daemon=True,
        )
        thread.start()
        try:
            result = outcome.get(timeout=self._timeout_s)
        except Empty:
            self._left_behind.append(thread)
            raise DeliveryError(
                f"{self._where}: no whole answer within {self._timeout_s:g} s"
            ) from None
        return result()


def _attempt(deliver: Callable[[], T]) -> Callable[[], T]:
    """Carry the outcome of ``deliver`` to another thread: a function that returns or raises it."""
    try:
        value = deliver()
    except BaseException as error:
        # Bound by a second name: Python deletes the first when the block ends.
        raised = error

        def fail() -> T:
            raise raised

        return fail
    return lambda: value
