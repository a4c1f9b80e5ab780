"""Work spread over processes, with a bar on stderr where somebody looks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

J = TypeVar("J")
R = TypeVar("R")
WIDTH = 30


class Progress:
    """A bar on stderr, gone when all is done; nothing where stderr is no terminal."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done = what, total, 0
        self.shown = sys.stderr.isatty()
        self._show()

    def step(self) -> None:
        """One more is done."""
        self.done += 1
        self._show()

    def _show(self) -> None:
        if not self.shown or not self.total:
            return
        filled = WIDTH * self.done // self.total
        bar = "#" * filled + "." * (WIDTH - filled)
        line = f"{self.what:<24} {bar} {self.done}/{self.total}"
        ended = self.done == self.total
        print(
            "\r" + (" " * len(line) + "\r" if ended else line), end="", file=sys.stderr, flush=True
        )


@contextmanager
def workers() -> Iterator[Executor]:
    """A pool of as many processes as this one may use cores, at most four."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with ProcessPoolExecutor(min(4, cores or 1), mp_context=get_context("spawn")) as pool:
        yield pool


def spread(pool: Executor, what: str, work: Callable[[J], R], jobs: Sequence[J]) -> list[R]:
    """Do the jobs in the pool, and return their results in the order of the jobs."""
    progress = Progress(what, len(jobs))
    results = []
    for result in pool.map(work, jobs):
        results.append(result)
        progress.step()
    return results
