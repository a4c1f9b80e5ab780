"""Pictures for those who were told of an alert: after the text, best effort, without waiting."""

import threading
import time
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from tests.support.records import RUN, make_alert, make_checkpoint
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event, Message, Notification, Receipt
from wtwin_watch.monitor.curve import Curve
from wtwin_watch.pictures import Pictures
from wtwin_watch.store import Store, database

pytest.importorskip("matplotlib", reason="needs the extra plot")

RECEIPT = Receipt({"ts": "1"})


class Wall:
    """Hangs pictures up; an answer is an error to raise instead."""

    def __init__(self, *answers, wants=True):
        self.answers = list(answers)
        self.wants_pictures = wants
        self.shown = []

    def illustrate(self, notification, receipt, picture):
        assert threading.current_thread().name == "pictures"
        if self.answers:
            raise self.answers.pop(0)
        self.shown.append((notification.id, receipt, picture[:4]))


@pytest.fixture
def store(tmp_path):
    store = Store(database.database_url(str(tmp_path / "state.db")))
    store.claim(time.time())
    curve = Curve()
    curve.add([(float(step), 2.0) for step in range(100)], (), 0.1)
    checkpoint = make_checkpoint()
    record = replace(checkpoint.record, monitor={"curve": curve.snapshot()})
    store.save([replace(checkpoint, record=record)], time.time())
    yield store
    store.close()


def told(id="1", event=Event.FIRING, **more):
    return Notification(id, "team", event, make_alert(), RUN, Message("t", "s"), 0.0, **more)


def shown(store, wall, *notifications):
    pictures = Pictures(store)
    for notification in notifications:
        pictures.sent(wall, notification, RECEIPT)
    pictures.start()
    pictures.stop(60)
    return wall.shown


def test_the_beginning_of_an_alert_is_illustrated_and_nothing_else(store):
    changed, again = told("2", Event.CHANGED), told("3", previous={"ts": "1"})

    assert shown(store, Wall(), told(), changed, again) == [("1", RECEIPT, b"\x89PNG")]


def test_who_wants_no_pictures_gets_none(store):
    assert shown(store, Wall(wants=False), told()) == []
    Pictures(store).sent(object(), told(), RECEIPT)


def test_a_run_of_which_nothing_is_kept_has_no_picture(store):
    store.save([make_checkpoint()], time.time())

    assert shown(store, Wall(), told()) == []


def test_what_goes_wrong_is_told_without_its_text_and_the_next_is_shown(store):
    wall = Wall(ValueError("https://secret"), DeliveryError("no scope"))

    with capture_logs() as logs:
        taken = shown(store, wall, told("1"), told("2"), told("3"))

    assert [id for id, _, _ in taken] == ["3"]
    assert [entry["error"] for entry in logs] == ["ValueError", "no scope"]


def test_more_than_can_wait_are_left_out(store):
    with capture_logs() as logs:
        taken = shown(store, Wall(), *(told(str(i)) for i in range(40)))

    assert len(taken) == 32
    assert len(logs) == 8


def test_without_the_extra_that_is_said_once(store, monkeypatch):
    monkeypatch.setattr("wtwin_watch.pictures.available", lambda: False)

    with capture_logs() as logs:
        assert shown(store, Wall(), told("1"), told("2")) == []

    assert len(logs) == 1
    assert "pip install" in logs[0]["event"]
