"""The watcher is killed at every point on a point's way: nothing is lost, nothing counts twice."""

import os
import random
import time
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import pytest

from tests.support.log_writer import LogWriter
from tests.support.process import KILLED, Program, wait_until
from tests.support.slack_standin import CHANNEL, TOKEN, SlackStandIn
from tests.support.training import FINITE_TO_RECOVER, NAN, healthy
from wtwin_watch.errors import SnapshotError
from wtwin_watch.monitor.packing import unpack

pytestmark = pytest.mark.e2e
LOGS = ("csv", "tensorboard")
EARLY = 40


class Jobs:
    """Two training jobs, one logging a CSV and one event files, and Slack, which hears of both."""

    def __init__(self, program: Program, stack: ExitStack, gap_s: float) -> None:
        self.program = program
        self.slack = stack.enter_context(SlackStandIn(message_gap_s=gap_s))
        places = {"csv": program.folder / "job" / "log.csv", "tensorboard": program.folder / "tb"}
        self.writers = {kind: stack.enter_context(LogWriter(kind, places[kind])) for kind in LOGS}
        for kind in LOGS:
            program.args += [f"--{kind}", str(places[kind])]
        program.args += ["--slack-channel", CHANNEL]
        program.env |= {"SLACK_BOT_TOKEN": TOKEN, "SLACK_API_URL": self.slack.api_url}

    def write(self, losses: list[float]) -> None:
        for writer in self.writers.values():
            writer.write(losses)

    def accepted(self) -> list[tuple[str, str, float]]:
        """What Slack took: (method, idempotency key, time), in order."""
        return [
            (entry["path"].removeprefix("/api/chat."), entry["key"], entry["time"])
            for entry in self.slack.requests
            if entry["accepted"] and entry["key"]
        ]

    def told(self, event: str, count: int) -> bool:
        """Wait until the state says that ``count`` notifications of ``event`` are delivered."""
        query = f"SELECT count(*) FROM outbox WHERE state = 'sent' AND event = '{event}'"
        return bool(wait_until(lambda: self.program.rows(query) == [(count,)]))

    def delivered(self) -> bool:
        """Wait until nothing waits in the outbox."""
        return bool(wait_until(lambda: not self.program.status().outbox.get("waiting")))

    def counted(self) -> dict[str, int]:
        """How many points the monitors have judged, and the status says the same."""
        monitors = self.program.monitors()
        counted = {source: monitor["points"] for source, monitor in monitors.items()}
        assert counted == {source: run.points for source, run in self.program.runs().items()}
        return counted

    def written(self) -> dict[str, int]:
        """How many rows the jobs have logged."""
        return {kind: writer.written for kind, writer in self.writers.items()}


@pytest.fixture
def jobs(program):
    with ExitStack() as stack:
        yield Jobs(program, stack, gap_s=0.2)


# Where the process dies while the alert is told, where while its end is, and which deliveries are then
# made twice: only those whose answer was lost.
FAULT_POINTS = {
    "after a fetch": (f"after-fetch:{len(LOGS) + 1}", f"after-fetch:{len(LOGS) + 1}", set()),
    "before the commit": ("before-commit:firing", "before-commit:resolved", set()),
    "after the commit": ("after-commit:firing", "after-commit:resolved", set()),
    "before the send": ("before-send:firing", "before-send:resolved", set()),
    "after the send": ("after-send:firing", "after-send:resolved", {"postMessage", "update"}),
    "after the mark": ("after-mark:firing", "after-mark:resolved", set()),
}


@pytest.mark.parametrize("point", FAULT_POINTS)
def test_killed_at_a_fault_point_it_tells_each_alert_once_and_counts_each_point_once(
    jobs, point, record_property
):
    at_alert, at_recovery, repeated = FAULT_POINTS[point]
    jobs.write(healthy(EARLY))

    first = jobs.program.start(fault=at_alert)
    assert jobs.program.known(len(LOGS))
    jobs.write(NAN)
    assert first.wait() == KILLED, first.log
    second = jobs.program.start(fault=at_recovery)
    assert jobs.told("firing", len(LOGS)), second.log
    jobs.write(healthy(FINITE_TO_RECOVER + 6, start=EARLY + len(NAN)))
    assert second.wait() == KILLED, second.log
    third = jobs.program.start().ready()
    assert jobs.told("resolved", len(LOGS)), third.log
    assert third.stop() == 0

    methods = Counter(method for method, _, _ in jobs.accepted())
    keys = Counter((method, key) for method, key, _ in jobs.accepted())
    twice = Counter(method for (method, _), count in keys.items() if count > 1)
    record_property(
        "counted",
        f"killed {point}, twice: {len(keys)} notifications, {methods.total()} deliveries,"
        f" {twice.total()} of these repeated",
    )
    assert jobs.counted() == jobs.written() == dict.fromkeys(LOGS, EARLY + 2 + 70)
    assert len([key for method, key in keys if method == "postMessage"]) == len(LOGS)
    assert len([key for method, key in keys if method == "update"]) == len(LOGS)
    assert twice == Counter(dict.fromkeys(repeated, 1))
    assert max(keys.values()) <= 2
    resolved = [message for message in jobs.slack.parents if message.edits]
    assert len(resolved) == len(LOGS)
    assert all("Resolved" in message.title for message in resolved)
    assert jobs.slack.mistakes == []


