"""An alert's life: when it fires, when it waits, when it ends, and what people are told."""

import itertools
from dataclasses import replace

import pytest

from wtwin_watch.alerting import lifecycle
from wtwin_watch.alerting.lifecycle import Policy, Reason
from wtwin_watch.model import (
    Acknowledgement,
    AlertState,
    Detection,
    Event,
    Family,
    RunKey,
    Severity,
)

RUN = RunKey("logs", "a.csv")
DRIFT = Detection(Family.LOSS, "drift", True, Severity.WARNING, "it drifts", "classic", step=100.0)
DRIFT_ENDS = replace(DRIFT, active=False, summary="it is back", step=200.0)
DIVERGES = replace(DRIFT, kind="divergence", severity=Severity.CRITICAL)
NAN = Detection(Family.NONFINITE, "nonfinite", True, Severity.CRITICAL, "NaN", "rule", step=150.0)
NOW = 1000.0
AT_ONCE = Policy(for_s=0.0, cooldown_s=0.0)


class World:
    """Applies detections one after another and remembers what people were told."""

    def __init__(self, policy: Policy = AT_ONCE) -> None:
        self.policy = policy
        self.now = NOW
        self.alerts = {}
        self.reasons = []
        self.told = []
        ids = itertools.count(1)
        self.new_id = lambda: f"alert-{next(ids)}"

    def see(self, *detections, quiet=False):
        self._note(
            lifecycle.step(
                RUN, self.alerts, detections, self.now, self.policy, self.new_id, quiet=quiet
            )
        )

    def wait(self, seconds):
        self.now += seconds
        self._note(lifecycle.advance(self.alerts, self.now, self.policy))

    def backlog_ends(self, old=False):
        self._note(lifecycle.end_of_backlog(self.alerts, self.now, self.policy, old))

    def _note(self, outcome):
        self.alerts, transitions = outcome
        self.reasons += [t.reason for t in transitions]
        self.told += [(t.event, t.alert.id) for t in transitions if t.event]


def test_a_detection_fires_at_once_and_its_end_resolves_the_same_alert():
    world = World()

    world.see(DRIFT)
    world.see(DRIFT_ENDS)

    assert world.told == [(Event.FIRING, "alert-1"), (Event.RESOLVED, "alert-1")]
    alert = world.alerts[Family.LOSS]
    assert (alert.state, alert.resolved_step, alert.outcome) == (
        AlertState.RESOLVED,
        200,
        "it is back",
    )


def test_families_of_one_run_have_alerts_of_their_own():
    world = World()

    world.see(DRIFT, NAN)
    world.see(DRIFT_ENDS)

    assert world.alerts[Family.NONFINITE].state is AlertState.FIRING
    assert world.alerts[Family.LOSS].state is AlertState.RESOLVED


def test_a_kind_that_changes_updates_the_alert_and_tells_once():
    world = World()

    world.see(DRIFT)
    world.see(DIVERGES)
    world.see(DIVERGES)

    assert world.told == [(Event.FIRING, "alert-1"), (Event.CHANGED, "alert-1")]
    assert world.alerts[Family.LOSS].kind == "divergence"
    assert world.alerts[Family.LOSS].severity is Severity.CRITICAL


def test_with_for_an_alert_waits_and_one_that_ends_before_is_never_told():
    world = World(Policy(for_s=30, cooldown_s=0))

    world.see(DRIFT)
    world.wait(29)
    world.see(DRIFT_ENDS)
    world.wait(60)

    assert world.told == []
    assert world.reasons == [Reason.STARTED, Reason.BRIEF]


def test_with_for_an_alert_that_lasts_fires_when_its_time_has_come():
    world = World(Policy(for_s=30, cooldown_s=0))

    world.see(DRIFT)
    world.wait(29.9)
    assert world.told == []
    world.wait(0.2)

    assert world.told == [(Event.FIRING, "alert-1")]


def test_within_the_cooldown_an_alert_that_comes_back_waits_until_the_cooldown_is_over():
    world = World(Policy(for_s=0, cooldown_s=600))
    world.see(DRIFT)
    world.see(DRIFT_ENDS)
    world.wait(100)

    world.see(DRIFT)
    world.wait(499)
    assert world.told[2:] == []
    world.wait(2)

    assert world.told[2:] == [(Event.FIRING, "alert-2")]


def test_a_clock_that_is_set_back_prolongs_no_wait():
    world = World(Policy(for_s=60.0, cooldown_s=600.0))
    world.now = 1e9
    world.see(DRIFT)
    world.wait(-86_400)
    world.wait(60)
    world.see(DRIFT_ENDS)
    assert [event for event, _ in world.told] == [Event.FIRING, Event.RESOLVED]
    world.wait(-86_400)
    world.see(DRIFT)
    world.wait(-86_400)
    world.wait(599)
    assert len(world.told) == 2
    world.wait(1)

    assert [event for event, _ in world.told] == [Event.FIRING, Event.RESOLVED, Event.FIRING]


