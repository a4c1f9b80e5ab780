"""A webhook's body and signature, checked with the reference library of Standard Webhooks."""

import base64
import json
import math
import time
from dataclasses import replace

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.support.notifications import HOSTILE_NAMES, STARTED, digest, notification
from wtwin_notifiers import webhook_body
from wtwin_watch.model import AlertState, Companion, Event, Run, RunKey

# The key and the example of the Standard Webhooks specification.
SPEC_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SPEC_ID, SPEC_TIME = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330
SPEC_BODY = b'{"test": 2432232314}'
SPEC_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

NEW = "whsec_" + base64.b64encode(b"n" * 24).decode()
OLD = "whsec_" + base64.b64encode(b"o" * 64).decode()


def data(given=None):
    return json.loads(webhook_body.body(given or notification()))["data"]


def test_the_example_of_the_specification_has_its_signature():
    key = webhook_body.signing_key(SPEC_SECRET)

    headers = webhook_body.headers(SPEC_ID, SPEC_TIME, SPEC_BODY, [key])

    assert headers["webhook-signature"] == SPEC_SIGNATURE
    assert headers["webhook-id"] == SPEC_ID
    assert headers["webhook-timestamp"] == str(SPEC_TIME)


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_the_reference_library_verifies_what_is_signed(name):
    body = webhook_body.body(notification(name=name))
    headers = webhook_body.headers("ntf_1", time.time(), body, [webhook_body.signing_key(NEW)])

    assert Webhook(NEW).verify(body, headers)["type"] == "run.alert.firing"
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(body + b" ", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(body, headers)


def test_while_a_secret_is_changed_both_verify():
    body = webhook_body.body(notification())
    keys = [webhook_body.signing_key(NEW), webhook_body.signing_key(OLD)]

    headers = webhook_body.headers("ntf_1", time.time(), body, keys)

    assert headers["webhook-signature"].count("v1,") == 2
    assert Webhook(NEW).verify(body, headers) == Webhook(OLD).verify(body, headers)


def test_without_a_secret_there_is_no_signature():
    headers = webhook_body.headers("ntf_1", 1.0, b"{}", [])

    assert set(headers) == {"content-type", "webhook-id", "webhook-timestamp"}


@pytest.mark.parametrize("size", [24, 32, 64])
def test_keys_from_24_to_64_bytes_are_taken_padded_or_not(size):
    encoded = base64.b64encode(b"k" * size).decode()

    assert webhook_body.signing_key("whsec_" + encoded) == b"k" * size
    assert webhook_body.signing_key("whsec_" + encoded.rstrip("=")) == b"k" * size


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "whsec_" + base64.b64encode(b"k" * 23).decode(),
        "whsec_" + base64.b64encode(b"k" * 65).decode(),
        base64.b64encode(b"k" * 32).decode(),
        "whpk_" + base64.b64encode(b"k" * 32).decode(),
        "whsec_" + "hush*hush" * 6,
        "whsec_" + "ü" * 44,
    ],
)
def test_any_other_secret_is_refused_without_being_shown(secret):
    with pytest.raises(ValueError, match="24 to 64 bytes") as caught:
        webhook_body.signing_key(secret)
    assert "hush" not in str(caught.value)


def test_the_body_tells_everything_about_the_alert():
    body = json.loads(webhook_body.body(notification(Event.RESOLVED)))

    assert body == {
        "type": "run.alert.resolved",
        "timestamp": "2025-10-09T08:54:20.000Z",
        "data": {
            "version": 1,
            "alert_id": "alr_01",
            # sha256 of "cluster\0a1\0loss", by hand
            "fingerprint": "561494e8d9d052e3",
            "family": "loss",
            "kind": "drift",
            "severity": "critical",
            "state": "resolved",
            "source": "cluster",
            "run": "a1",
            "run_name": "gpt-small-lr3e4",
            "project": "llm",
            "url": "https://tracker.example/run/a1?tab=charts&x=1",
            "started_at": "2025-10-09T08:53:20.000Z",
            "fired_at": "2025-10-09T08:54:20.000Z",
            "resolved_at": "2025-10-09T09:03:20.000Z",
            "outcome": "back to normal after 700 steps",
            "acknowledged_by": None,
            "acknowledged_at": None,
            "acknowledged_until": None,
            "metric": "train/loss",
            "detector": "trend",
            "onset_step": 1200,
            "step": 1500,
            "resolved_step": 1900,
            "last_healthy_step": 1190,
            "observed": 2.81,
            "expected": 2.5,
            "sigma": 0.04,
            "score": 7.75,
            "evidence": ["trend 7.8 sigma", "wtwin 5.1 sigma"],
            "title": "Resolved: loss drifts up (gpt-small-lr3e4)",
            "summary": "back to normal after 700 steps",
            "size": 1,
            "others": [],
        },
    }


