"""The world around the daemon: logs that grow, receivers that misbehave, and a process that is killed."""

from __future__ import annotations

import base64
import json
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

from benchmarks.crash.plan import FIRING, Life, Turn
from benchmarks.crash.verdict import Delivery, Episode, Notice
from tests.support.faulty_http import Fault
from tests.support.process import KILLED, Process, Program, wait_until
from tests.support.slack_standin import CHANNEL, SlackStandIn
from tests.support.training import FINITE_TO_RECOVER, NAN, healthy
from tests.support.webhook_standin import WebhookStandIn

KNOWN = 40
"""Losses logged before the daemon first sees a run."""
FAULT_PATIENCE_S = 60.0
LAST_PATIENCE_S = 600.0
UNTIL_READY_S = 1.0
"""About so long the daemon takes to start; a kill at any moment hits it then, or soon after."""

SLACK = "slack"
HABITS = {
    "drops": Fault(drop=True),
    "late": Fault(delay_s=0.5),
    "busy": Fault(status=429, headers={"Retry-After": "1"}),
    "broken": Fault(status=500),
    "half-accepts": Fault(drop=True, accept=True),
}
"""What goes wrong with a share of the requests to the webhook of that name; with Slack, any of it."""
MISBEHAVES = 0.3
MOST_REQUESTS = 20_000

SETTINGS = """
[alerts]
cooldown = "0s"
group_wait = "0s"
group_window = "0s"

[[source]]
name = "logs"
adapter = "csv"
path = "{folder}/*.csv"
interval = "1s"
stalls = false

[[receiver]]
name = "slack"
notifier = "slack"
token = {{ env = "THE_TOKEN" }}
channel = "{channel}"
api_url = "{api_url}"
"""
WEBHOOK = """
[[receiver]]
name = "{name}"
notifier = "webhook"
url = "{url}"
secret = {{ env = "THE_SECRET" }}
"""


class Logs:
    """The logs of some runs in a folder, and what has been logged into them."""

    def __init__(self, folder: Path, runs: int) -> None:
        self.paths = [folder / f"run{i:02}.csv" for i in range(runs)]
        self.rows = [0] * runs
        self.episodes: list[Episode] = []
        self._finite = [0] * runs
        self._onset: dict[int, int] = {}
        for run in range(runs):
            self.paths[run].write_text("step,loss\n")
            self.grow(run, KNOWN)

    def grow(self, run: int, count: int) -> None:
        """Log ``count`` more healthy losses."""
        losses = healthy(count, start=self._finite[run])
        self._finite[run] += count
        self._write(run, losses)

    def turn(self, turn: Turn) -> None:
        """Let a run go wrong, or become well for good."""
        if turn.event == FIRING:
            self._onset[turn.run] = self.rows[turn.run]
            self._write(turn.run, NAN)
            return
        onset = self._onset.pop(turn.run)
        resolved = self.rows[turn.run] + FINITE_TO_RECOVER - 1
        self.grow(turn.run, FINITE_TO_RECOVER + 6)
        self.episodes.append(Episode(self.paths[turn.run].name, float(onset), float(resolved)))

    def _write(self, run: int, losses: list[float]) -> None:
        first = self.rows[run]
        self.rows[run] += len(losses)
        with self.paths[run].open("a") as log:
            log.write("".join(f"{step},{loss!r}\n" for step, loss in enumerate(losses, first)))


class Receivers:
    """One webhook for each habit, and a Slack that has them all."""

    def __init__(self, stack: ExitStack, chance: random.Random) -> None:
        self.hooks = {name: stack.enter_context(WebhookStandIn()) for name in HABITS}
        self.slack = stack.enter_context(SlackStandIn())
        self._begun: dict[str, list[int]] = {name: [] for name in self.all}
        for name, receiver in self.all.items():
            faults = [HABITS[name]] if name in HABITS else list(HABITS.values())
            receiver.faults += [
                chance.choice(faults) if chance.random() < MISBEHAVES else Fault()
                for _ in range(MOST_REQUESTS)
            ]

    @property
    def all(self) -> Mapping[str, WebhookStandIn | SlackStandIn]:
        """Each by its name."""
        return {**self.hooks, SLACK: self.slack}

    def settings(self, folder: Path) -> str:
        """The daemon's settings, with these receivers."""
        text = SETTINGS.format(folder=folder, channel=CHANNEL, api_url=self.slack.api_url)
        hooks = self.hooks.items()
        return text + "".join(WEBHOOK.format(name=name, url=h.hook_url) for name, h in hooks)

    def begin(self, life: int) -> dict[str, str]:
        """Refuse from now on what an earlier life has sent; returns what the next one has to know.

        Each life has secrets of its own, so that a request that arrives after the kill of its sender is not
        taken for one of the next life.
        """
        secret = "whsec_" + base64.b64encode(f"secret of the life {life:06}".encode()).decode()
        for hook in self.hooks.values():
            hook.secret = secret
        self.slack.token = f"xoxb-{life:06}"
        for name, receiver in self.all.items():
            # Under its lock: a request that came in with the old secret is counted by now.
            receiver.wait_for(
                lambda name=name, r=receiver: self._begun[name].append(len(r.requests)) is None
            )
        return {"THE_SECRET": secret, "THE_TOKEN": self.slack.token}

    def deliveries(self) -> list[Delivery]:
        """What was taken, oldest first a receiver."""
        found = []
        for name, receiver in self.all.items():
            begun = self._begun[name]
            life = -1
            for index, entry in enumerate(receiver.requests):
                while life + 1 < len(begun) and begun[life + 1] <= index:
                    life += 1
                if entry["accepted"] and entry["key"]:
                    metadata = entry["body"].get("metadata", {}).get("event_payload", {})
                    found += [
                        Delivery(name, key, life, entry["status"] is not None)
                        for key in metadata.get("keys", [entry["key"]])
                    ]
        return found

    @property
    def failed(self) -> int:
        """How many requests were not taken, for whatever reason."""
        entries = [entry for receiver in self.all.values() for entry in receiver.requests]
        return sum(not entry["accepted"] for entry in entries)


