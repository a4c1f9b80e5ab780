"""The outbox: what is owed is delivered, in order, once, and a receiver in trouble is left alone a while."""

import itertools
import threading
import time
from dataclasses import replace

import pytest
import structlog

from tests.support.process import wait_until
from tests.support.records import make_alert, make_checkpoint, make_entry
from wtwin_watch.clock import SystemClock
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import AlertState, Event, Family, Receipt, Run, RunKey
from wtwin_watch.notify.outbox import DAY_S, MOST_TOGETHER, OUTAGE, Deliverer, Retry, after_failure
from wtwin_watch.store import Store, database, read_status


class Receiver:
    """Takes notifications after the scripted answers are used up; an answer is an error or a receipt."""

    min_interval_s = 0.0

    def __init__(self, *answers):
        self.answers = list(answers)
        self.taken = []
        self.tries = []
        self.news = threading.Condition()

    def send(self, notification):
        with self.news:
            self.tries.append(notification)
            answer = self.answers.pop(0) if self.answers else Receipt()
            if isinstance(answer, Exception):
                raise answer
            self.taken.append(notification)
            self.news.notify_all()
            return answer

    def wait_for(self, count, seconds=20):
        with self.news:
            assert self.news.wait_for(lambda: len(self.taken) >= count, seconds), self.tries

    def describe(self):
        return "a list in memory"

    def close(self):
        pass


@pytest.fixture
def store(tmp_path):
    store = Store(database.database_url(str(tmp_path / "state.db")))
    store.claim(time.time())
    yield store
    store.close()


@pytest.fixture
def deliver(store):
    """Start delivering to a receiver; returns the deliverer."""
    started = []

    def start(receiver, name="oncall"):
        failures = []
        deliverer = Deliverer(name, receiver, store, SystemClock(), failures.append)
        deliverer.failures = failures
        deliverer.start()
        started.append(deliverer)
        return deliverer

    yield start
    for deliverer in started:
        deliverer.stop(5)
        assert deliverer.failures == []


def owe(store, *entries):
    store.save([make_checkpoint(*entries)], time.time())


def test_what_is_owed_is_delivered_once_with_words_and_a_stable_key(store, deliver):
    owe(store, make_entry("key-1"))
    receiver = Receiver()

    deliver(receiver)
    receiver.wait_for(1)
    time.sleep(0.3)

    (notification,) = receiver.taken
    assert notification.id == "key-1"
    assert notification.event is Event.FIRING
    assert "loss drifts up" in notification.message.title
    assert read_status(store.url.database, time.time()).outbox == {"sent": 1}


def test_a_failed_delivery_is_tried_again_with_the_same_key_and_counted(store, deliver):
    owe(store, make_entry("key-1"))
    receiver = Receiver(
        DeliveryError("busy", retry_after_s=0.05), DeliveryError("busy", retry_after_s=0.05)
    )

    deliver(receiver)
    receiver.wait_for(1)

    assert [n.id for n in receiver.tries] == ["key-1"] * 3
    assert [n.attempt for n in receiver.tries] == [1, 2, 3]


def test_events_of_one_alert_arrive_in_their_order_despite_failures(store, deliver):
    alert = make_alert()
    owe(
        store,
        make_entry("1", alert=alert),
        make_entry("2", alert=alert, event=Event.CHANGED),
        make_entry("3", alert=alert, event=Event.RESOLVED),
    )
    receiver = Receiver(DeliveryError("busy", retry_after_s=0.05))

    deliver(receiver)
    receiver.wait_for(3)

    assert [n.id for n in receiver.taken] == ["1", "2", "3"]


def test_the_receipt_of_the_first_message_comes_with_the_later_ones(store, deliver):
    owe(store, make_entry("1"), make_entry("2", event=Event.RESOLVED))
    receiver = Receiver(Receipt({"ts": "17.1"}))

    deliver(receiver)
    receiver.wait_for(2)

    assert receiver.taken[0].previous is None
    assert receiver.taken[1].previous == {"ts": "17.1"}


