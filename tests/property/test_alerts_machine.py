"""The whole way from a point to the outbox under points, outages, time, people and crashes.

The invariants are those of docs/alerts.md; each is checked after every step, in the database.
"""

import itertools
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.memory import PLAN, World
from wtwin_watch.alerting.lifecycle import Policy
from wtwin_watch.alerting.matching import parse
from wtwin_watch.alerting.telling import Timing, everybody
from wtwin_watch.store import Verb, codec, requests, silences

RUNS = ("a", "b", "c")
RECEIVERS = ("team", "pager")
TIMING = Timing(wait_s=5.0, interval_s=60.0, window_s=120.0, repeat_s=3_600.0)
LOOK = PLAN.interval_s + 0.5
"""Seconds after which every run was looked at again."""
SAFE = 20.0
"""Seconds after which all that waits for others has been told."""


class Alerts(RuleBasedStateMachine):
    """Plays with a real engine, dispatcher and store; only the source is in memory."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="alerts-machine-"))
        self.world = World(
            self.folder,
            Policy(for_s=0.0, cooldown_s=30.0),
            RECEIVERS,
            telling=everybody(*RECEIVERS, timing=TIMING),
        )
        self.broken = dict.fromkeys(RUNS, False)
        self.silent_until = dict.fromkeys(RUNS, 0.0)
        for run in RUNS:
            self.world.source.log(run, [2.0] * 10)
        self.world.settle()

    def teardown(self):
        self.world.engine.close()
        self.world.store.close()
        shutil.rmtree(self.folder)

    # -- what happens ----------------------------------------------------------------------------

    @rule(run=st.sampled_from(RUNS))
    def goes_wrong(self, run):
        self.world.source.log(run, [float("nan")] * 2)
        self.broken[run] = True
        self.settle()

    @rule(run=st.sampled_from(RUNS))
    def gets_well(self, run):
        self.world.source.log(run, [2.0] * 64)
        self.broken[run] = False
        self.settle()

    @rule(seconds=st.sampled_from([1.0, 10.0, 90.0, 900.0, 4_000.0]))
    def time_passes(self, seconds):
        for _ in range(3):
            self.settle(seconds / 3.0)

    @rule()
    def source_goes_down(self):
        self.world.source.down = "no route to host"
        self.settle(90.0)

    @rule()
    def source_comes_back(self):
        self.world.source.down = None
        self.settle(90.0)

    @rule(run=st.sampled_from(RUNS), lasts=st.sampled_from([30.0, 2_000.0]))
    def is_silenced(self, run, lasts):
        now = self.world.clock.now
        silences.add(
            self.world.url.database,
            parse(f"run={run}"),
            starts_at=now,
            ends_at=now + lasts,
            author="sam",
            comment="maintenance",
            now=now,
        )
        self.settle()
        self.silent_until[run] = max(self.silent_until[run], now + lasts)

    @precondition(lambda self: self.firing())
    @rule(choice=st.integers(0, 100))
    def is_acknowledged(self, choice):
        firing = self.firing()
        id_ = firing[choice % len(firing)].id
        now = self.world.clock.now
        requests.ask(self.world.url.database, Verb.ACKNOWLEDGE, [id_], by="sam", now=now)
        self.settle()

    @rule()
    def is_killed(self):
        self.world.kill()
        self.world.start()
        self.settle()

    @rule()
    def is_restarted(self):
        self.world.restart()
        self.settle()

    @rule()
    def clock_is_set_back(self):
        self.world.clock.now -= 5.0
        self.settle(5.0 + LOOK)

    def settle(self, seconds=LOOK):
        self.world.settle(max(seconds, LOOK))

    # -- what holds ------------------------------------------------------------------------------

    def rows(self, query):
        with sqlite3.connect(self.world.url.database) as connection:
            return connection.execute(query).fetchall()

    def alerts(self):
        return [codec.load_alert(text) for (text,) in self.rows("SELECT alert_json FROM alerts")]

    def firing(self):
        return [a for a in self.alerts() if a.state == "firing" and not a.quiet]

    def told(self):
        """(receiver, lead's id) → events in their order, and the alerts that each was about."""
        found = {}
        query = "SELECT receiver, alert_id, event, body_json, created_at FROM outbox ORDER BY seq"
        for receiver, id_, event, body, at in self.rows(query):
            about = [id_, *(other["alert"]["id"] for other in codec.loads(body).get("others", []))]
            found.setdefault((receiver, id_), []).append((event, about, at))
        return found

    @invariant()
    def one_open_alert_a_run_and_family(self):
        open_ = [(a.run, a.family) for a in self.alerts() if a.open]
        assert len(open_) == len(set(open_))

    @invariant()
    def every_thread_begins_once_and_says_nothing_after_its_end(self):
        for events in self.told().values():
            names = [event for event, _, _ in events]
            assert names[0] == "firing"
            assert names.count("firing") == 1
            assert "resolved" not in names[:-1]

    @invariant()
    def nan_resolves_nothing(self):
        wrong = {a.run.run for a in self.alerts() if a.family == "nonfinite" and a.open}
        if self.world.source.down is None:
            assert wrong == {run for run, broken in self.broken.items() if broken}

    @invariant()
    def nobody_hears_first_of_what_is_silenced(self):
        runs = {a.id: a.run.run for a in self.alerts()}
        begun = {}
        for row in self.rows("SELECT matchers, starts_at, ends_at FROM silences"):
            begun.setdefault(row[0].removeprefix("run="), []).append(row[1:])
        for events in self.told().values():
            _, (lead, *_), at = events[0]
            # A second of grace: the daemon looks for silences twice a second.
            assert not any(start + 1.0 < at < end - 6.0 for start, end in begun.get(runs[lead], []))

    @invariant()
    def who_heard_of_an_alert_hears_its_end(self):
        open_ = {a.id for a in self.alerts() if a.open}
        for events in self.told().values():
            over = not any(id_ in open_ for _, about, _ in events for id_ in about)
            if over:
                assert events[-1][0] == "resolved"

    @invariant()
    def what_fires_and_is_not_held_back_is_told_to_everybody_in_time(self):
        held = {id_ for (id_,) in self.rows("SELECT id FROM groups WHERE receiver = ''")}
        heard = {
            (receiver, id_)
            for (receiver, _), events in self.told().items()
            for _, about, _ in events
            for id_ in about
        }
        now = self.world.clock.now
        for alert in self.firing():
            # Who joins a group that was told of is told of at its next interval.
            if alert.id in held or now - alert.fired_at < TIMING.interval_s + SAFE:
                continue
            if self.silent_until.get(alert.run.run, 0.0) + SAFE + TIMING.interval_s > now:
                continue
            for receiver in RECEIVERS:
                assert (receiver, alert.id) in heard

    @invariant()
    def what_was_seen_is_not_repeated(self):
        for events in self.told().values():
            names = [event for event, about, _ in events if len(about) == 1]
            for before, after in itertools.pairwise(names):
                assert (before, after) != ("acknowledged", "repeated")


TestAlerts = Alerts.TestCase
TestAlerts.settings = settings(
    max_examples=int(os.environ.get("EX", "4")),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
