"""A source in memory, and a world around the engine: what the tests of ingesting share."""

import threading
import time
from pathlib import Path

from wtwin_watch.alerting.lifecycle import Policy
from wtwin_watch.alerting.telling import everybody
from wtwin_watch.errors import SourceError
from wtwin_watch.ingest.engine import Engine
from wtwin_watch.ingest.plan import Patience, SourcePlan
from wtwin_watch.metrics import Names
from wtwin_watch.model import Batch, Point, Run, RunKey
from wtwin_watch.monitor.run import ClassicOptions
from wtwin_watch.store import Store, database
from wtwin_watch.testing import ManualClock

PLAN = SourcePlan("memory", Names(), 2.0)


class MemorySource:
    """Runs whose points are lists. Faults: ``down`` (a reason), ``broken`` runs, ``hanging`` runs."""

    def __init__(self, name="memory"):
        self.name = name
        self.logs = {}
        self.down = None
        self.broken = {}
        self.hanging = {}
        self.last_activity = {}
        self.facts = {}
        """What else a run is listed with: status, exit_code …"""
        self.restarts = {}
        self.lines = {}
        self.marks = {}
        self.looks = 0
        self.fetches = []
        self.tried = []
        """The runs whose fetch was begun, also in vain."""

    def log(self, run, losses, start=None):
        """Append one point a loss."""
        points = self.logs.setdefault(run, [])
        first = len(points) + 1 if start is None else start
        points += [Point("loss", float(first + i), loss) for i, loss in enumerate(losses)]

    def rewind(self, run, restart, losses):
        """Let the log go on from an earlier step."""
        self.marks.setdefault(run, {})[len(self.logs[run])] = restart
        self.log(run, losses, start=restart.step)

    def last_lines(self, run, count):
        lines = self.lines.get(run.key.run, [])
        if isinstance(lines, Exception):
            raise lines
        return lines[-count:]

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
                **self.facts.get(run, {}),
            )
            for run, points in list(self.logs.items())
        ]

    def fetch(self, run, cursor, limit):
        name = run.key.run
        self.tried.append(name)
        if name in self.hanging:
            self.hanging[name].wait(30)
        if name in self.broken:
            raise self.broken[name]
        self.fetches.append((name, cursor))
        start = cursor["n"] if cursor else 0
        restart = None
        if cursor and cursor.get("restart") != self.restarts.get(name):
            start, restart = 0, self.restarts[name]
        restart = self.marks.get(name, {}).get(start, restart)
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

    def __init__(self, folder: Path, policy=Policy(0.0, 0.0), receivers=("oncall",), **changes):  # noqa: B008
        self.changes = changes
        self.url = database.database_url(str(folder / "state.db"))
        self.policy = policy
        self.receivers = receivers
        self.clock = ManualClock(1_000_000.0)
        self.source = MemorySource()
        self.wakes = 0
        self.start()

    def start(self, **changes):
        changes = self.changes | changes
        self.store = Store(self.url)
        self.store.claim(self.clock.time())
        settings = {
            "policy": self.policy,
            "patience": Patience(),
            "detector": ClassicOptions(),
            "telling": everybody(*self.receivers),
        } | changes
        plan, name = settings.pop("plan", PLAN), settings.pop("name", "memory")
        self.engine = Engine(
            store=self.store,
            clock=self.clock,
            told=self._told,
            **settings,
        )
        self.engine.add(name, self.source, plan)

    def _told(self):
        self.wakes += 1

    def kill(self):
        """Leave without saving anything, as a killed process does."""
        self.store.close()
        for poller in self.engine._pollers.values():
            poller.workers.close()

    def restart(self, **changes):
        """End in order, and start again."""
        self.engine.close()
        self.store.close()
        self.start(**changes)

    def pass_time(self, seconds, log=None, every=None):
        """Let ``seconds`` pass, looking all the time; the run ``log`` brings a loss every 2 seconds."""
        every = every or (10.0 if log is None else 2.0)
        for _ in range(round(seconds / every)):
            if log is not None:
                self.source.log(log, [2.0])
            self.settle(every - 0.6)

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
