"""Slack by an incoming webhook, against a strict stand-in."""

import logging
import traceback

import pytest
from pydantic import SecretStr

from tests.support.faulty_http import Fault
from tests.support.notifications import HOSTILE_NAMES, notification
from tests.support.slack_standin import CHANNEL, WEBHOOK_PATH, SlackStandIn
from wtwin_notifiers.slack import SlackNotifier, SlackOptions
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event

pytestmark = pytest.mark.integration


@pytest.fixture
def slack():
    with SlackStandIn(message_gap_s=0) as slack:
        yield slack
    assert slack.mistakes == []


def notifier_for(slack, url=None):
    return SlackNotifier("team", SlackOptions(webhook=SecretStr(url or slack.webhook_url)))


def failure(notifier, given):
    with pytest.raises(DeliveryError) as caught:
        notifier.send(given)
    shown = "".join(traceback.format_exception(caught.value))
    assert WEBHOOK_PATH not in shown
    return caught.value


def test_every_event_is_a_message(slack):
    notifier = notifier_for(slack)

    for event in (Event.FIRING, Event.CHANGED, Event.RESOLVED):
        assert notifier.send(notification(event)).data == {}

    assert [title[0] for title in slack.titles] == ["🔴", "🔴", "✅"]


def test_an_end_is_not_said_to_be_late(slack):
    notifier_for(slack).send(notification(Event.RESOLVED))

    assert "no earlier message" not in str(slack.messages[0].body)


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_no_name_pings_anybody(slack, name):
    notifier_for(slack).send(notification(name=name))

    assert slack.messages[0].pings == []


def test_a_webhook_that_is_gone_is_permanent(slack):
    error = failure(
        notifier_for(slack, slack.url + "/services/T00000000/B00000000/gone"), notification()
    )

    assert error.permanent
    assert "no_service" in str(error)
    assert "receiver.team.webhook" in str(error)


def test_an_archived_channel_is_permanent(slack):
    slack.channels[CHANNEL].archived = True

    error = failure(notifier_for(slack), notification())

    assert error.permanent
    assert "channel_is_archived" in str(error)


def test_more_than_a_message_a_second_is_held_back():
    with SlackStandIn() as slack:
        notifier = notifier_for(slack)
        notifier.send(notification())

        error = failure(notifier, notification(id="ntf_2"))

        assert not error.permanent
        assert error.retry_after_s == 1.0


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500, body="rollup_error"),
        Fault(status=503),
        Fault(drop=True),
        Fault(truncate=True),
        Fault(html=True),
        Fault(status=200, body="not ok"),
    ],
    ids=str,
)
def test_whatever_goes_wrong_on_the_way_is_tried_again_and_then_arrives(slack, fault):
    notifier = notifier_for(slack)
    slack.faults.append(fault)

    assert not failure(notifier, notification()).permanent
    assert len(slack.requests) == 1
    notifier.send(notification())

    assert len(slack.messages) == 1


def test_slack_down_is_tried_again(slack):
    slack.down()

    error = failure(notifier_for(slack), notification())

    assert not error.permanent
    assert str(error) == f"Slack webhook at {slack.url} can't be reached: Connection refused"


def test_the_address_is_not_logged(slack, caplog):
    caplog.set_level(logging.DEBUG)
    slack.faults.append(Fault(drop=True))
    notifier = notifier_for(slack)

    failure(notifier, notification())
    notifier.send(notification())

    assert caplog.records == []
