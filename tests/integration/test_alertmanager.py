"""Alerts at a genuine Alertmanager, and what it makes of them."""

from dataclasses import replace
from datetime import datetime

import pytest

from tests.support.alertmanager import PROGRAM, Alertmanager
from tests.support.alertmanager_standin import AlertmanagerHookStandIn
from tests.support.notifications import notification
from tests.support.process import wait_until
from wtwin_notifiers import alertmanager as pushing
from wtwin_notifiers.alertmanager import AlertmanagerNotifier
from wtwin_notifiers.webhook import WebhookNotifier
from wtwin_watch.model import Event, Severity

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        PROGRAM is None,
        reason="needs the program alertmanager, of Debian's package prometheus-alertmanager",
    ),
]


@pytest.fixture
def hook():
    with AlertmanagerHookStandIn() as hook:
        yield hook


@pytest.fixture
def genuine(tmp_path, hook):
    with Alertmanager(tmp_path, hook.url) as genuine:
        yield genuine


def notifier_for(genuine):
    return AlertmanagerNotifier("team", AlertmanagerNotifier.Options(url=genuine.url))


def comparable(payload):
    """A payload but for whose it is, with times as times."""
    alerts = [
        alert | {"startsAt": datetime.fromisoformat(alert["startsAt"])}
        for alert in payload["alerts"]
    ]
    return payload | {
        "alerts": alerts,
        "externalURL": "",
        "groupKey": payload["groupKey"].replace(" ", ""),
    }


def told(hook):
    """The status of what the Alertmanager told its receiver, each once in a row."""
    return [payload["status"] for payload in hook.payloads]


def test_an_alert_is_shown_firing_and_resolved(genuine, hook):
    notifier = notifier_for(genuine)

    receipt = notifier.send(notification())

    assert wait_until(lambda: told(hook) == ["firing"]), hook.requests
    [alert] = genuine.alerts()
    assert alert["labels"] == {
        "alertname": "TrainingLossAboveTrend",
        "severity": "critical",
        "family": "loss",
        "source": "cluster",
        "run": "a1",
        "run_name": "gpt-small-lr3e4",
        "project": "llm",
    }
    assert alert["annotations"]["summary"] == "Critical: loss drifts up (gpt-small-lr3e4)"
    assert alert["status"]["state"] == "active"

    notifier.send(notification(Event.RESOLVED, previous=receipt.data))

    assert wait_until(lambda: told(hook) == ["firing", "resolved"]), hook.requests
    assert genuine.alerts() == []


def test_an_alert_that_grows_graver_fires_under_its_new_severity_alone(genuine, hook):
    notifier = notifier_for(genuine)
    mild = notification()
    mild = replace(mild, alert=replace(mild.alert, severity=Severity.WARNING))

    receipt = notifier.send(mild)
    notifier.send(notification(Event.CHANGED, previous=receipt.data))

    assert wait_until(
        lambda: [alert["labels"]["severity"] for alert in genuine.alerts()] == ["critical"]
    )


def test_what_is_told_again_lasts_longer_and_stays_one_alert(genuine, monkeypatch):
    notifier = notifier_for(genuine)
    firing = notification()
    firing = replace(firing, previous=dict(notifier.send(firing).data))
    [before] = genuine.alerts()
    monkeypatch.setattr(pushing, "LASTS_S", 2 * pushing.LASTS_S)

    notifier.renew([firing])

    [after] = genuine.alerts()
    assert after["fingerprint"] == before["fingerprint"]
    assert after["startsAt"] == before["startsAt"]
    assert after["endsAt"] > before["endsAt"]


def test_what_nobody_tells_again_ends_by_itself(genuine, hook, monkeypatch):
    monkeypatch.setattr(pushing, "LASTS_S", 2.0)

    notifier_for(genuine).send(notification())

    assert wait_until(lambda: told(hook)[-1:] == ["resolved"] or not genuine.alerts())


def test_our_webhook_in_its_format_posts_what_it_posts_itself(genuine, hook):
    link = "https://tracker.example/run/a1"
    notifier_for(genuine).send(notification(url=link))
    assert wait_until(lambda: hook.payloads)

    options = WebhookNotifier.Options(url=hook.url, format="alertmanager")
    WebhookNotifier("hook", options).send(replace(notification(url=link), receiver="hook"))

    theirs, ours = map(comparable, hook.payloads)
    assert ours == theirs
    assert hook.mistakes == []


def test_a_name_of_any_kind_is_taken(genuine):
    name = '"quoted" \\ back {brace} <!channel> 🔥\nline two'

    notifier_for(genuine).send(notification(name=name))

    [alert] = genuine.alerts()
    assert alert["labels"]["run_name"] == '"quoted" \\ back {brace} <!channel> 🔥 line two'
