"""Digests from the state to the outbox: what they are about, and that each is made once."""

from dataclasses import replace
from datetime import time

import pytest
import sqlalchemy as sa

from tests.support.records import make_alert, make_checkpoint
from wtwin_watch.alerting.digest import Digest, Schedule, last_period
from wtwin_watch.alerting.lifecycle import Reason, Transition
from wtwin_watch.alerting.telling import Choice
from wtwin_watch.model import AlertState, Event, Run, RunKey
from wtwin_watch.notify.periodic import Digests
from wtwin_watch.store import Checkpoint, SourceRecord, database, tables

DAY = 86_400.0
MIDNIGHT = 20_000 * DAY
NIGHTLY = Digest("team", Schedule("day", time(0)))
RUN = Run(RunKey("logs", "a.csv"), "a")


def fired(id_, begun, ended=None, **changes):
    alert = make_alert(id_, started_at=begun, fired_at=begun, **changes)
    if ended is None:
        return alert
    return replace(alert, state=AlertState.RESOLVED, resolved_at=ended)


def facts(store, start=MIDNIGHT - DAY, end=MIDNIGHT):
    return store.facts(start, end)


def ids(store):
    return [alert.id for alert, _ in facts(store).alerts]


def watch(store, run=RUN, *, first_seen_at=MIDNIGHT - 9 * DAY, saved_at=MIDNIGHT - 60, **record):
    checkpoint = make_checkpoint(run=run)
    changed = replace(checkpoint.record, first_seen_at=first_seen_at, **record)
    store.save([Checkpoint(record=changed)], saved_at)


def tell(store, alert, *, at=None):
    when = alert.started_at if at is None else at
    store.save([Checkpoint(transitions=[Transition(alert, Reason.STARTED, when)])], MIDNIGHT)


def decide(state_path, alert_id, choice, at, receiver="team"):
    engine = sa.create_engine(database.database_url(str(state_path)))
    values = {"alert_id": alert_id, "at": at, "receiver": receiver, "decision": choice.value}
    with engine.begin() as connection:
        connection.execute(sa.insert(tables.decisions).values(**values, text=""))
    engine.dispose()


def test_the_alerts_of_a_day_are_those_that_fired_in_it_or_fired_still(store):
    watch(store)
    tell(store, fired("in it", MIDNIGHT - 5000, MIDNIGHT - 4000))
    tell(store, fired("from before", MIDNIGHT - DAY - 50, MIDNIGHT - DAY + 50), at=MIDNIGHT - 100)
    tell(store, fired("for long", MIDNIGHT - 3 * DAY))
    tell(store, fired("over before", MIDNIGHT - 2 * DAY, MIDNIGHT - DAY - 1), at=MIDNIGHT - DAY - 1)
    tell(store, fired("after it", MIDNIGHT + 10))
    tell(store, fired("history", MIDNIGHT - 500, quiet=True))
    pending = make_alert(
        "pending", state=AlertState.PENDING, started_at=MIDNIGHT - 9, fired_at=None
    )
    tell(store, pending)

    assert ids(store) == ["for long", "from before", "in it"]


def test_alerts_are_named_after_their_run_or_source(store):
    watch(store)
    source = Run(RunKey("logs", ""), "logs")
    gone = Run(RunKey("logs", "gone.csv"), "gone")
    for number, run in enumerate((RUN, source, gone)):
        tell(store, fired(str(number), MIDNIGHT - 5000 + number, run=run))

    assert [name for _, name in facts(store).alerts] == ["a", "logs", "gone.csv"]


def test_the_runs_of_a_day_are_those_that_were_watched_in_it(store):
    def run(name):
        return Run(RunKey("logs", name), name)

    watch(store, run("moved"))
    watch(store, run("new"), first_seen_at=MIDNIGHT - 100)
    watch(store, run("waiting"), saved_at=MIDNIGHT - 3 * DAY)
    watch(store, run("ended today"), resting=True)
    watch(store, run("ended long ago"), saved_at=MIDNIGHT - 3 * DAY, resting=True)
    watch(store, run("gone long ago"), saved_at=MIDNIGHT - 3 * DAY, gone_since=1.0)
    watch(store, run("later"), first_seen_at=MIDNIGHT + 1, saved_at=MIDNIGHT + 1)

    assert (facts(store).runs, facts(store).new_runs) == (4, 1)


def test_alerts_of_which_people_were_not_told_are_counted_once_a_reason(store, state_path):
    for alert_id, choice, at in [
        ("1", Choice.SILENCED, -10),
        ("1", Choice.SILENCED, -5),
        ("2", Choice.SILENCED, -5),
        ("3", Choice.BELOW, -5),
        ("4", Choice.BRIEF, -5),
        ("5", Choice.TOLD, -5),
        ("6", Choice.SILENCED, 0),
        ("7", Choice.SILENCED, -DAY - 1),
    ]:
        decide(state_path, alert_id, choice, MIDNIGHT + at)

    assert facts(store).held == {Choice.SILENCED: 2, Choice.BELOW: 1, Choice.BRIEF: 1}


