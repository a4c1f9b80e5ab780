"""``python -m benchmarks.published``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.curves import shared
from benchmarks.published import document
from benchmarks.published.experiments import LOGS, missing, published_set
from benchmarks.published.measures import measures
from benchmarks.published.table import Judged, judge, markdown
from benchmarks.published.training import train_missing
from benchmarks.report import Measure, Skipped, main

OURS, GIVEN = "our logs", "published logs"


class Tables:
    """The logs as judged, kept for the report."""

    def __init__(self) -> None:
        self.judged: dict[str, list[Judged]] = {}

    def measure(self, quick: bool) -> Iterator[Measure | Skipped]:
        """Judge our own logs and, unless it is to be quick, those of the published experiment."""
        yield from self._of(OURS, LOGS, quick)
        left = missing(LOGS, published_set())
        if left:
            names = ", ".join(one.name for one in left[:3])
            yield Skipped(
                f"{len(left)} of {len(published_set())} runs of the set",
                f"not trained yet ({names}, …); --train goes on",
            )
        folder = shared()
        if folder is None or quick:
            why = (
                "set WTWIN_WATCH_CORPUS to the folder of given logs" if folder is None else "quick"
            )
            yield Skipped(GIVEN, why)
        else:
            yield from self._of(GIVEN, folder / "nanogpt", quick)

    def _of(self, whose: str, folder: Path, quick: bool) -> Iterator[Measure | Skipped]:
        self.judged[whose] = judged = judge(folder)
        yield from measures(judged, whose, quick)

    def write(self, path: Path, measured: Sequence[Measure]) -> None:
        """Write the report."""
        if GIVEN not in self.judged:
            raise SystemExit("no report: it needs WTWIN_WATCH_CORPUS, and not --quick")
        document.write(path, measured, self.judged[OURS], self.judged[GIVEN])


def run(given: Sequence[str] | None = None) -> int:
    """Train if asked, measure, print the tables, and return the exit code."""
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument(
        "--train",
        action="store_true",
        help="train the runs that are missing first: hours; stop and start it again at any time",
    )
    own.add_argument(
        "--work",
        type=Path,
        metavar="FOLDER",
        default=Path("published-training"),
        help="checkpoints and unfinished logs of --train; default: published-training",
    )
    options, rest = own.parse_known_args(given)
    if options.train and not {"-h", "--help"} & set(rest):
        try:
            train_missing(published_set(), LOGS, options.work)
        except KeyboardInterrupt:
            print(f"\nstopped; --train goes on from {options.work}", file=sys.stderr)
            return 130
    tables = Tables()
    code = main("published", tables.measure, rest, document=tables.write, parents=[own])
    if "--json" not in rest:
        for whose, judged in tables.judged.items():
            print(f"\n{whose}\n\n{markdown(judged)}")
    return code


if __name__ == "__main__":
    sys.exit(run())
