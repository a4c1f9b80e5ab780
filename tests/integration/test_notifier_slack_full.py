"""Slack with a bot token, against a strict stand-in of its Web API."""

import time
import traceback

import pytest
from pydantic import SecretStr

from tests.support.faulty_http import Fault
from tests.support.notifications import notification
from tests.support.slack_standin import CHANNEL, TOKEN, SlackStandIn
from wtwin_notifiers.deadline import Deadline
from wtwin_notifiers.slack import SlackNotifier, SlackOptions
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event

pytestmark = pytest.mark.integration


@pytest.fixture
def slack():
    with SlackStandIn(message_gap_s=0) as slack:
        yield slack
    assert slack.mistakes == []


def notifier_for(slack, *, token=TOKEN, channel=CHANNEL, **more):
    options = {"token": SecretStr(token), "channel": channel, "api_url": slack.api_url, **more}
    return SlackNotifier("team", SlackOptions(**options))


def failure(notifier, given):
    with pytest.raises(DeliveryError) as caught:
        notifier.send(given)
    return caught.value


def test_an_alert_arrives_once_and_is_edited_once_on_recovery(slack):
    notifier = notifier_for(slack)

    first = notifier.send(notification())
    notifier.send(notification(Event.RESOLVED, previous=first.data))

    assert slack.titles == ["✅ Resolved: loss drifts up (gpt-small-lr3e4)"]
    (message,) = slack.messages
    assert len(message.edits) == 1
    assert [entry["path"] for entry in slack.requests] == [
        "/api/chat.postMessage",
        "/api/chat.update",
    ]


def test_a_change_edits_the_message_and_is_told_in_its_thread(slack):
    notifier = notifier_for(slack)

    first = notifier.send(notification())
    again = notifier.send(notification(Event.CHANGED, previous=first.data))

    assert again == first
    (parent,) = slack.parents
    assert len(parent.edits) == 1
    (reply,) = slack.replies(parent)
    assert reply.text.startswith("🔴 Critical: loss drifts up")


def test_the_receipt_names_channel_and_message(slack):
    receipt = notifier_for(slack).send(notification())

    assert receipt.data == {"channel": CHANNEL, "ts": slack.messages[0].ts}


def test_a_channel_given_by_name_is_edited_by_id(slack):
    notifier = notifier_for(slack, channel="#alerts")

    first = notifier.send(notification())
    notifier.send(notification(Event.RESOLVED, previous=first.data))

    assert first.data["channel"] == CHANNEL
    assert len(slack.messages) == 1


def test_the_message_carries_the_key_and_the_alert(slack):
    notifier_for(slack).send(notification(id="ntf_77"))

    assert slack.messages[0].key == "ntf_77"
    assert slack.messages[0].body["metadata"]["event_payload"]["alert"] == "alr_01"


def test_an_end_whose_beginning_never_arrived_is_one_message_that_says_both(slack):
    receipt = notifier_for(slack).send(notification(Event.RESOLVED))

    (message,) = slack.messages
    context = message.body["blocks"][-1]["elements"][0]["text"]
    assert message.title.startswith("✅ Resolved")
    assert "fired <!date^" in context
    assert "*resolved* <!date^" in context
    assert "no earlier message about it was delivered" in context
    assert receipt.data["ts"] == message.ts


@pytest.mark.parametrize("event", [Event.CHANGED, Event.RESOLVED])
def test_a_message_that_a_person_deleted_is_posted_anew(slack, event):
    notifier = notifier_for(slack)
    first = notifier.send(notification())
    slack.delete(slack.messages[0])

    receipt = notifier.send(notification(event, previous=first.data))

    (message,) = slack.messages
    assert receipt.data["ts"] == message.ts != first.data["ts"]


def test_a_message_too_old_to_edit_is_posted_anew(slack):
    notifier = notifier_for(slack)
    first = notifier.send(notification())
    slack.editable = False

    notifier.send(notification(Event.RESOLVED, previous=first.data))

    assert [title[0] for title in slack.titles] == ["🔴", "✅"]