KILLS = 20
SEED = int(os.environ.get("WTWIN_WATCH_TEST_SEED", "20"))
KNOWN = 200
DRIFT = [*healthy(60, start=600, level=4.0), *healthy(60, start=660)]
EPISODE = [*healthy(40, start=720), *NAN, *healthy(80, start=760)]
EPISODES = 8
EACH_S = 0.03
SOON_S = 2.0
"""A notification is marked as sent at once; this is much for a busy machine."""


def story(program: Program) -> list[tuple[str, str, float, float | None]]:
    """Every alert there was: where, about what, since which step, until which."""
    return sorted(
        (
            alert["run"]["source"],
            alert["family"],
            alert["detection"]["onset_step"],
            alert["resolved_step"],
        )
        for alert in program.alerts()
    )


def leaves(state: Any, place: str = "") -> dict[str, Any]:
    """What is in a monitor's state, numbers unpacked. Storing it builds its sums anew, which rounds them."""
    if isinstance(state, dict | list):
        pairs = state.items() if isinstance(state, dict) else enumerate(state)
        return {k: v for key, one in pairs for k, v in leaves(one, f"{place}.{key}").items()}
    if isinstance(state, str):
        try:
            return {place: unpack(state)}
        except SnapshotError:
            pass
    return {place: state}


def test_killed_at_twenty_random_moments_it_ends_where_an_undisturbed_watcher_does(
    jobs, tmp_path_factory, record_property
):
    chance = random.Random(SEED)
    # What is over before it was told is told to nobody; here all is told at once.
    jobs.program.configure('[alerts]\ncooldown = "0s"\ngroup_wait = "0s"\n')
    jobs.write(healthy(KNOWN))
    jobs.program.start()
    assert jobs.program.known(len(LOGS))

    for writer in jobs.writers.values():
        writer.begin(DRIFT + EPISODE * EPISODES, EACH_S)
    killed_at = []
    for _ in range(KILLS):
        if chance.random() < 0.75:
            jobs.program.processes[-1].ready()
        time.sleep(chance.uniform(0.0, 1.5))
        jobs.program.processes[-1].kill()
        killed_at.append(time.time())
        jobs.program.start()
    jobs.program.processes[-1].ready()
    for writer in jobs.writers.values():
        writer.finish()
    nan_episodes = [
        (kind, "nonfinite", float(nan_at), float(nan_at + len(NAN) + FINITE_TO_RECOVER - 1))
        for kind in LOGS
        for nan_at in range(KNOWN + len(DRIFT) + 40, jobs.writers[kind].written, len(EPISODE))
    ]
    wait_until(
        lambda: [alert for alert in story(jobs.program) if "nonfinite" in alert] == nan_episodes
    )
    assert jobs.delivered()
    assert jobs.program.processes[-1].stop() == 0

    undisturbed = Program(
        tmp_path_factory.mktemp("undisturbed"), jobs.program.args[: 2 * len(LOGS)]
    )
    assert undisturbed.once().wait() == 0
    told = [alert["id"] for alert in jobs.program.alerts() if not alert["quiet"]]
    keys = jobs.program.rows("SELECT id, alert_id, event FROM outbox WHERE state = 'sent'")
    deliveries = jobs.accepted()
    # A turn for the worse edits the alert's message, and is posted below it besides.
    times: dict[tuple[str, str], list[float]] = {}
    for method, key, at in deliveries:
        times.setdefault((method, key), []).append(at)
    record_property(
        "counted",
        f"seed {SEED}: {KILLS} kills, {len(told)} alerts, {len(keys)} notifications,"
        f" {len(deliveries)} deliveries, {len(deliveries) - len(times)} of these repeated",
    )
    assert jobs.counted() == jobs.written()
    known, expected = leaves(jobs.program.monitors()), leaves(undisturbed.monitors())
    assert known.keys() == expected.keys()
    for place, value in expected.items():
        close = isinstance(value, float | list)
        wanted = pytest.approx(value, rel=1e-6, abs=1e-6, nan_ok=True) if close else value
        assert known[place] == wanted, place
    assert story(jobs.program) == story(undisturbed)
    assert [alert for alert in story(jobs.program) if alert[1] == "nonfinite"] == nan_episodes
    assert {alert[1] for alert in story(jobs.program)} == {"loss", "nonfinite"}
    # Besides, an alert that turned out worse is told so.
    ends = [(alert, event) for _, alert, event in keys if event != "changed"]
    assert sorted(ends) == sorted(
        (alert, event) for alert in told for event in ("firing", "resolved")
    )
    assert {key for _, key in times} == {key for key, _, _ in keys}
    for earlier, later in [pair for at in times.values() for pair in pairwise(at)]:
        assert any(earlier < kill < min(later, earlier + SOON_S) for kill in killed_at)
    assert len([message for message in jobs.slack.parents if "Resolved" in message.title]) == len(
        told
    )
