"""A source in memory, and a world around the engine: what the tests of ingesting share."""

import threading
import time
from pathlib import Path

from wtwin_watch.alerting.lifecycle import Policy
from wtwin_watch.errors import SourceError
from wtwin_watch.ingest.engine import Engine
from wtwin_watch.metrics import Names
from wtwin_watch.model import Batch, Point, Run, RunKey
from wtwin_watch.monitor.run import ClassicOptions
from wtwin_watch.store import Store, database
from wtwin_watch.testing import ManualClock


class MemorySource:
    """Runs whose points are lists. Faults: ``down`` (a reason), ``broken`` runs, ``hanging`` runs."""

    def __init__(self, name="memory"):
        self.name = name
        self.logs = {}
        self.down = None
        self.broken = {}
        self.hanging = {}
        self.last_activity = {}
        self.restarts = {}
        self.looks = 0
        self.fetches = []

    def log(self, run, losses, start=None):
        """Append one point a loss."""
        points = self.logs.setdefault(run, [])
        first = len(points) + 1 if start is None else start
        points += [Point("loss", float(first + i), loss) for i, loss in enumerate(losses)]

    def runs(self):
        self.looks += 1
        if self.down:
            raise SourceError(self.down)
        return [
            Run(
                RunKey(self.name, run),
                run,
                version=f"{len(points)} {self.restarts.get(run)}",
                last_activity=self.last_activity.get(run),
            )
            for run, points in list(self.logs.items())
        ]

    def fetch(self, run, cursor, limit):
        name = run.key.run
        if name in self.hanging:
            self.hanging[name].wait(30)
        if name in self.broken:
            raise self.broken[name]
        self.fetches.append((name, cursor))
        start = cursor["n"] if cursor else 0
        restart = None
        if cursor and cursor.get("restart") != self.restarts.get(name):
            start, restart = 0, self.restarts[name]
        points = self.logs[name][start : start + limit]
        end = start + len(points)
        return Batch(
            points,
            {"n": end, "restart": self.restarts.get(name)},
            more=end < len(self.logs[name]),
            restart=restart,
            position=f"row {end}",
        )

    def roots(self) -> list[Path]:
        return []

    def close(self):
        pass


class World:
    """An engine over one memory source and a real store."""

    def __init__(self, folder: Path, policy=Policy(0.0, 0.0), receivers=("oncall",)):  # noqa: B008
        self.url = database.database_url(str(folder / "state.db"))
        self.policy = policy
        self.receivers = receivers
        self.clock = ManualClock(1_000_000.0)
        self.source = MemorySource()
        self.wakes = 0
        self.start()

    def start(self, **changes):
        self.store = Store(self.url)
        self.store.claim(self.clock.time())
        settings = {
            "policy": self.policy,
            "old_after_s": 3600.0,
            "source_down_after_s": 60.0,
            "detector": ClassicOptions(),
        } | changes
        self.engine = Engine(
            store=self.store,
            clock=self.clock,
            receivers=self.receivers,
            told=self._told,
            **settings,
        )
        self.engine.add("memory", "memory", self.source, Names(), 2.0)

    def _told(self):
        self.wakes += 1

    def kill(self):
        """Leave without saving anything, as a killed process does."""
        self.store.close()

    def settle(self, seconds=0.0):
        """Let ``seconds`` pass and read all there is to read."""
        self.clock.now += seconds
        deadline = time.monotonic() + 20
        self.engine.turn(0.01)
        while self.engine.busy or not self.engine.answered:
            assert time.monotonic() < deadline, "the engine doesn't come to rest"
            self.engine.turn(0.05)
        self.clock.now += 0.6
        self.engine.turn(0.0)

    def outbox(self):
        """(event, run, kind) of everything ever put into the outbox, in its order."""
        import sqlite3

        from wtwin_watch.store import codec

        with sqlite3.connect(self.url.database) as connection:
            rows = connection.execute("SELECT event, body_json FROM outbox ORDER BY seq").fetchall()
        alerts = [codec.load_alert(codec.dumps(codec.loads(body)["alert"])) for _, body in rows]
        return [
            (event, alert.run.run, alert.kind)
            for (event, _), alert in zip(rows, alerts, strict=True)
        ]


def hang():
    """An event that lets a hanging fetch go on."""
    return threading.Event()