def test_a_message_in_a_channel_left_since_is_posted_in_the_new_one(slack):
    old = {"channel": "C0ARCHIVED", "ts": "1.000000"}

    notifier_for(slack).send(notification(Event.RESOLVED, previous=old))

    assert [message.channel for message in slack.messages] == [CHANNEL]


@pytest.mark.parametrize(
    "junk", [{}, {"channel": 7, "ts": None}, {"ts": "1.0"}, {"channel": "", "ts": ""}]
)
def test_a_receipt_that_is_not_ours_counts_as_none(slack, junk):
    notifier_for(slack).send(notification(Event.CHANGED, previous=junk))

    assert len(slack.parents) == 1
    assert len(slack.messages) == 1


def test_a_test_is_a_message_of_its_own(slack):
    notifier = notifier_for(slack)
    first = notifier.send(notification())

    notifier.send(notification(Event.TEST, previous=first.data))

    assert [title[0] for title in slack.titles] == ["🔴", "🔔"]


def test_a_retry_after_half_a_change_repeats_nothing_that_was_posted(slack):
    notifier = notifier_for(slack)
    first = notifier.send(notification())
    slack.faults.append(Fault(status=503, path="postMessage"))
    changed = notification(Event.CHANGED, previous=first.data)

    assert not failure(notifier, changed).permanent
    notifier.send(changed)

    (parent,) = slack.parents
    assert len(slack.replies(parent)) == 1
    assert len(slack.messages) == 2


@pytest.mark.parametrize("name", ["<!channel>", "@here", "<@U012AB3CD>", "@channel <!everyone>"])
def test_no_name_pings_anybody(slack, name):
    notifier = notifier_for(slack)

    first = notifier.send(notification(name=name))
    for event in (Event.CHANGED, Event.RESOLVED):
        notifier.send(notification(event, name=name, previous=first.data))

    assert [message.pings for message in slack.messages] == [[], []]


@pytest.mark.parametrize(
    ("channel", "code"),
    [("C0NOWHERE", "channel_not_found"), ("C0ARCHIVED", "is_archived"), ("C0STRANGER", "not_in_channel")],
)  # fmt: skip
def test_a_wrong_channel_is_permanent(slack, channel, code):
    error = failure(notifier_for(slack, channel=channel), notification())

    assert error.permanent
    assert code in str(error)
    assert "receiver.team.channel" in str(error)


def test_a_wrong_token_is_permanent_and_not_shown(slack):
    error = failure(notifier_for(slack, token="xoxb-wrong-one"), notification())

    assert error.permanent
    assert "receiver.team.token" in str(error)
    assert "wrong-one" not in "".join(traceback.format_exception(error))


def test_a_missing_scope_is_permanent_and_named():
    with SlackStandIn(scopes=frozenset({"files:write"})) as slack:
        error = failure(notifier_for(slack), notification())

    assert error.permanent
    assert "it needs chat:write" in str(error)


def test_an_api_that_is_not_slack_s_is_permanent(slack):
    options = SlackOptions(token=SecretStr(TOKEN), channel=CHANNEL, api_url=slack.url + "/other/")

    error = failure(SlackNotifier("team", options), notification())

    assert error.permanent
    assert "receiver.team.api_url" in str(error)


def test_more_than_a_message_a_second_is_held_back():
    with SlackStandIn() as slack:
        notifier = notifier_for(slack)
        notifier.send(notification())

        error = failure(notifier, notification(id="ntf_2"))

        assert not error.permanent
        assert error.retry_after_s == 1.0


