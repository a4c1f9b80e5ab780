"""A receiver that refuses what it is told is reported to the others, once, and so is its recovery."""

import time

import pytest

from tests.support.process import wait_until
from tests.support.records import make_alert, make_checkpoint, make_entry
from wtwin_watch.clock import SystemClock
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import AlertState, Event, Family, Receipt
from wtwin_watch.notify.outbox import Deliverer
from wtwin_watch.notify.refusals import QUIET_S, Refusals
from wtwin_watch.store import Store, database
from wtwin_watch.store.queue import read_outbox
from wtwin_watch.testing import ManualClock

NAMES = ["pager", "slack", "hook"]
REASON = "Slack has no such channel; set receiver.slack.channel"


@pytest.fixture
def store(tmp_path):
    store = Store(database.database_url(str(tmp_path / "state.db")))
    store.claim(time.time())
    yield store
    store.close()


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def refusals(store, clock):
    return Refusals(store, clock, NAMES, told=lambda: None)


def owed(store):
    """What waits in the outbox: (receiver, event, about, text)."""
    entries = read_outbox(store.url.database)
    return sorted((entry.receiver, entry.event, entry.run, entry.summary) for entry in entries)


def test_the_others_are_told_of_a_receiver_that_refuses_and_why(store, refusals):
    refusals.parked("slack", REASON)

    text = (
        f"Notifications don't reach the receiver slack: {REASON}."
        " 'wtwin-watch outbox' lists them and tries them again."
    )
    assert owed(store) == [
        ("hook", "firing", "receiver slack", text),
        ("pager", "firing", "receiver slack", text),
    ]
    [alert] = store.open_alerts(Family.RECEIVER)
    assert (alert.kind, alert.state) == ("undelivered", AlertState.FIRING)


def test_more_that_is_refused_is_no_news(store, refusals):
    for _ in range(3):
        refusals.parked("slack", REASON)

    assert len(owed(store)) == 2


def test_that_it_takes_notifications_again_ends_the_alert_and_is_told(store, refusals):
    refusals.taken("slack")
    refusals.parked("slack", REASON)
    refusals.taken("pager")
    refusals.taken("slack")
    refusals.taken("slack")

    text = "The receiver slack takes notifications again."
    assert [entry for entry in owed(store) if entry[1] == "resolved"] == [
        ("hook", "resolved", "receiver slack", text),
        ("pager", "resolved", "receiver slack", text),
    ]
    assert store.open_alerts(Family.RECEIVER) == []


def test_one_that_refuses_now_and_then_is_reported_once_an_hour(store, refusals, clock):
    for advance in (0.0, QUIET_S - 1, 2.0):
        clock.advance(advance)
        refusals.parked("slack", REASON)
        refusals.taken("slack")

    assert [event for receiver, event, *_ in owed(store) if receiver == "hook"] == [
        *("firing", "firing"),
        *("resolved", "resolved"),
    ]


def test_a_new_start_knows_who_was_in_trouble(store, refusals, clock):
    refusals.parked("slack", REASON)

    again = Refusals(store, clock, NAMES, told=lambda: None)
    again.parked("slack", REASON)
    again.taken("slack")

    assert [event for receiver, event, *_ in owed(store) if receiver == "hook"] == [
        "firing",
        "resolved",
    ]


def test_trouble_ends_with_the_receiver_taken_out_of_the_settings(store, refusals, clock):
    refusals.parked("slack", REASON)
    refusals.parked("hook", "gone")

    Refusals(store, clock, ["pager"], told=lambda: None).leave_others(["pager", "hook"])

    [alert] = store.open_alerts(Family.RECEIVER)
    assert alert.run.source == "receiver hook"
    assert ("pager", "resolved", "receiver slack", "The receiver is no longer configured.") in owed(
        store
    )


def test_where_there_is_no_other_receiver_the_alert_stands_in_the_state(store, clock):
    Refusals(store, clock, ["slack"], told=lambda: None).parked("slack", REASON)

    assert owed(store) == []
    assert len(store.open_alerts(Family.RECEIVER)) == 1


class Receiver:
    """Refuses for good as often as told, then takes everything."""

    min_interval_s = 0.0

    def __init__(self, refuses=0):
        self.refuses = refuses
        self.taken = []

    def send(self, notification):
        if self.refuses:
            self.refuses -= 1
            raise DeliveryError("no such channel", permanent=True)
        self.taken.append(notification)
        return Receipt()

    def describe(self):
        return "a list in memory"

    def close(self):
        pass


def test_an_alert_parked_for_one_receiver_reaches_another_as_a_report_about_it(store):
    broken, well = Receiver(refuses=1), Receiver()
    deliverers = []
    refusals = Refusals(
        store, SystemClock(), ["broken", "well"], lambda: [each.wake() for each in deliverers]
    )
    failures = []
    for name, receiver in (("broken", broken), ("well", well)):
        deliverers.append(
            Deliverer(name, receiver, store, SystemClock(), failures.append, refusals=refusals)
        )
        deliverers[-1].start()
    entries = [make_entry(id_, "broken", alert=make_alert(id_)) for id_ in ("1", "2")]
    for entry in entries:
        store.save([make_checkpoint(entry)], time.time())
        deliverers[0].wake()
        assert wait_until(lambda: store.waiting(["broken"]) == 0)

    assert wait_until(lambda: len(well.taken) == 2)
    for deliverer in deliverers:
        deliverer.stop(20)

    assert [n.event for n in well.taken] == [Event.FIRING, Event.RESOLVED]
    assert well.taken[0].message.title == "Warning: notifications are refused (receiver broken)"
    assert "no such channel" in well.taken[0].message.summary
    assert [n.id for n in broken.taken] == ["2"]
    assert failures == []
