"""The threads that talk to sources. They may hang: then they are given up and replaced, up to a limit.

A worker only reads: it hands the outcome over and holds no lock, connection or monitor of ours. Its
threads are daemon threads, so that a hung client can't keep the program from ending.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MOST_GIVEN_UP = 8


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a task: its value, or the error it raised. ``ticket`` is what `submit` returned."""

    ticket: int
    value: Any = None
    error: Exception | None = None


class Workers:
    """A bounded pool for one source.

    ``deliver`` is called from worker threads with each outcome; it may block, which slows the reading
    down to the speed of the feeding.
    """

    def __init__(
        self,
        name: str,
        size: int,
        deliver: Callable[[Outcome], None],
        monotonic: Callable[[], float],
    ) -> None:
        self._name = name
        self._deliver = deliver
        self._monotonic = monotonic
        self._tasks: queue.SimpleQueue[tuple[int, Callable[[], Any]] | None] = queue.SimpleQueue()
        self._tickets = itertools.count(1)
        self._lock = threading.Lock()
        self._started: dict[int, float] = {}
        self._given_up: set[int] = set()
        self._missing = 0
        """Threads that hang and were not replaced."""
        for _ in range(size):
            self._start_thread()

    def submit(self, task: Callable[[], Any]) -> int:
        """Queue ``task`` and return its ticket."""
        ticket = next(self._tickets)
        self._tasks.put((ticket, task))
        return ticket

    def give_up(self, older_than_s: float) -> list[int]:
        """Give up the tasks that have been running for longer, and put new threads in their place.

        Returns their tickets; their outcomes, should they still come, are dropped.
        """
        limit = self._monotonic() - older_than_s
        with self._lock:
            late = [ticket for ticket, started in self._started.items() if started < limit]
            for ticket in late:
                del self._started[ticket]
                self._given_up.add(ticket)
            replaced = len(late) if len(self._given_up) <= MOST_GIVEN_UP else 0
            self._missing += len(late) - replaced
        for _ in range(replaced):
            self._start_thread()
        return late

    def hangs(self, ticket: int) -> bool:
        """Whether this task was given up and has not ended since."""
        with self._lock:
            return ticket in self._given_up

    @property
    def exhausted(self) -> bool:
        """So many tasks hang that no more threads are started: this source is not watched any more."""
        with self._lock:
            return len(self._given_up) > MOST_GIVEN_UP

    def close(self, threads: int = 64) -> None:
        """Let idle threads end. Those that hang are left behind."""
        for _ in range(threads):
            self._tasks.put(None)

    def _start_thread(self) -> None:
        threading.Thread(target=self._work, name=f"source {self._name}", daemon=True).start()

    def _work(self) -> None:
        while (item := self._tasks.get()) is not None:
            ticket, task = item
            with self._lock:
                self._started[ticket] = self._monotonic()
            try:
                outcome = Outcome(ticket, value=task())
            except Exception as error:
                outcome = Outcome(ticket, error=error)
            with self._lock:
                self._started.pop(ticket, None)
                given_up = ticket in self._given_up
                self._given_up.discard(ticket)
                stays = not given_up or self._missing > 0
                if given_up and stays:
                    self._missing -= 1
            if not stays:
                return  # another thread has taken this one's place
            if not given_up:
                self._deliver(outcome)
