"""Webhooks over a real connection, received with the reference library of Standard Webhooks."""

import base64
import json
import socket
import threading
import time
import traceback

import pytest
from pydantic import SecretStr

from tests.support.faulty_http import Fault
from tests.support.notifications import HOSTILE_NAMES, notification
from tests.support.webhook_standin import WebhookStandIn
from wtwin_notifiers.deadline import Deadline
from wtwin_notifiers.webhook import WebhookNotifier, WebhookOptions
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event

pytestmark = pytest.mark.integration

NEW = "whsec_" + base64.b64encode(b"n" * 32).decode()
OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()


@pytest.fixture
def receiver():
    with WebhookStandIn(secret=NEW) as receiver:
        yield receiver


def notifier_for(receiver, *secrets, path="/hook"):
    secrets = secrets or (NEW,)
    options = WebhookOptions(
        url=receiver.url + path, secret=[SecretStr(secret) for secret in secrets]
    )
    return WebhookNotifier("ops", options)


def failure(notifier, given):
    with pytest.raises(DeliveryError) as caught:
        notifier.send(given)
    return caught.value


def test_the_life_of_an_alert_arrives_signed(receiver):
    notifier = notifier_for(receiver)

    for event in (Event.FIRING, Event.CHANGED, Event.RESOLVED):
        assert notifier.send(notification(event, id=f"ntf_{event}")).data == {}

    assert receiver.types == ["run.alert.firing", "run.alert.changed", "run.alert.resolved"]
    assert receiver.deliveries[0].headers["user-agent"] == "wtwin-watch"


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_any_name_arrives_signed(receiver, name):
    notifier_for(receiver).send(notification(name=name))

    assert len(receiver.deliveries) == 1


def test_while_the_secret_is_changed_receivers_with_either_take_it():
    for secret in (NEW, OLD):
        with WebhookStandIn(secret=secret) as receiver:
            notifier_for(receiver, NEW, OLD).send(notification())
            assert len(receiver.deliveries) == 1


def test_without_a_secret_it_arrives_unsigned():
    with WebhookStandIn() as receiver:
        WebhookNotifier("ops", WebhookOptions(url=receiver.hook_url)).send(notification())

    assert "webhook-signature" not in receiver.deliveries[0].headers


def test_a_wrong_secret_is_permanent_and_names_the_settings(receiver):
    error = failure(notifier_for(receiver, OLD), notification())

    assert error.permanent
    assert "HTTP 401" in str(error)
    assert "receiver.ops.url and .secret" in str(error)
    assert OLD not in "".join(traceback.format_exception(error))


def test_a_retry_has_the_same_id_and_body_and_a_signature_of_its_own(receiver):
    receiver.faults.append(Fault(drop=True, accept=True))
    notifier = notifier_for(receiver)

    failure(notifier, notification(id="ntf_5"))
    notifier.send(notification(id="ntf_5"))

    first, second = receiver.deliveries
    assert first.id == second.id == "ntf_5"
    assert first.raw == second.raw
    assert receiver.types == ["run.alert.firing"]


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_success(receiver, status):
    receiver.faults.append(Fault(status=status, body="<html>whatever</html>", accept=True))

    notifier_for(receiver).send(notification())

    assert len(receiver.deliveries) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirection_is_not_followed_and_permanent(receiver, status):
    with WebhookStandIn() as elsewhere:
        location = elsewhere.hook_url + "?token=hush"
        receiver.faults.append(Fault(status=status, headers={"Location": location}))

        error = failure(notifier_for(receiver), notification())

        assert elsewhere.requests == []
    assert error.permanent
    assert f"a redirection to {elsewhere.url}, which is not followed" in str(error)
    assert "hush" not in str(error)
    assert "set receiver.ops.url" in str(error)


@pytest.mark.parametrize("location", ["/elsewhere", "//[::1", "javascript:1", "", "http://a b/"])
def test_a_redirection_to_anywhere_is_told_without_fault(receiver, location):
    receiver.faults.append(Fault(status=302, headers={"Location": location}))

    assert failure(notifier_for(receiver), notification()).permanent


def test_a_receiver_that_is_gone_is_permanent(receiver):
    receiver.faults.append(Fault(status=410))

    error = failure(notifier_for(receiver), notification())

    assert error.permanent
    assert "change or remove receiver.ops" in str(error)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 415, 422])