def test_a_permanent_failure_is_parked_with_its_reason_and_the_rest_goes_on(store, deliver):
    owe(store, make_entry("1", alert=make_alert("a")), make_entry("2", alert=make_alert("b")))
    receiver = Receiver(
        DeliveryError("no such channel; set receiver.oncall.channel", permanent=True)
    )

    deliver(receiver)
    receiver.wait_for(1)

    assert [n.id for n in receiver.taken] == ["2"]
    (undelivered,) = read_status(store.url.database, time.time()).undelivered
    assert undelivered == ("oncall", "parked", 1, "no such channel; set receiver.oncall.channel")


def test_an_unexpected_error_of_a_notifier_is_tried_again_and_its_text_kept_out(store, deliver):
    owe(store, make_entry("1"))
    receiver = Receiver(ValueError("https://hooks.example/secret"))

    deliver(receiver)
    receiver.wait_for(1)
    deadline = time.monotonic() + 10
    while store.waiting(["oncall"]) and time.monotonic() < deadline:
        time.sleep(0.02)

    assert len(receiver.tries) == 2
    assert read_status(store.url.database, time.time()).undelivered == ()


def test_a_receiver_that_hangs_delays_no_other(store, deliver):
    owe(store, *(make_entry(f"s{i}", "stuck", alert=make_alert(f"a{i}")) for i in range(20)))
    owe(store, make_entry("1", "oncall"))
    release = threading.Event()

    class Stuck(Receiver):
        def send(self, notification):
            release.wait(20)
            return super().send(notification)

    stuck = deliver(Stuck(), "stuck")
    receiver = Receiver()
    deliver(receiver)

    receiver.wait_for(1, seconds=5)
    release.set()
    stuck.wake()


def test_what_comes_later_is_delivered_when_the_deliverer_is_woken(store, deliver):
    receiver = Receiver()
    deliverer = deliver(receiver)
    time.sleep(0.1)

    owe(store, make_entry("1"))
    deliverer.wake()

    receiver.wait_for(1, seconds=5)


def test_two_sends_are_as_far_apart_as_the_notifier_asks(store, deliver):
    owe(store, *(make_entry(str(i), alert=make_alert(f"a{i}")) for i in range(3)))
    times = []

    class Slow(Receiver):
        min_interval_s = 0.2

        def send(self, notification):
            times.append(time.monotonic())
            return super().send(notification)

    receiver = Slow()
    deliver(receiver)
    receiver.wait_for(3)

    assert min(b - a for a, b in itertools.pairwise(times)) >= 0.2


NEVER_LUCKY = 0.0
DOWN = DeliveryError("down")


def test_delays_double_from_two_seconds_to_ten_minutes():
    delays = [after_failure(DOWN, n, 1, 0, NEVER_LUCKY).delay_s for n in (1, 2, 3, 17, 90)]

    assert delays == [2, 4, 8, 600, 600]


def test_after_a_day_delays_go_on_growing_up_to_a_day():
    ages = (DAY_S, DAY_S + 600, DAY_S + 1200, DAY_S + 7200, 2 * DAY_S, 3 * DAY_S)

    delays = [after_failure(DOWN, 200, 1, age, NEVER_LUCKY).delay_s for age in ages]

    assert delays == [600, 600, 1200, 7200, DAY_S, DAY_S]


def test_jitter_takes_up_to_half_away():
    retry = after_failure(DOWN, 3, 3, 0, 0.999999)

    assert 4 < retry.delay_s < 4.1


def test_retry_after_is_believed_up_to_a_day_and_holds_the_whole_receiver():
    def asked(wait_s):
        return after_failure(DeliveryError("429", retry_after_s=wait_s), 5, 5, 0, 0.5)

    assert asked(33) == Retry(33, 33)
    assert asked(1e9) == Retry(DAY_S, DAY_S)
    assert asked(-5) == Retry(0, 0)


