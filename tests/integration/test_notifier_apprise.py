"""Apprise: e-mail against a real server, a service over HTTP, and that nothing of an address is shown."""

import json
import logging

import pytest
from pydantic import SecretStr, ValidationError

from tests.support.faulty_http import Answer, Request, StandIn
from tests.support.notifications import notification
from tests.support.smtp import smtp_server
from wtwin_notifiers.apprise import AppriseNotifier
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event

pytestmark = pytest.mark.integration


class Posts(StandIn):
    """Takes what Apprise's service ``json://`` posts."""

    def answer(self, request: Request) -> Answer:
        return Answer(200)


def notifier_for(url):
    return AppriseNotifier("mail", AppriseNotifier.Options(url=SecretStr(url)))


def mail_to(port):
    return notifier_for(
        f"mailto://127.0.0.1:{port}/?from=watch@lab.example&to=team@lab.example&format=text"
    )


def test_an_alert_arrives_as_mail_that_says_what_and_where():
    with smtp_server() as (port, mails):
        mail_to(port).send(notification())

    [mail] = mails
    assert mail["Subject"] == "Critical: loss drifts up (gpt-small-lr3e4)"
    assert "team@lab.example" in mail["To"]
    text = mail.get_body().get_content()
    assert "loss is 0.31 above what this run's own trend expects" in text
    assert "Observed: 2.81" in text
    assert "https://tracker.example/run/a1?tab=charts&x=1" in text


def test_a_name_can_not_add_headers_to_a_mail():
    with smtp_server() as (port, mails):
        mail_to(port).send(notification(name="a\r\nBcc: all@lab.example\r\n\r\nx"))

    [mail] = mails
    assert mail["Bcc"] is None


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (Event.FIRING, "failure"),
        (Event.ACKNOWLEDGED, "info"),
        (Event.RESOLVED, "success"),
        (Event.TEST, "info"),
        (Event.DIGEST, "info"),
    ],
)
def test_the_type_of_a_message_follows_the_event(event, kind):
    with Posts() as service:
        notifier_for(f"json://127.0.0.1:{service.port}/hush").send(notification(event))

    assert service.requests[0]["body"]["type"] == kind


def test_a_mail_that_can_not_be_delivered_is_tried_again_and_shows_no_address(caplog):
    with smtp_server() as (port, _):
        gone = port
    notifier = notifier_for(
        f"mailto://u:hush@127.0.0.1:{gone}/?from=a@lab.example&to=b@lab.example"
    )

    with caplog.at_level(logging.DEBUG), pytest.raises(DeliveryError) as caught:
        notifier.send(notification())

    assert not caught.value.permanent
    assert "receiver.mail.url" in str(caught.value)
    told = caplog.text + str(caught.value) + notifier.describe() + repr(notifier)
    assert [word for word in ("hush", "lab.example", "127.0.0.1") if word in told] == []


def test_what_apprise_does_not_know_is_refused_without_repeating_it():
    with pytest.raises(ValidationError) as caught:
        AppriseNotifier.Options(url=SecretStr("nonsense://hush"))

    assert "hush" not in json.dumps(caught.value.errors()[0]["msg"])