def test_a_receiver_that_declines_is_permanent(receiver, status):
    receiver.faults.append(Fault(status=status))

    error = failure(notifier_for(receiver), notification())

    assert error.permanent
    assert f"HTTP {status}" in str(error)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
def test_a_receiver_that_is_busy_is_tried_again(receiver, status):
    receiver.faults.append(Fault(status=status, headers={"Retry-After": "7"}))

    error = failure(notifier_for(receiver), notification())

    assert not error.permanent
    assert error.retry_after_s == 7.0


@pytest.mark.parametrize("header", ["junk", "-1", "nan", "1e400"])
def test_a_retry_after_that_says_nothing_is_ignored(receiver, header):
    receiver.faults.append(Fault(status=503, headers={"Retry-After": header}))

    assert failure(notifier_for(receiver), notification()).retry_after_s is None


@pytest.mark.parametrize("fault", [Fault(drop=True), Fault(truncate=True, status=503)], ids=str)
def test_a_broken_connection_is_tried_again_and_then_arrives(receiver, fault):
    receiver.faults.append(fault)
    notifier = notifier_for(receiver)

    error = failure(notifier, notification())
    assert not error.permanent
    assert len(receiver.requests) == 1

    notifier.send(notification())
    assert len(receiver.deliveries) == 1


def test_a_receiver_that_is_down_is_tried_again_and_arrives_when_it_is_up(receiver):
    notifier = notifier_for(receiver)
    receiver.down()

    error = failure(notifier, notification())
    assert str(error) == f"webhook at {receiver.url} can't be reached: Connection refused"
    assert not error.permanent

    receiver.up()
    notifier.send(notification())
    assert len(receiver.deliveries) == 1


@pytest.mark.parametrize("fault", [Fault(hang=True), Fault(drip_s=0.02)], ids=["hang", "drip"])
def test_a_receiver_that_never_finishes_holds_nobody_up(receiver, fault, monkeypatch):
    notifier = notifier_for(receiver)
    monkeypatch.setattr(notifier, "_deadline", Deadline("webhook", 0.3))
    receiver.faults.append(fault)
    began = time.monotonic()

    error = failure(notifier, notification())

    assert time.monotonic() - began < 5
    assert not error.permanent


def test_an_endless_answer_is_not_read(receiver):
    """A length of a terabyte is declared, and its beginning sent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        notifier = WebhookNotifier("ops", WebhookOptions(url=f"http://127.0.0.1:{port}/x"))

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\nxxxx")
                connection.settimeout(5)
                while connection.recv(65536):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        began = time.monotonic()
        notifier.send(notification())

        assert time.monotonic() - began < 5
        thread.join(10)
        assert not thread.is_alive()


def test_what_does_not_speak_http_is_tried_again():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        options = WebhookOptions(url=SecretStr(f"http://127.0.0.1:{port}/x/hush"))
        error = failure(WebhookNotifier("ops", options), notification())
        thread.join(10)

    assert not error.permanent
    assert "hush" not in "".join(traceback.format_exception(error))


def test_an_unencrypted_receiver_behind_an_https_address_is_tried_again(receiver):
    options = WebhookOptions(url=SecretStr(receiver.hook_url.replace("http://", "https://")))

    error = failure(WebhookNotifier("ops", options), notification())

    assert not error.permanent
    assert receiver.deliveries == []


def test_a_host_that_does_not_exist_is_tried_again():
    options = WebhookOptions(url="http://no-such-host.invalid/x")

    error = failure(WebhookNotifier("ops", options), notification())

    assert not error.permanent
    assert "webhook at http://no-such-host.invalid can't be reached" in str(error)


def test_the_environment_s_proxy_is_used_but_never_for_this_machine(receiver, monkeypatch):
    with WebhookStandIn() as proxy:
        for variable in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//user:hush@"))

        notifier_for(receiver).send(notification())
        assert proxy.requests == []

        far = WebhookNotifier("ops", WebhookOptions(url="http://far.invalid/hook"))
        error = failure(far, notification())

        assert "HTTP 404" in str(error)
        assert [entry["path"] for entry in proxy.requests] == ["http://far.invalid/hook"]


def test_the_record_of_what_arrived_can_be_read(tmp_path):
    record = tmp_path / "received.jsonl"
    with WebhookStandIn(record=record) as receiver:
        WebhookNotifier("ops", WebhookOptions(url=receiver.hook_url)).send(notification())

    (line,) = map(json.loads, record.read_text().splitlines())
    assert line["key"] == "ntf_01"
    assert line["accepted"]