def test_alerts_that_nobody_was_told_of_are_known_with_the_last_reason(store, state_path):
    for alert_id in ("1", "2", "3", "4"):
        tell(store, fired(alert_id, MIDNIGHT - 500))
    for alert_id, choice in [
        ("1", Choice.SILENCED),
        ("1", Choice.INHIBITED),
        ("2", Choice.SILENCED),
        ("2", Choice.RELEASED),
        ("2", Choice.TOLD),
        ("3", Choice.BELOW),
        ("3", Choice.GROUPED),
    ]:
        decide(state_path, alert_id, choice, MIDNIGHT - 400)

    assert facts(store).untold == {"1": Choice.INHIBITED}


def test_sources_that_cannot_be_read_are_named(store):
    store.save_source(SourceRecord("logs", "csv", seen_at=1.0))
    store.save_source(SourceRecord("wandb", "wandb", error="no route", down_since=5.0))

    assert facts(store).down == ("wandb",)


@pytest.fixture
def turns(store):
    """Turns of a daemon that was started at some time."""

    def started(at, *digests):
        made = Digests(store, digests or [NIGHTLY], started_at=at)
        return made.turn

    return started


def waiting(store, receiver="team"):
    entry = store.next_notification(receiver)
    return None if entry is None else (entry.event, entry.message.title, entry.alert.started_at)


def test_a_digest_is_made_when_its_time_comes(store, turns):
    watch(store, first_seen_at=MIDNIGHT - 100)
    turn = turns(MIDNIGHT - 200)

    assert turn(MIDNIGHT - 1) is False
    assert waiting(store) is None
    assert turn(MIDNIGHT) is True
    assert waiting(store) == (Event.DIGEST, "Digest: 0 alerts in 1 run", MIDNIGHT - DAY)


def test_a_digest_is_made_once_also_by_daemons_started_later(store, turns):
    watch(store)

    made = [turns(MIDNIGHT + at)(MIDNIGHT + at) for at in (1, 2, 3)]
    turn = turns(MIDNIGHT - 5)
    made += [turn(MIDNIGHT + 4), turn(MIDNIGHT + 5)]

    assert made == [True, False, False, False, False]
    assert store.waiting(["team"]) == 1


def test_a_digest_that_fell_into_a_pause_is_made_late_the_latest_alone(store, turns):
    watch(store)

    assert turns(MIDNIGHT + 5 * DAY + 3600)(MIDNIGHT + 5 * DAY + 3600) is True
    assert store.waiting(["team"]) == 1
    assert waiting(store)[2] == MIDNIGHT + 4 * DAY


def test_at_the_very_first_start_there_is_no_digest_of_the_time_before(store, turns):
    turn = turns(MIDNIGHT + 3600)
    assert turn(MIDNIGHT + 3600) is False
    watch(store, first_seen_at=MIDNIGHT + 3601)
    assert turn(MIDNIGHT + 3700) is False

    assert turn(MIDNIGHT + DAY) is True


def test_a_day_without_any_run_has_its_digest(store, turns):
    assert turns(MIDNIGHT - 100)(MIDNIGHT + 1) is True

    message = store.next_notification("team").message
    assert message.summary == "No alert fired.\nNo run was watched in this time."


def test_each_receiver_and_schedule_has_a_digest_of_its_own(store, turns):
    watch(store)
    weekly = Digest("team", Schedule("week", time(0)))
    other = Digest("other", Schedule("day", time(0)))

    turn = turns(MIDNIGHT, NIGHTLY, weekly, other)

    assert (turn(MIDNIGHT + 1), turn(MIDNIGHT + 1)) == (True, False)
    assert (store.waiting(["team"]), store.waiting(["other"])) == (2, 1)


def test_a_clock_that_is_set_back_makes_no_digest_twice(store, turns):
    watch(store)
    turn = turns(MIDNIGHT)

    made = [turn(MIDNIGHT + at) for at in (10.0, -10.0, 20.0)]

    # The day before yesterday's, which no daemon had made, is the latest that is over at 23:59:50.
    assert made == [True, True, False]


def test_the_words_of_a_digest_come_out_of_the_outbox_as_they_went_in(store, turns):
    watch(store)
    tell(store, fired("1", MIDNIGHT - 7200, MIDNIGHT - 3600))
    turns(MIDNIGHT)(MIDNIGHT + 1)

    message = store.next_notification("team").message

    assert message.summary == "warning: loss drifts up (a), 1h, over"
    period = last_period(NIGHTLY.schedule, MIDNIGHT + 1)
    assert (period.start, period.end) == (MIDNIGHT - DAY, MIDNIGHT)
    assert dict(message.facts)["Runs watched"] == "1, 0 of them new"