def test_a_message_a_second_is_taken():
    with SlackStandIn() as slack:
        notifier = notifier_for(slack)
        for index in range(2):
            notifier.send(notification(id=f"ntf_{index}"))
            time.sleep(notifier.min_interval_s)

    assert len(slack.messages) == 2


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [({"Retry-After": "30"}, 30.0), ({"retry-after": "junk"}, None), ({}, None)],
)
def test_slack_says_how_long_to_wait(slack, header, wait_s):
    slack.faults.append(
        Fault(status=429, headers=header, body='{"ok":false,"error":"ratelimited"}')
    )

    error = failure(notifier_for(slack), notification())

    assert not error.permanent
    assert error.retry_after_s == wait_s


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500),
        Fault(status=503, body="<html>down</html>"),
        Fault(drop=True),
        Fault(truncate=True),
        Fault(html=True),
        Fault(status=200, body="[1]"),
        Fault(status=200, body="null"),
        Fault(status=200, body='"ok"'),
        Fault(status=200, body='{"ok":false,"error":"internal_error"}'),
        Fault(status=200, body='{"ok":false}'),
        Fault(status=200, body='{"ok":false,"error":["xoxb"]}'),
    ],
    ids=str,
)
def test_whatever_goes_wrong_on_the_way_is_tried_again_and_then_arrives(slack, fault):
    notifier = notifier_for(slack)
    slack.faults.append(fault)

    error = failure(notifier, notification())
    assert not error.permanent
    assert TOKEN not in "".join(traceback.format_exception(error))
    assert slack.messages == []

    notifier.send(notification())
    assert len(slack.messages) == 1


def test_one_send_is_one_request_and_never_retried_inside(slack):
    slack.faults.append(Fault(drop=True))

    failure(notifier_for(slack), notification())

    assert len(slack.requests) == 1


def test_an_answer_that_got_lost_is_tried_again_with_the_same_key(slack):
    slack.faults.append(Fault(drop=True, accept=True))
    notifier = notifier_for(slack)

    failure(notifier, notification(id="ntf_5"))
    notifier.send(notification(id="ntf_5"))

    assert [message.key for message in slack.messages] == ["ntf_5", "ntf_5"]


def test_an_accepted_message_without_a_ts_counts_as_delivered(slack):
    slack.faults.append(Fault(status=200, body='{"ok":true}'))

    assert notifier_for(slack).send(notification()).data == {}


def test_slack_down_is_tried_again_and_arrives_when_it_is_up(slack):
    notifier = notifier_for(slack)
    slack.down()

    error = failure(notifier, notification())
    assert not error.permanent
    assert (
        str(error) == f"Slack channel {CHANNEL} at {slack.url} can't be reached: Connection refused"
    )

    slack.up()
    notifier.send(notification())
    assert len(slack.messages) == 1


@pytest.mark.parametrize("fault", [Fault(hang=True), Fault(drip_s=0.02)], ids=["hang", "drip"])
def test_a_slack_that_never_finishes_holds_nobody_up(slack, fault, monkeypatch):
    notifier = notifier_for(slack)
    monkeypatch.setattr(notifier, "_deadline", Deadline("Slack", 0.3))
    slack.faults.append(fault)
    began = time.monotonic()

    error = failure(notifier, notification())

    assert time.monotonic() - began < 5
    assert not error.permanent
    assert "no whole answer" in str(error)


def test_a_slow_slack_is_waited_for(slack):
    slack.faults.append(Fault(delay_s=0.2))

    notifier_for(slack).send(notification())

    assert len(slack.messages) == 1


def test_nothing_of_a_request_is_logged(slack, caplog):
    caplog.set_level(0)
    slack.faults += [Fault(status=500), Fault(drop=True)]
    notifier = notifier_for(slack)

    failure(notifier, notification())
    failure(notifier, notification())
    notifier.send(notification())

    assert caplog.records == []


def test_the_environment_s_proxy_is_used_except_for_hosts_it_leaves_out(slack, monkeypatch):
    with SlackStandIn() as proxy:
        for variable in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(variable, proxy.url)

        monkeypatch.setenv("no_proxy", "127.0.0.1")
        notifier_for(slack).send(notification())
        assert len(slack.messages) == 1
        assert proxy.requests == []

        monkeypatch.setenv("no_proxy", "elsewhere.example")
        failure(notifier_for(slack), notification())
        assert [entry["path"] for entry in proxy.requests] == [slack.api_url + "chat.postMessage"]
