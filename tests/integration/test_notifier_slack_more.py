"""Slack with a bot token: acknowledgements, mentions, many alerts at once, and the plot in the thread."""

from dataclasses import replace

import pytest
from pydantic import SecretStr

from tests.support.faulty_http import Fault
from tests.support.notifications import HOSTILE_NAMES, digest, notification
from tests.support.slack_standin import CHANNEL, TOKEN, SlackStandIn
from wtwin_notifiers.slack import SlackNotifier, SlackOptions
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event, Severity
from wtwin_watch.notify.outbox import MOST_TOGETHER

pytestmark = pytest.mark.integration

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40


@pytest.fixture
def slack():
    with SlackStandIn(message_gap_s=0) as slack:
        yield slack
    assert slack.mistakes == []


def notifier_for(slack, **more):
    options = {"token": SecretStr(TOKEN), "channel": CHANNEL, "api_url": slack.api_url, **more}
    return SlackNotifier("team", SlackOptions(**options))


def graded(severity, event=Event.FIRING, **more):
    given = notification(event, **more)
    return replace(given, alert=replace(given.alert, severity=severity))


def many(count, severity=Severity.WARNING):
    return [
        graded(severity, id=f"ntf_{i}", name=HOSTILE_NAMES[i % len(HOSTILE_NAMES)])
        for i in range(count)
    ]


def test_an_acknowledgement_edits_the_message_and_says_by_whom(slack):
    notifier = notifier_for(slack)

    first = notifier.send(notification())
    again = notifier.send(notification(Event.ACKNOWLEDGED, previous=first.data))

    [message] = slack.messages
    assert message.title == "👀 Acknowledged: loss drifts up (gpt-small-lr3e4)"
    assert "seen by ada <!date^" in message.body["blocks"][-1]["elements"][0]["text"]
    assert again == first


def test_only_the_severities_that_are_set_mention_somebody_and_only_once(slack):
    notifier = notifier_for(slack, mention={"critical": ["here", "U012AB3CD", "S0614TZR7"]})

    receipt = notifier.send(graded(Severity.WARNING))
    assert slack.messages[0].pings == []
    for event in (Event.CHANGED, Event.CHANGED, Event.ACKNOWLEDGED, Event.RESOLVED):
        receipt = notifier.send(graded(Severity.CRITICAL, event, previous=receipt.data))

    parent, became_critical, still_critical = slack.messages
    assert parent.pings == []
    assert became_critical.pings == ["<!here>", "<@U012AB3CD>", "<!subteam^S0614TZR7>"]
    assert still_critical.pings == []

    notifier.send(graded(Severity.CRITICAL))
    assert slack.parents[-1].pings == became_critical.pings


def test_a_test_and_an_end_that_comes_late_mention_nobody(slack):
    notifier = notifier_for(slack, mention={"critical": ["here"]})

    for event in (Event.TEST, Event.RESOLVED):
        notifier.send(notification(event))

    assert [message.pings for message in slack.messages] == [[], []]


@pytest.mark.parametrize("count", [10, 100])
def test_many_alerts_are_one_message_with_the_gravest_first(slack, count):
    given = [*many(count - 1), graded(Severity.CRITICAL, id="ntf_last", name="the gravest")]

    notifier_for(slack, mention={"critical": ["here"]}).send_together(given)

    [message] = slack.messages
    assert message.title == f"🔴 {count} alerts"
    assert message.text.startswith(f"🔴 {count} alerts: 🔴 Critical: loss drifts up (the gravest)")
    assert message.pings == ["<!here>"]
    payload = message.body["metadata"]["event_payload"]
    assert payload["keys"] == [one.id for one in given]


def test_each_of_as_many_alerts_as_share_a_message_is_named_in_it(slack):
    given = [
        graded(Severity.WARNING, id=f"ntf_{i}", name=f"run {i} of {MOST_TOGETHER}")
        for i in range(MOST_TOGETHER)
    ]

    notifier_for(slack).send_together(given)

    [message] = slack.messages
    assert all(f"(run {i} of {MOST_TOGETHER})" in message for i in range(MOST_TOGETHER))


