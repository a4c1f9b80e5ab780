"""The one thread that writes. Work queued meanwhile is committed together, each piece in its savepoint."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import sqlalchemy as sa

from wtwin_watch.errors import StoreError

T = TypeVar("T")
Work = Callable[[sa.Connection], T]

MOST_TOGETHER = 500


class Writer:
    """Runs pieces of work on one connection, in the order they came.

    A piece that raises is undone alone; the others of its commit stand. ``guard`` runs first in every
    transaction and may refuse it, which is how a daemon that lost its database stops writing.
    """

    def __init__(self, engine: sa.Engine, guard: Callable[[sa.Connection], None]) -> None:
        self._engine = engine
        self._guard = guard
        self._queue: queue.SimpleQueue[tuple[Work[Any], Future[Any]] | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store writer", daemon=True)
        self._thread.start()

    def submit(self, work: Work[T]) -> Future[T]:
        """Queue ``work``; the future is done once it is committed."""
        future: Future[T] = Future()
        if self._closed.is_set():
            future.set_exception(StoreError("the state database is closed"))
            return future
        self._queue.put((work, future))
        return future

    def write(self, work: Work[T], timeout_s: float = 60.0) -> T:
        """Run ``work`` and wait for its commit. Raises what it raised, or `StoreError`."""
        try:
            return self.submit(work).result(timeout_s)
        except TimeoutError:
            raise StoreError(
                f"the state database didn't take a write within {timeout_s:.0f} s"
            ) from None

    def close(self) -> None:
        """Finish what is queued, then stop."""
        self._closed.set()
        self._queue.put(None)
        self._thread.join(timeout=60)

    def _run(self) -> None:
        while True:
            batch = [self._queue.get()]
            while len(batch) < MOST_TOGETHER and not self._queue.empty():
                batch.append(self._queue.get())
            work = [item for item in batch if item is not None]
            if work:
                self._commit(work)
            if None in batch:
                return

    def _commit(self, batch: list[tuple[Work[Any], Future[Any]]]) -> None:
        outcomes: list[tuple[Future[Any], Any, Exception | None]] = []
        try:
            with self._engine.begin() as connection:
                self._guard(connection)
                for work, future in batch:
                    try:
                        with connection.begin_nested():
                            outcomes.append((future, work(connection), None))
                    except sa.exc.OperationalError:
                        raise
                    except Exception as error:
                        outcomes.append((future, None, error))
        except Exception as error:
            failure = error if isinstance(error, StoreError) else _plain(error)
            outcomes = [(future, None, failure) for _, future in batch]
        for future, result, problem in outcomes:
            if problem is None:
                future.set_result(result)
            else:
                future.set_exception(problem)


def _plain(error: Exception) -> StoreError:
    cause = getattr(error, "orig", None) or error
    return StoreError(f"the state database can't be written: {cause}")