def test_a_receiver_in_trouble_is_tried_again_within_a_minute_with_something_else():
    assert after_failure(DOWN, 12, 12, 0, NEVER_LUCKY) == Retry(600, 60)


def test_a_receiver_that_is_down_is_asked_no_more_often_because_much_waits_for_it():
    assert after_failure(DOWN, 1, 4, 0, NEVER_LUCKY) == Retry(2, 16)


def test_a_notification_that_alone_fails_holds_the_others_up_for_seconds():
    assert after_failure(DOWN, 12, 1, 0, NEVER_LUCKY) == Retry(600, 2)


def test_trying_ends_after_three_days():
    assert after_failure(DOWN, 10, 10, 3 * DAY_S + 1, NEVER_LUCKY) is None


def test_what_lay_while_the_daemon_was_off_is_not_given_up_at_the_first_failure():
    assert after_failure(DOWN, 1, 1, 3 * DAY_S + 1, NEVER_LUCKY) == Retry(2, 2)


def test_a_receiver_that_is_back_hears_at_once_all_that_waited_for_it(store, deliver):
    owe(store, *firing("a", "b", "c"))
    for entry in firing("a", "b"):
        store.mark_failed(replace(entry, attempts=40), "down", time.time() + 3600)
    receiver = Receiver(*[DeliveryError("down", retry_after_s=0.0)] * OUTAGE)

    deliver(receiver)
    receiver.wait_for(3)

    assert sorted(n.id for n in receiver.taken) == ["a", "b", "c"]


def test_a_single_failure_is_no_outage_and_hastens_nothing(store, deliver):
    owe(store, *firing("a", "b", "c"))
    [entry] = firing("a")
    store.mark_failed(replace(entry, attempts=40), "down", time.time() + 3600)
    receiver = Receiver(DeliveryError("down", retry_after_s=0.0))

    deliver(receiver)
    receiver.wait_for(2)
    assert wait_until(lambda: read_status(store.url.database, time.time()).outbox["sent"] == 2)

    assert store.due(["oncall"], time.time()) == 0
    assert store.waiting(["oncall"]) == 1


def test_what_a_receiver_fails_with_is_said_once_until_it_changes_or_is_over(store, deliver):
    owe(store, *firing("a", "b", "c"))
    busy, gone = (DeliveryError(text, retry_after_s=0.0) for text in ("busy", "gone"))
    receiver = Receiver(busy, busy, gone, gone)

    with structlog.testing.capture_logs() as logs:
        deliver(receiver)
        receiver.wait_for(3)
        assert wait_until(lambda: store.waiting(["oncall"]) == 0)

    said = [(log["event"], log.get("error") or log.get("failures")) for log in logs]
    assert [line for line in said if line[0] != "notification sent"] == [
        ("notification not delivered, trying again", "busy"),
        ("notification not delivered, trying again", "gone"),
        ("receiver takes notifications again", 4),
    ]


class Forgetful(Receiver):
    """Is to be reminded of what fires; `reminders` holds the runs and receipts of each time."""

    renew_every_s = 0.05

    def __init__(self, *answers, fails=0):
        super().__init__(*answers)
        self.reminders = []
        self.fails = fails

    def renew(self, firing):
        with self.news:
            self.reminders.append([(n.run.name, n.previous) for n in firing])
            self.news.notify_all()
            if len(self.reminders) <= self.fails:
                raise DeliveryError("forgot")

    def wait_for_reminder(self, wanted, seconds=20):
        with self.news:
            assert self.news.wait_for(lambda: self.reminders[-1:] == [wanted], seconds), (
                self.reminders
            )


def test_a_receiver_that_forgets_is_reminded_of_what_fires_until_it_is_over(store, deliver):
    alert = make_alert()
    store.save([make_checkpoint(make_entry("1", alert=alert), alert=alert)], time.time())
    receiver = Forgetful(Receipt({"labels": "those"}), fails=2)

    deliverer = deliver(receiver)
    receiver.wait_for_reminder([("a", {"labels": "those"})])

    over = make_alert(state=AlertState.RESOLVED, resolved_at=2000.0)
    entry = make_entry("2", alert=over, event=Event.RESOLVED)
    store.save([make_checkpoint(entry, alert=over)], time.time())
    deliverer.wake()
    receiver.wait_for(2)
    receiver.wait_for_reminder([])