def test_a_notification_that_stands_for_several_alerts_counts_as_many(slack):
    given = many(12)

    notifier_for(slack).send_together([replace(given[0], size=5), *given[1:]])

    assert slack.titles == ["🟠 16 alerts"]


def test_what_becomes_of_alerts_that_share_a_message_is_told_in_its_thread(slack):
    notifier = notifier_for(slack)
    shared = notifier.send_together(many(12))

    for event in (Event.CHANGED, Event.RESOLVED):
        again = notifier.send(notification(event, previous=shared.data))
        assert again.data == shared.data

    [parent] = slack.parents
    assert parent.title == "🟠 12 alerts"
    assert parent.edits == []
    assert [reply.text[0] for reply in slack.replies(parent)] == ["🔴", "✅"]


def test_many_alerts_share_a_message_of_an_incoming_webhook_too(slack):
    options = SlackOptions(webhook=SecretStr(slack.webhook_url))

    SlackNotifier("team", options).send_together(many(30))

    assert slack.titles == ["🟠 30 alerts"]


def test_the_plot_goes_into_the_thread_of_the_alert(slack):
    notifier = notifier_for(slack)
    receipt = notifier.send(notification(name="a <!channel> & more"))

    notifier.illustrate(notification(name="a <!channel> & more"), receipt, PICTURE)

    [file] = slack.files
    assert (file.channel, file.thread_ts) == (CHANNEL, slack.messages[0].ts)
    assert (file.filename, file.content) == ("loss.png", PICTURE)
    assert "<!channel>" not in file.title


@pytest.mark.parametrize("step", ["getUploadURLExternal", "/upload/", "completeUpload"])
@pytest.mark.parametrize("fault", [Fault(status=500), Fault(drop=True)])
def test_a_plot_that_can_not_be_uploaded_costs_nothing_but_itself(slack, step, fault):
    notifier = notifier_for(slack)
    receipt = notifier.send(notification())
    slack.faults.append(replace(fault, path=step))

    with pytest.raises(DeliveryError) as caught:
        notifier.illustrate(notification(), receipt, PICTURE)
    assert (caught.value.permanent, notifier.wants_pictures) == (False, True)
    assert "/upload/" not in str(caught.value)
    notifier.send(notification(Event.RESOLVED, previous=receipt.data))

    assert slack.titles == ["✅ Resolved: loss drifts up (gpt-small-lr3e4)"]


def test_without_the_scope_no_second_upload_is_tried():
    with SlackStandIn(scopes=frozenset({"chat:write"}), message_gap_s=0) as slack:
        notifier = notifier_for(slack)
        receipt = notifier.send(notification())

        with pytest.raises(DeliveryError, match="files:write"):
            notifier.illustrate(notification(), receipt, PICTURE)

    assert not notifier.wants_pictures


def test_an_incoming_webhook_wants_no_plot(slack):
    options = SlackOptions(webhook=SecretStr(slack.webhook_url))

    assert not SlackNotifier("team", options).wants_pictures


@pytest.mark.parametrize("who", ["@ada", "<!here>", "u012ab3cd", "C012AB3CD", ""])
def test_who_is_mentioned_is_named_by_id(who):
    with pytest.raises(ValueError, match="mention"):
        SlackOptions(token=SecretStr(TOKEN), channel=CHANNEL, mention={"critical": [who]})


def test_a_digest_is_a_message_of_its_own_that_mentions_nobody(slack):
    everyone = {severity.value: ["channel"] for severity in Severity}
    notifier = notifier_for(slack, mention=everyone)

    first = notifier.send(digest(id="digest-1"))
    second = notifier.send(digest(id="digest-2"))

    assert [message.title for message in slack.parents] == ["📋 Digest: 1 alert in 12 runs"] * 2
    assert [message.pings for message in slack.messages] == [[], []]
    # Nothing is ever edited because of a digest, so nothing is kept of it.
    assert first.data == second.data == {}
