"""A delivery ends in time, whatever it waits for."""

import threading
import time

import pytest

from wtwin_notifiers.deadline import SEND_TIMEOUT_S, Deadline
from wtwin_watch.errors import DeliveryError


def test_a_delivery_in_time_returns_what_it_returns():
    assert Deadline("there").run(lambda: 42) == 42


def test_a_delivery_in_time_raises_what_it_raises():
    def refuse():
        raise DeliveryError("no", permanent=True)

    with pytest.raises(DeliveryError, match=r"^no$") as caught:
        Deadline("there").run(refuse)
    assert caught.value.permanent


def test_a_delivery_that_takes_too_long_is_given_up_and_can_be_tried_again():
    release = threading.Event()
    began = time.monotonic()

    with pytest.raises(DeliveryError, match=r"there: no whole answer within 0\.05 s") as caught:
        Deadline("there", 0.05).run(release.wait)
    release.set()

    assert time.monotonic() - began < 5
    assert not caught.value.permanent


def test_deliveries_that_hang_for_ever_do_not_gather():
    release = threading.Event()
    deadline = Deadline("nowhere", 0.01)

    for _ in range(20):
        with pytest.raises(DeliveryError):
            deadline.run(release.wait)
    gathered = [t for t in threading.enumerate() if t.name == "deliver to nowhere"]
    with pytest.raises(DeliveryError, match="4 earlier deliveries still hang"):
        deadline.run(lambda: 1)
    release.set()

    assert len(gathered) == 4


def test_once_the_hanging_ones_end_deliveries_go_on():
    release = threading.Event()
    deadline = Deadline("there", 0.01)
    for _ in range(4):
        with pytest.raises(DeliveryError):
            deadline.run(release.wait)

    release.set()
    ends = time.monotonic() + 5
    while any(t.name == "deliver to there" for t in threading.enumerate()):
        assert time.monotonic() < ends
        time.sleep(0.01)

    assert Deadline("there", 5).run(lambda: 1) == 1
    assert deadline.run(lambda: 1) == 1


def test_a_delivery_has_less_than_the_half_minute_of_the_contract():
    assert SEND_TIMEOUT_S < 30