def test_what_a_receiver_was_not_told_it_is_not_reminded_of(store, deliver):
    told, waiting = make_alert("told"), make_alert("waiting", family=Family.STATE)
    store.save([make_checkpoint(make_entry("1", alert=told), alert=told)], time.time())
    store.save([make_checkpoint(make_entry("2", alert=waiting), alert=waiting)], time.time())
    receiver = Forgetful(Receipt({"key": 1}), DeliveryError("busy", retry_after_s=3600.0))

    deliver(receiver)
    receiver.wait_for_reminder([("a", {"key": 1})])

    assert all(len(reminder) < 2 for reminder in receiver.reminders)


class Slow(Receiver):
    """Tells of three alerts and more in one message; ``together`` holds the keys of each such message."""

    together_from = 3

    def __init__(self, *answers):
        super().__init__(*answers)
        self.together = []

    def send_together(self, notifications):
        with self.news:
            self.together.append(sorted(n.id for n in notifications))
            answer = self.answers.pop(0) if self.answers else Receipt({"shared": True})
            if isinstance(answer, Exception):
                raise answer
            self.taken += notifications
            self.news.notify_all()
            return answer


def firing(*names):
    """Alerts of runs of these names, each told by a notification of its name."""
    entries = []
    for name in names:
        run = Run(RunKey("logs", name), name)
        entries.append(make_entry(name, alert=make_alert(name, run=run), run=run))
    return entries


def test_alerts_that_wait_in_a_crowd_are_told_in_one_message(store, deliver):
    owe(store, *firing("a", "b", "c", "d"))
    receiver = Slow(DeliveryError("busy", retry_after_s=0.05))

    deliverer = deliver(receiver)
    receiver.wait_for(4)

    assert receiver.together == [["a", "b", "c", "d"]] * 2
    assert receiver.tries == []
    assert wait_until(lambda: store.receipt("oncall", "c")) == {"shared": True}

    [entry] = firing("a")
    over = replace(entry.alert, state=AlertState.RESOLVED)
    owe(store, replace(entry, id="over", alert=over, event=Event.RESOLVED))
    deliverer.wake()
    receiver.wait_for(5)
    assert receiver.tries[0].previous == {"shared": True}


def test_a_crowd_that_is_too_large_for_one_message_is_told_in_several(store, deliver):
    names = [f"{i:02}" for i in range(MOST_TOGETHER + 5)]
    owe(store, *firing(*names))
    receiver = Slow()

    deliver(receiver)
    receiver.wait_for(len(names))

    assert receiver.together == [names[:MOST_TOGETHER], names[MOST_TOGETHER:]]


def test_few_alerts_and_other_events_are_told_one_by_one(store, deliver):
    alert = make_alert("a")
    changes = [make_entry(f"change-{i}", alert=alert, event=Event.CHANGED) for i in range(4)]
    owe(store, *firing("b", "c"), *changes)
    receiver = Slow()

    deliver(receiver)
    receiver.wait_for(6)

    assert receiver.together == []


def test_who_listens_hears_of_each_notification_that_was_sent(store):
    owe(store, make_entry("1"))
    heard = []
    receiver = Receiver(DeliveryError("busy", retry_after_s=0.0), Receipt({"ts": "1"}))
    deliverer = Deliverer(
        "oncall", receiver, store, SystemClock(), [].append,
        lambda notifier, told, receipt: heard.append((notifier, told.id, receipt)),
    )  # fmt: skip
    deliverer.start()
    receiver.wait_for(1)
    deliverer.stop(20)

    assert heard == [(receiver, "1", Receipt({"ts": "1"}))]
