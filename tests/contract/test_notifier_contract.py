"""Every notifier of the package keeps to the contract, against the stand-in of what it sends to."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points

import pytest
from pydantic import SecretStr

from tests.support.alertmanager_standin import AlertmanagerHookStandIn, AlertmanagerStandIn
from tests.support.notifier_contract import check_notifier, check_notifier_plugin
from tests.support.pagerduty_standin import ROUTING_KEY, PagerDutyStandIn
from tests.support.slack_standin import CHANNEL, TOKEN, WEBHOOK_PATH, SlackStandIn
from tests.support.smtp import smtp_server
from tests.support.webhook_standin import WebhookStandIn
from wtwin_notifiers.alertmanager import AlertmanagerNotifier
from wtwin_notifiers.apprise import AppriseNotifier
from wtwin_notifiers.pagerduty import PagerDutyNotifier
from wtwin_notifiers.slack import SlackNotifier, SlackOptions
from wtwin_notifiers.terminal import TerminalNotifier, TerminalOptions
from wtwin_notifiers.webhook import WebhookNotifier

PLUGINS = entry_points(group="wtwin_watch.notifiers")


@pytest.fixture
def slack() -> Iterator[SlackStandIn]:
    with SlackStandIn(message_gap_s=0, updates_a_minute=1000) as slack:
        yield slack
    assert slack.mistakes == []
    assert [message.pings for message in slack.messages if message.pings] == []


@pytest.mark.integration
def test_slack_with_a_token_keeps_the_contract(slack):
    options = SlackOptions(token=SecretStr(TOKEN), channel=CHANNEL, api_url=slack.api_url)

    check_notifier(SlackNotifier("team", options), secrets=[TOKEN])

    assert slack.messages


@pytest.mark.integration
def test_slack_with_a_webhook_keeps_the_contract(slack):
    options = SlackOptions(webhook=SecretStr(slack.webhook_url))

    check_notifier(SlackNotifier("team", options), secrets=[WEBHOOK_PATH])

    assert slack.messages


@pytest.mark.integration
def test_a_webhook_keeps_the_contract():
    with WebhookStandIn() as receiver:
        options = WebhookNotifier.Options(url=receiver.hook_url)

        check_notifier(WebhookNotifier("team", options), secrets=["/hook"])

    assert receiver.types


@pytest.mark.integration
def test_a_webhook_in_the_format_of_alertmanager_keeps_the_contract():
    with AlertmanagerHookStandIn() as receiver:
        options = WebhookNotifier.Options(url=receiver.url, format="alertmanager")

        check_notifier(WebhookNotifier("team", options), digests=False)

    assert receiver.mistakes == []
    assert receiver.payloads


@pytest.mark.integration
def test_alertmanager_keeps_the_contract():
    with AlertmanagerStandIn(token="t-SeSaMe") as receiver:
        options = AlertmanagerNotifier.Options(url=receiver.url, token=SecretStr("t-SeSaMe"))

        check_notifier(AlertmanagerNotifier("team", options), secrets=["SeSaMe"], digests=False)

    assert receiver.mistakes == []
    assert {labels["alertname"] for labels in receiver.firing} == {"WtwinWatchTest"}


@pytest.mark.integration
def test_pagerduty_keeps_the_contract():
    with PagerDutyStandIn() as receiver:
        options = PagerDutyNotifier.Options(
            routing_key=SecretStr(ROUTING_KEY), url=receiver.enqueue_url
        )

        check_notifier(PagerDutyNotifier("team", options), secrets=[ROUTING_KEY], digests=False)

    assert receiver.mistakes == []
    assert set(receiver.incidents.values()) == {"resolve"}


@pytest.mark.integration
def test_apprise_keeps_the_contract():
    with smtp_server() as (port, mails):
        url = f"mailto://127.0.0.1:{port}/?from=watch@lab.example&to=team@lab.example&name=SeSaMe"

        check_notifier(
            AppriseNotifier("team", AppriseNotifier.Options(url=SecretStr(url))),
            secrets=["SeSaMe", "lab.example"],
        )

    assert mails


def test_the_terminal_keeps_the_contract(capsys):
    check_notifier(TerminalNotifier("team", TerminalOptions()))

    assert capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(PLUGINS.names))
def test_a_plugin_names_its_options(name):
    check_notifier_plugin(PLUGINS[name].load())


def test_no_notifier_loads_its_client_before_it_is_needed():
    code = (
        "import sys; from importlib.metadata import entry_points;"
        "[plugin.load() for plugin in entry_points(group='wtwin_watch.notifiers')];"
        "print(sorted({'apprise', 'slack_sdk', 'urllib3'} & set(sys.modules)))"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "[]"
