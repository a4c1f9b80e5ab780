"""What can be set for a webhook, and that mistakes are told without showing secrets."""

import base64

import pytest
from pydantic import ValidationError

from wtwin_notifiers.webhook import WebhookNotifier, WebhookOptions

GOOD = "whsec_" + base64.b64encode(b"hush" * 8).decode()
URL = "https://hooks.example/wtwin"


@pytest.fixture(autouse=True)
def secrets(monkeypatch):
    monkeypatch.setenv("NEW", GOOD)
    monkeypatch.setenv("OLD", GOOD)
    monkeypatch.setenv("BAD", "whsec_hushhush")
    monkeypatch.setenv("SECRET_URL", "https://u:hush@hooks.example/x/hush?sig=hush")
    monkeypatch.setenv("BAD_URL", "https://hooks.example/hush hush")


def env(name):
    return {"env": name}


@pytest.mark.parametrize(
    "url", [URL, "http://127.0.0.1:8080/in", "http://alerts.internal:9000/a/b"]
)
def test_a_plain_address_is_taken_as_it_is(url):
    assert WebhookOptions(url=url).url.get_secret_value() == url


@pytest.mark.parametrize(
    "url",
    [
        "https://user:hush@hooks.example/x",
        "https://hush@hooks.example/x",
        "https://hooks.example/x?token=hush",
        "https://hooks.example/x#hush",
        "https://hooks.slack.com/services/T/B/hush",
        "https://HOOKS.slack.com/services/T/B/hush",
        "https://discord.com/api/webhooks/1/hush",
        "https://team.webhook.office.com/webhookb2/hush",
        "https://prod-1.westeurope.logic.azure.com/workflows/hush",
    ],
)
def test_an_address_that_may_hold_a_secret_is_wanted_by_reference(url):
    with pytest.raises(ValidationError, match="by reference") as caught:
        WebhookOptions(url=url)

    told = "\n".join(mistake["msg"] for mistake in caught.value.errors())
    assert "hush" not in told


def test_an_address_by_reference_may_hold_anything_and_is_not_shown():
    options = WebhookOptions(url=env("SECRET_URL"))

    notifier = WebhookNotifier("team", options)

    assert notifier.describe() == "webhook at https://hooks.example"
    assert "hush" not in repr(options) + repr(notifier) + options.model_dump_json()


@pytest.mark.parametrize(
    "url", ["", "hooks.example/x", "ftp://hooks.example", "https://", "https://a b", 7, None, [URL]]
)
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ValidationError):
        WebhookOptions(url=url)


def test_a_wrong_address_by_reference_is_not_shown():
    with pytest.raises(ValidationError, match="without spaces") as caught:
        WebhookOptions(url=env("BAD_URL"))
    assert "hush" not in str(caught.value)


def test_one_secret_or_two_are_taken():
    assert len(WebhookOptions(url=URL).secret) == 0
    assert len(WebhookOptions(url=URL, secret=env("NEW")).secret) == 1
    assert len(WebhookOptions(url=URL, secret=[env("NEW"), env("OLD")]).secret) == 2


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        ([], "one secret, or two"),
        ([env("NEW")] * 3, "one secret, or two"),
        (env("BAD"), "24 to 64 bytes"),
        ([env("NEW"), env("BAD")], "24 to 64 bytes"),
        (GOOD, "by reference"),
        (env("NOT_SET"), "NOT_SET is not set"),
    ],
)
def test_a_wrong_secret_is_told(secret, told):
    with pytest.raises(ValidationError, match=told) as caught:
        WebhookOptions(url=URL, secret=secret)

    assert "hushhush" not in str([mistake["msg"] for mistake in caught.value.errors()])