class Stage:
    """Logs, receivers and the lives of one daemon's state, in a folder."""

    def __init__(self, folder: Path, runs: int, chance: random.Random, stack: ExitStack) -> None:
        logs = folder / "logs"
        logs.mkdir()
        self.logs = Logs(logs, runs)
        self.receivers = Receivers(stack, chance)
        self.program = Program(folder)
        stack.callback(self.program.end)
        self.program.configure(self.receivers.settings(logs))
        self.noted_in: dict[str, int] = {}
        self.at_points = self.at_random = self.ended_alone = 0
        self._chance = chance
        self._lives = 0

    def see(self) -> None:
        """Let the daemon get to know the runs, and end in order."""
        process = self._start(None)
        if not self.program.known(len(self.logs.paths)) or process.stop() != 0:
            raise AssertionError(f"the daemon doesn't get to know the runs:\n{process.log}")
        self._note()

    def live(self, life: Life) -> None:
        """Start the daemon, let the logs grow, and kill it, or let it be killed."""
        when = self._chance.choice(("before", "starting", "ready"))
        if when == "before":
            self._log(life)
        process = self._start(life.fault)
        if when == "starting":
            time.sleep(self._chance.uniform(0.0, UNTIL_READY_S))
        elif when == "ready":
            process.logged(" ready ", timeout_s=FAULT_PATIENCE_S)
        if when != "before":
            self._log(life)
        if life.point is not None:
            died = wait_until(lambda: not process.running, FAULT_PATIENCE_S)
            if died and process.wait() == KILLED:
                self.at_points += 1
            elif died:
                self.ended_alone += 1
            else:
                process.kill()  # the point wasn't reached, so this doesn't count
        else:
            if self._chance.random() < 0.75:
                process.logged(" ready ", timeout_s=FAULT_PATIENCE_S)
            time.sleep(self._chance.uniform(0.0, UNTIL_READY_S))
            if process.running:
                process.kill()
                self.at_random += 1
            else:
                self.ended_alone += 1
        self._note()

    def finish(self) -> None:
        """Let the daemon live until all is told, and end in order."""
        process = self._start(None)
        count = 2 * len(self.logs.episodes) * len(self.receivers.all)
        query = "SELECT count(*) FROM outbox WHERE state = 'sent'"
        wait_until(lambda: self.program.rows(query)[0][0] >= count, LAST_PATIENCE_S)
        wait_until(lambda: not self.program.status().outbox.get("waiting"), LAST_PATIENCE_S)
        self.ended_alone += process.stop() != 0

    def notices(self) -> list[Notice]:
        """Every notification that the state has."""
        query = "SELECT o.id, o.receiver, o.event, a.alert_json FROM outbox o JOIN alerts a"
        found = []
        for key, receiver, event, text in self.program.rows(query + " ON a.id = o.alert_id"):
            alert = json.loads(text)
            onset = alert["detection"]["onset_step"]
            found.append(Notice(key, receiver, alert["run"]["run"], onset, event))
        return found

    def wrongly_known(self) -> int:
        """Episodes that the state knows and the logs don't have, or the other way round."""
        known = {
            Episode(a["run"]["run"], a["detection"]["onset_step"], a["resolved_step"])
            for a in self.program.alerts()
        }
        return len(known ^ set(self.logs.episodes))

    def miscounted(self) -> int:
        """Runs of which the monitors have judged more or fewer points than their logs have."""
        judged = {run.run.key.run: run.points for run in self.program.status().runs}
        logged = zip(self.logs.paths, self.logs.rows, strict=True)
        return sum(judged.get(path.name) != rows for path, rows in logged)

    def _start(self, fault: str | None) -> Process:
        self.program.env |= self.receivers.begin(self._lives)
        self._lives += 1
        return self.program.start(fault=fault)

    def _log(self, life: Life) -> None:
        for run in life.growing:
            self.logs.grow(run, self._chance.randint(1, 5))
        for turn in life.turns:
            self.logs.turn(turn)

    def _note(self) -> None:
        """Note what the state has as sent, now that nobody writes it.

        A copy is read: who opens the state itself would tidy it up for the next start.
        """
        with tempfile.TemporaryDirectory(dir=self.program.folder) as name:
            for suffix in ("", "-wal"):
                path = Path(self.program.state + suffix)
                if path.exists():
                    shutil.copy(path, Path(name) / path.name)
            with closing(sqlite3.connect(Path(name) / Path(self.program.state).name)) as copy:
                for (key,) in copy.execute("SELECT id FROM outbox WHERE state = 'sent'"):
                    self.noted_in.setdefault(key, self._lives - 1)
