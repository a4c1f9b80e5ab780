from pathlib import Path

import pytest

from tests.support.alertmanager_standin import AlertmanagerStandIn
from tests.support.command_line import CommandLine
from tests.support.pagerduty_standin import ROUTING_KEY, PagerDutyStandIn
from tests.support.slack_standin import CHANNEL, TOKEN, SlackStandIn
from tests.support.smtp import smtp_server
from tests.support.webhook_standin import WebhookStandIn

pytestmark = pytest.mark.integration


def test_a_test_notification_goes_to_every_receiver(
    wtwin_watch: CommandLine, monkeypatch: pytest.MonkeyPatch
):
    with SlackStandIn() as slack, WebhookStandIn() as hook:
        monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
        monkeypatch.setenv("SLACK_API_URL", slack.api_url)

        done = wtwin_watch(
            "test-notify", "--slack-channel", CHANNEL, "--webhook", hook.hook_url, "--json"
        )

        assert (done.code, done.err) == (0, "")
        assert [(o["receiver"], o["delivered"]) for o in done.json] == [
            ("webhook", True),
            ("slack", True),
        ]
        assert hook.types == ["run.alert.test"]
        [message] = slack.messages
        assert "test" in message.title.lower()
        assert message.pings == []
        assert TOKEN not in done.out


def test_a_refusal_is_exit_code_1_with_the_reason(
    wtwin_watch: CommandLine, monkeypatch: pytest.MonkeyPatch
):
    with SlackStandIn() as slack:
        monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
        monkeypatch.setenv("SLACK_API_URL", slack.api_url)

        done = wtwin_watch("test-notify", "--slack-channel", "C0STRANGER")

        assert done.code == 1
        assert "not delivered: " in done.out
        assert slack.messages == []


def test_only_the_receivers_that_are_named_are_told(wtwin_watch: CommandLine, tmp_path: Path):
    with WebhookStandIn() as one, WebhookStandIn() as two:
        config = tmp_path / "config.toml"
        config.write_text(
            "".join(
                f'[[receiver]]\nname = "{name}"\nnotifier = "webhook"\nurl = "{hook.hook_url}"\n'
                for name, hook in (("one", one), ("two", two))
            )
        )

        assert wtwin_watch("test-notify", "two", "--config", config).code == 0
        assert (len(one.deliveries), len(two.deliveries)) == (0, 1)

        done = wtwin_watch("test-notify", "twoo", "--config", config)
        assert done.code == 2
        assert "no receiver is called 'twoo'; did you mean 'two'?" in done.err


def test_without_receivers_the_terminal_is_told(wtwin_watch: CommandLine):
    done = wtwin_watch("test-notify")

    assert done.code == 0
    assert "This is a test; nothing is wrong." in done.out
    assert "terminal  standard output  delivered" in done.out


def test_every_other_kind_can_be_tested_too(
    wtwin_watch: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    with AlertmanagerStandIn() as alertmanager, PagerDutyStandIn() as pager, smtp_server() as mail:
        monkeypatch.setenv("PAGER_KEY", ROUTING_KEY)
        address = "?from=watch@lab.example&to=team@lab.example"
        monkeypatch.setenv("MAIL_URL", f"mailto://127.0.0.1:{mail[0]}/{address}")
        config = tmp_path / "config.toml"
        config.write_text(
            f"""
            [[receiver]]
            notifier = "alertmanager"
            url = "{alertmanager.url}"
            [[receiver]]
            notifier = "pagerduty"
            routing_key = {{ env = "PAGER_KEY" }}
            url = "{pager.enqueue_url}"
            [[receiver]]
            notifier = "apprise"
            url = {{ env = "MAIL_URL" }}
            """
        )

        done = wtwin_watch("test-notify", "--config", config)

        assert done.code == 0, done.out
        assert [labels["alertname"] for labels in alertmanager.firing] == ["WtwinWatchTest"]
        assert list(pager.incidents.values()) == ["resolve"]
        assert [mail["Subject"] for mail in mail[1]] == [
            "Test: this is what an alert looks like (test run)"
        ]