def test_within_the_cooldown_a_more_severe_alert_fires_at_once():
    world = World(Policy(for_s=0, cooldown_s=600))
    world.see(DRIFT)
    world.see(DRIFT_ENDS)

    world.see(DRIFT)
    world.see(DIVERGES)
    world.wait(0)

    assert world.told[2:] == [(Event.FIRING, "alert-2")]


def test_history_before_first_sight_pages_nobody_and_leaves_no_cooldown():
    world = World(Policy(for_s=0, cooldown_s=600))

    world.see(DRIFT, DRIFT_ENDS, quiet=True)
    world.backlog_ends()
    assert world.told == []
    world.see(DRIFT)

    assert world.told == [(Event.FIRING, "alert-2")]


def test_what_is_wrong_at_the_end_of_the_backlog_is_told():
    world = World()

    world.see(DRIFT, DRIFT_ENDS, NAN, quiet=True)
    world.backlog_ends()

    assert world.told == [(Event.FIRING, "alert-2")]
    assert world.reasons[-1] is Reason.FIRST_SIGHT
    assert not world.alerts[Family.NONFINITE].quiet


def test_a_run_already_old_at_first_sight_pages_nobody_even_when_it_recovers_later():
    world = World()

    world.see(NAN, quiet=True)
    world.backlog_ends(old=True)
    world.see(replace(NAN, active=False))

    assert world.told == []
    assert world.alerts[Family.NONFINITE].state is AlertState.RESOLVED


def test_an_end_without_a_beginning_is_nothing():
    world = World()

    world.see(DRIFT_ENDS)

    assert world.alerts == {}
    assert world.reasons == []


def test_the_fingerprint_is_the_same_for_every_episode_and_differs_between_runs():
    world = World()
    world.see(DRIFT)
    first = world.alerts[Family.LOSS]
    world.see(DRIFT_ENDS)
    world.see(DRIFT)
    second = world.alerts[Family.LOSS]

    assert first.id != second.id
    assert first.fingerprint == second.fingerprint
    assert replace(first, run=RunKey("logs", "b.csv")).fingerprint != first.fingerprint


@pytest.mark.parametrize("family", list(Family))
def test_an_alert_survives_being_stored(family):
    from wtwin_watch.store import codec

    world = World()
    world.see(replace(NAN, family=family, observed=float("nan"), expected=float("-inf")))
    alert = world.alerts[family]

    stored = codec.load_alert(codec.dump_record(alert))

    assert repr(stored) == repr(alert)


# -- acknowledged ----------------------------------------------------------------------------------

SEEN = Acknowledgement("ada", NOW + 1.0, comment="on it")


def seen(world, alert_id, acknowledgement=SEEN):
    world._note(lifecycle.acknowledge(world.alerts, alert_id, acknowledgement, world.now))


def test_an_acknowledgement_changes_nothing_else_and_is_told():
    world = World()
    world.see(DRIFT)
    before = world.alerts[Family.LOSS]

    seen(world, "alert-1")

    assert world.alerts[Family.LOSS] == replace(before, acknowledged=SEEN)
    assert world.told == [(Event.FIRING, "alert-1"), (Event.ACKNOWLEDGED, "alert-1")]
    assert world.reasons[-1] is Reason.ACKNOWLEDGED


def test_the_same_acknowledgement_twice_is_one():
    world = World()
    world.see(DRIFT)
    seen(world, "alert-1")
    seen(world, "alert-1")

    assert world.reasons.count(Reason.ACKNOWLEDGED) == 1


def test_an_acknowledgement_stays_with_an_alert_that_becomes_graver_and_ends_with_it():
    world = World()
    world.see(DRIFT)
    seen(world, "alert-1")
    world.see(DIVERGES)
    assert world.alerts[Family.LOSS].acknowledged == SEEN

    world.see(DRIFT_ENDS)
    world.see(DRIFT)

    assert world.alerts[Family.LOSS].id == "alert-2"
    assert world.alerts[Family.LOSS].acknowledged is None


def test_a_pending_alert_can_be_acknowledged_but_nobody_hears_of_that():
    world = World(Policy(for_s=60.0, cooldown_s=0.0))
    world.see(DRIFT)
    seen(world, "alert-1")
    assert world.told == []

    world.wait(60.0)

    assert world.told == [(Event.FIRING, "alert-1")]
    assert world.alerts[Family.LOSS].acknowledged == SEEN


@pytest.mark.parametrize("quiet", [True, False], ids=["history", "over"])
def test_what_nobody_is_told_of_any_more_cannot_be_acknowledged(quiet):
    world = World()
    world.see(DRIFT, quiet=quiet)
    if not quiet:
        world.see(DRIFT_ENDS)
    before = dict(world.alerts)

    seen(world, "alert-1")
    seen(world, "alert-9")

    assert world.alerts == before
    assert Reason.ACKNOWLEDGED not in world.reasons


def test_an_acknowledgement_that_is_taken_back_is_told_as_well():
    world = World()
    world.see(DRIFT)
    seen(world, "alert-1")
    seen(world, "alert-1", None)

    assert world.alerts[Family.LOSS].acknowledged is None
    assert world.reasons[-1] is Reason.UNACKNOWLEDGED
    assert [event for event, _ in world.told][-2:] == [Event.ACKNOWLEDGED, Event.ACKNOWLEDGED]