def test_what_is_told_together_is_listed():
    given = notification()
    run = Run(RunKey("cluster", "b2"), "other", url="https://tracker.example/run/b2")
    alert = replace(
        given.alert, id="alr_02", run=run.key, state=AlertState.RESOLVED, outcome="over"
    )
    told = data(replace(given, others=(Companion(alert, run),), size=61))

    assert told["size"] == 61
    (other,) = told["others"]
    assert (other["alert_id"], other["run"], other["run_name"]) == ("alr_02", "b2", "other")
    assert (other["state"], other["summary"], other["url"]) == ("resolved", "over", run.url)


@pytest.mark.parametrize("event", [event for event in Event if event is not Event.DIGEST])
def test_the_type_names_the_event(event):
    assert json.loads(webhook_body.body(notification(event)))["type"] == f"run.alert.{event}"


def test_a_project_that_is_not_known_is_null():
    given = notification()

    assert data(replace(given, run=replace(given.run, project="")))["project"] is None


def test_a_number_that_is_none_is_told_by_name():
    seen = data(notification(observed=math.nan, expected=math.inf, sigma=-math.inf, score=None))

    assert (seen["observed"], seen["expected"], seen["sigma"]) == ("NaN", "Infinity", "-Infinity")
    assert seen["score"] is None


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-320, 1e308, 2.0**53, 0.1, -1234.5, 1e15])
def test_other_numbers_keep_their_value(value):
    assert data(notification(observed=value))["observed"] == value


def test_a_body_is_json_by_the_book():
    def refuse(constant):
        raise AssertionError(constant)

    body = webhook_body.body(notification(observed=math.nan, expected=math.inf))

    json.loads(body, parse_constant=refuse)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, 1e20, -1e20])
def test_a_time_that_is_no_date_is_null(seconds):
    given = notification()

    odd = replace(given, alert=replace(given.alert, fired_at=seconds))

    assert data(odd)["fired_at"] is None


def test_a_time_keeps_its_milliseconds():
    assert webhook_body.timestamp(STARTED + 0.25) == "2025-10-09T08:53:20.250Z"


def test_a_retry_sends_the_same_bytes():
    first = notification()

    again = replace(first, attempt=7, previous={"channel": "C1"})

    assert webhook_body.body(first) == webhook_body.body(again)


def test_texts_arrive_as_they_are_but_cut_and_encodable():
    assert data(notification(name="a\x1b\n<b>é🔥"))["run_name"] == "a\x1b\n<b>é🔥"
    assert data(notification(name="caf\udce9"))["run_name"] == "caf\ufffd"
    assert len(data(notification(name="x" * 100_000))["run_name"]) == 4000


def test_a_body_stays_small_whatever_the_evidence():
    long = "x" * 10_000

    body = webhook_body.body(notification(evidence=(long,) * 1000))

    assert len(body) < 300_000


def test_an_acknowledgement_says_who_and_when():
    data = json.loads(webhook_body.body(notification(Event.ACKNOWLEDGED)))["data"]

    assert (data["acknowledged_by"], data["acknowledged_at"]) == ("ada", "2025-10-09T08:55:20.000Z")


def test_a_digest_has_a_type_and_a_body_of_its_own():
    assert json.loads(webhook_body.body(digest())) == {
        "type": "run.digest",
        "timestamp": "2025-10-09T08:54:20.000Z",
        "data": {
            "version": 1,
            "from": "2025-10-09T08:53:20.000Z",
            "to": "2025-10-10T08:53:20.000Z",
            "title": "Digest: 1 alert in 12 runs",
            "summary": "warning: loss drifts up (gpt-small-lr3e4), 2h10m, fires still",
            "facts": {"Runs watched": "12, 3 of them new", "Not told": "4 silenced"},
        },
    }
