"""PagerDuty: one incident an alert, and what its answers mean."""

from dataclasses import replace

import pytest
from pydantic import SecretStr, ValidationError

from tests.support.faulty_http import Fault
from tests.support.notifications import notification
from tests.support.pagerduty_standin import ROUTING_KEY, PagerDutyStandIn
from wtwin_notifiers.pagerduty import PagerDutyNotifier, event
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event, Message, Severity

pytestmark = pytest.mark.integration


@pytest.fixture
def service():
    with PagerDutyStandIn() as service:
        yield service


def notifier_for(service, key=ROUTING_KEY):
    options = PagerDutyNotifier.Options(routing_key=SecretStr(key), url=service.enqueue_url)
    return PagerDutyNotifier("night", options)


def test_an_alert_is_one_incident_from_trigger_to_resolve(service):
    notifier = notifier_for(service)

    for told in (Event.FIRING, Event.CHANGED, Event.ACKNOWLEDGED, Event.RESOLVED):
        notifier.send(notification(told))

    assert [e["event_action"] for e in service.events] == [
        "trigger", "trigger", "acknowledge", "resolve",
    ]  # fmt: skip
    assert {e["dedup_key"] for e in service.events} == {"alr_01"}
    assert service.events[0]["payload"] == {
        "summary": "Critical: loss drifts up (gpt-small-lr3e4)",
        "source": "cluster/a1",
        "severity": "critical",
        "timestamp": "2025-10-09T08:54:20.000Z",
        "component": "gpt-small-lr3e4",
        "group": "llm",
        "class": "drift",
        "custom_details": {
            "summary": "loss is 0.31 above what this run's own trend expects",
            "Run": "gpt-small-lr3e4",
            "Observed": "2.81",
            "Expected": "2.5",
        },
    }


def test_an_acknowledgement_that_was_taken_back_triggers_the_incident_again(service):
    told = notification(Event.ACKNOWLEDGED)
    taken_back = replace(told, alert=replace(told.alert, acknowledged=None))

    notifier_for(service).send(taken_back)

    assert [e["event_action"] for e in service.events] == ["trigger"]


def test_a_test_leaves_no_incident_open(service):
    notifier_for(service).send(notification(Event.TEST))

    assert service.incidents == {"alr_01": "resolve"}


@pytest.mark.parametrize("severity", Severity)
def test_severities_are_pagerduty_s(severity):
    given = notification()
    given = replace(given, alert=replace(given.alert, severity=severity))

    assert event(given, "trigger")["payload"]["severity"] == severity.value


def test_long_texts_are_cut_to_its_limits():
    given = notification(message=Message("t" * 5000, "s" * 5000, (("f" * 500, "v" * 5000),)))
    given = replace(given, alert=replace(given.alert, id="i" * 400))

    told = event(given, "trigger")

    assert len(told["payload"]["summary"]) == 1024
    assert len(told["dedup_key"]) == 255
    assert max(map(len, told["payload"]["custom_details"].values())) == 2000


def test_an_event_it_refuses_is_never_sent_again(service):
    with pytest.raises(DeliveryError) as caught:
        notifier_for(service, key="another-key").send(notification())

    assert caught.value.permanent
    assert "receiver.night.routing_key" in str(caught.value)
    assert "another-key" not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "wait_s"),
    [
        (Fault(status=429, headers={"Retry-After": "7"}), 7.0),
        (Fault(status=500), None),
        (Fault(status=503), None),
        (Fault(drop=True), None),
    ],
    ids=["429", "500", "503", "dropped"],
)
def test_what_may_pass_is_tried_again(service, fault, wait_s):
    service.faults.append(fault)
    notifier = notifier_for(service)

    with pytest.raises(DeliveryError) as caught:
        notifier.send(notification())
    notifier.send(notification())

    assert (caught.value.permanent, caught.value.retry_after_s) == (False, wait_s)
    assert service.incidents == {"alr_01": "trigger"}


@pytest.mark.parametrize(
    "given",
    [
        {"routing_key": SecretStr("two words")},
        {"url": "http://events.pagerduty.com/v2/enqueue"},
        {"url": "https://events.pagerduty.com/v2/enqueue?key=hush"},
    ],
)
def test_options_that_can_not_be_are_refused_without_repeating_them(given):
    with pytest.raises(ValidationError) as caught:
        PagerDutyNotifier.Options(**{"routing_key": SecretStr(ROUTING_KEY), **given})

    assert "hush" not in caught.value.errors()[0]["msg"]
