"""What the documentation shows is what happens."""

import base64
import json
import re
import time
from datetime import datetime
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.support.notifications import notification
from tests.support.notifier_contract import check_notifier_plugin
from wtwin_notifiers import webhook_body
from wtwin_notifiers.slack_answers import refusal
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import (
    Alert,
    AlertState,
    Detection,
    Event,
    Family,
    Notification,
    Run,
    RunKey,
    Severity,
)
from wtwin_watch.notify.render import message

ROOT = Path(__file__).parents[2]
RECEIVERS = (ROOT / "docs" / "receivers.md").read_text(encoding="utf-8")
README = (ROOT / "notifiers" / "README.md").read_text(encoding="utf-8")


def examples(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def told_by(body):
    """The notification whose body ``body`` is: a run's first alert, put into words as by the daemon."""

    def seconds(name, table=body["data"]):
        return datetime.fromisoformat(table[name]).timestamp()

    data = body["data"]
    copied = ("kind", "detector", "metric", "summary", "onset_step", "step", "last_healthy_step")
    numbers = ("observed", "expected", "sigma", "score")
    family, severity = Family(data["family"]), Severity(data["severity"])
    detection = Detection(
        family=family,
        active=True,
        severity=severity,
        evidence=tuple(data["evidence"]),
        **{name: data[name] for name in (*copied, *numbers)},
    )
    run = Run(RunKey(data["source"], data["run"]), data["run_name"])
    alert = Alert(
        id=data["alert_id"],
        run=run.key,
        family=family,
        kind=data["kind"],
        severity=severity,
        state=AlertState(data["state"]),
        detection=detection,
        started_at=seconds("started_at"),
        fired_at=seconds("fired_at"),
    )
    words = message(Event.FIRING, alert, run)
    at = seconds("timestamp", body)
    return Notification("ntf_1", "ops", Event.FIRING, alert, run, words, created_at=at)


def test_the_body_that_is_shown_is_one_that_is_sent():
    shown = json.loads(*examples(RECEIVERS, "json"))

    sent = json.loads(webhook_body.body(told_by(shown)))

    assert sent == shown
    assert list(sent["data"]) == list(shown["data"])


def test_every_field_of_the_body_is_explained():
    table = RECEIVERS.split("| field | meaning |")[1].split("\n\n")[0]
    explained = set(
        re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:]))
    )

    assert set(json.loads(webhook_body.body(notification()))["data"]) <= explained


def test_the_check_of_a_signature_that_is_shown_works():
    (shown,) = examples(RECEIVERS, "python")
    scope = {}
    exec(shown, scope)
    secrets = ["whsec_" + base64.b64encode(byte * 32).decode() for byte in (b"n", b"o", b"x")]
    keys = [webhook_body.signing_key(secret) for secret in secrets[:2]]
    body = webhook_body.body(notification())

    headers = webhook_body.headers("ntf_1", time.time(), body, keys)
    stale = webhook_body.headers("ntf_1", time.time() - 301, body, keys)

    assert [scope["genuine"](secret, headers, body) for secret in secrets] == [True, True, False]
    assert not scope["genuine"](secrets[0], headers, body + b" ")
    assert not scope["genuine"](secrets[0], stale, body)


JUDGED = [
    row
    for row in RECEIVERS.split("## Webhook")[0].splitlines()
    if re.match(r"\| `[a-z_]+` ?[^|]*\| (permanent|try again)", row)
]


def test_the_table_of_slack_s_errors_is_found():
    assert len(JUDGED) >= 6


@pytest.mark.parametrize("row", JUDGED)
def test_what_is_said_of_slack_s_errors_is_so(row):
    _, errors, outcome, _ = row.split("|")
    basic = "of a webhook" in errors

    for error in re.findall(r"`([a-z_]+)`", errors):
        judged = refusal("team", 404 if basic else 200, {"error": error}, {}, 0.0, basic=basic)
        assert judged.permanent == outcome.startswith(" permanent"), error


def test_the_app_s_manifest_asks_for_what_is_needed():
    manifest = (ROOT / "config" / "slack-app-manifest.yaml").read_text(encoding="utf-8")

    assert re.findall(r"^      - (\S+)$", manifest, re.MULTILINE) == ["chat:write", "files:write"]


def test_the_example_of_a_notifier_keeps_to_its_contract(monkeypatch):
    (shown,) = examples(README, "python")
    scope = {"__name__": "example"}
    exec(shown, scope)
    monkeypatch.setenv("PAGER_KEY", "hush")

    check_notifier_plugin(scope["PagerNotifier"])
    pager = scope["PagerNotifier"]("night", scope["PagerOptions"](key={"env": "PAGER_KEY"}))

    with pytest.raises(DeliveryError, match=r"receiver\.night\.key"):
        pager.send(notification())


def test_every_notifier_of_the_package_is_documented():
    ours = [plugin for plugin in entry_points(group="wtwin_watch.notifiers")
            if plugin.value.startswith("wtwin_notifiers.")]  # fmt: skip

    assert ours
    for plugin in ours:
        assert f'notifier = "{plugin.name}"' in RECEIVERS
        for option in plugin.load().Options.model_fields:
            assert f"`{option}`" in RECEIVERS or f"{option} =" in RECEIVERS
