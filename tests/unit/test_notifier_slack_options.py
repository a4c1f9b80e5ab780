"""What can be set for Slack, and that mistakes are told without showing secrets."""

import pytest
from pydantic import ValidationError

from wtwin_notifiers.slack import SlackNotifier, SlackOptions

HOOK = "https://hooks.slack.com/services/T000/B000/hushhush"


@pytest.fixture(autouse=True)
def secrets(monkeypatch):
    monkeypatch.setenv("HOOK", HOOK)
    monkeypatch.setenv("TOKEN", "xoxb-hushhush")
    monkeypatch.setenv("PLAIN_HOOK", HOOK.replace("https", "http"))
    monkeypatch.setenv("BROKEN_TOKEN", "xoxb-hush hush")
    monkeypatch.setenv("BROKEN_HOOK", "ftp://hushhush")


def env(name):
    return {"env": name}


def test_a_webhook_alone_is_enough():
    notifier = SlackNotifier("team", SlackOptions(webhook=env("HOOK")))

    assert notifier.describe() == "Slack webhook at https://hooks.slack.com"


def test_a_token_needs_a_channel():
    notifier = SlackNotifier("team", SlackOptions(token=env("TOKEN"), channel="C012AB3CD"))

    assert notifier.describe() == "Slack channel C012AB3CD"


def test_another_api_is_named_in_the_description():
    options = SlackOptions(
        token=env("TOKEN"), channel="C1", api_url="https://slack.gateway.example/api/"
    )

    assert (
        SlackNotifier("team", options).describe()
        == "Slack channel C1 at https://slack.gateway.example"
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "Slack needs webhook, or token and channel"),
        ({"token": env("TOKEN")}, "Slack needs webhook, or token and channel"),
        ({"channel": "C1"}, "Slack needs webhook, or token and channel"),
        ({"webhook": env("HOOK"), "channel": "C1"}, "webhook alone"),
        ({"webhook": env("HOOK"), "token": env("TOKEN"), "channel": "C1"}, "webhook alone"),
        ({"webhook": env("HOOK"), "api_url": "https://x.example/api/"}, "webhook alone"),
        ({"webhook": env("PLAIN_HOOK")}, "use https://"),
        ({"webhook": env("BROKEN_HOOK")}, "a URL starts with https://"),
        ({"webhook": HOOK}, "by reference"),
        ({"token": "xoxb-hushhush", "channel": "C1"}, "by reference"),
        ({"token": env("BROKEN_TOKEN"), "channel": "C1"}, "without spaces"),
        ({"token": env("TOKEN"), "channel": ""}, "at least 1 character"),
        ({"token": env("TOKEN"), "channel": "C1", "api_url": "http://gateway.example"}, "https://"),
        ({"token": env("TOKEN"), "channel": "C1", "api_url": "https://u:p@g.example"}, "no user"),
        ({"token": env("TOKEN"), "channel": "C1", "api_url": "https://g.example:x"}, "not a URL"),
        ({"token": env("TOKEN"), "channel": "C1", "mention": "@here"}, "mention"),
    ],
)
def test_a_mistake_is_told(options, told):
    with pytest.raises(ValidationError) as caught:
        SlackOptions(**options)

    assert told in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"webhook": env("PLAIN_HOOK")},
        {"webhook": env("BROKEN_HOOK")},
        {"webhook": env("HOOK"), "channel": "C1"},
        {"token": env("TOKEN")},
        {"token": env("BROKEN_TOKEN"), "channel": "C1"},
    ],
)
def test_a_mistake_does_not_show_the_secret(options):
    with pytest.raises(ValidationError) as caught:
        SlackOptions(**options)

    assert "hush" not in str(caught.value)
    assert "hush" not in repr(caught.value.errors(include_context=False))


@pytest.mark.parametrize("host", ["127.0.0.1:9", "localhost:9", "[::1]:9", "127.1.2.3"])
def test_plain_http_is_taken_on_this_machine(host):
    options = SlackOptions(token=env("TOKEN"), channel="C1", api_url=f"http://{host}/api/")

    assert options.api_url == f"http://{host}/api/"


def test_neither_options_nor_notifier_show_the_secret():
    options = SlackOptions(webhook=env("HOOK"))

    assert (
        "hush"
        not in repr(options) + repr(SlackNotifier("team", options)) + options.model_dump_json()
    )
