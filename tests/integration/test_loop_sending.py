"""A `Watch` and its receivers: real notifiers, and servers on loopback that misbehave."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.alertmanager_standin import AlertmanagerStandIn
from tests.support.faulty_http import Fault
from tests.support.process import wait_until
from tests.support.training import FINITE_TO_RECOVER, healthy
from tests.support.webhook_standin import WebhookStandIn
from wtwin_watch.alerting.lifecycle import Policy, step
from wtwin_watch.integrations import Watch
from wtwin_watch.integrations import sending as sending_module
from wtwin_watch.metrics import Names
from wtwin_watch.model import Event, Point, Run, RunKey
from wtwin_watch.monitor import RunMonitor
from wtwin_watch.notify.render import message

pytestmark = pytest.mark.integration

PATIENCE_S = 60.0


@pytest.fixture
def hook() -> Iterator[WebhookStandIn]:
    with WebhookStandIn() as hook:
        yield hook


@pytest.fixture
def watching() -> Iterator[Callable[..., Watch]]:
    """Make watches that are closed at the end, delivered or not."""
    made: list[Watch] = []

    def make(*arguments: Any, **options: Any) -> Watch:
        made.append(Watch(*arguments, **options))
        return made[-1]

    yield make
    for watch in made:
        watch.close(0.0)


def settings(folder: Path, *receivers: str, more: str = "") -> Path:
    file = folder / "config.toml"
    file.write_text(more + "\n".join(f"[[receiver]]\n{receiver}\n" for receiver in receivers))
    return file


def webhook(hook: WebhookStandIn, name: str = "hook", more: str = "") -> str:
    return f'name = "{name}"\nnotifier = "webhook"\nurl = "{hook.hook_url}"\n{more}'


def feed(watch: Watch, losses: list[float], start: int = 1) -> None:
    for at, loss in enumerate(losses, start):
        watch.update(at, loss)


def data(hook: WebhookStandIn) -> list[dict[str, Any]]:
    return [delivery.body["data"] for delivery in hook.deliveries]


def test_receivers_get_the_words_of_the_daemon(tmp_path: Path, hook: WebhookStandIn) -> None:
    losses = [*healthy(300), *(loss + 1.0 for loss in healthy(40, start=300))]
    with Watch(settings(tmp_path, webhook(hook)), name="gpt", project="llm") as watch:
        feed(watch, losses)
        assert watch.flush(PATIENCE_S)

    points = [Point("loss", float(at), loss) for at, loss in enumerate(losses, start=1)]
    run = Run(RunKey("training loop", "gpt"), "gpt", "llm")
    found = RunMonitor(Names(loss="loss")).feed(points)
    _, changes = step(run.key, {}, found, 0.0, Policy(), lambda: "id")
    grave = [change for change in changes if change.alert.severity.value != "info"]
    expected = message(Event.FIRING, grave[0].alert, run)
    assert data(hook)[0]["title"] == expected.title
    assert data(hook)[0]["summary"] == expected.summary


def test_an_alert_and_its_end_arrive_in_this_order(tmp_path: Path, hook: WebhookStandIn) -> None:
    with Watch(settings(tmp_path, webhook(hook)), name="gpt") as watch:
        feed(watch, [*healthy(80), math.nan, *healthy(FINITE_TO_RECOVER, start=80)])
    assert hook.types == ["run.alert.firing", "run.alert.resolved"]
    assert {found["run"] for found in data(hook)} == {"gpt"}


def test_a_receiver_that_hangs_blocks_no_step(
    tmp_path: Path, hook: WebhookStandIn, watching: Callable[..., Watch]
) -> None:
    hook.faults.append(Fault(hang=True))
    watch = watching(settings(tmp_path, webhook(hook)))
    feed(watch, [*healthy(80), math.nan])
    assert hook.wait_for(lambda: len(hook.requests) == 1, PATIENCE_S)

    feed(watch, healthy(1000, start=81), start=82)

    assert watch.points == 1081
    assert hook.deliveries == []
    assert not watch.flush(0.0)


def test_what_could_not_be_delivered_is_tried_again(
    tmp_path: Path,
    hook: WebhookStandIn,
    caplog: pytest.LogCaptureFixture,
    watching: Callable[..., Watch],
) -> None:
    hook.faults.append(Fault(status=503))
    watch = watching(settings(tmp_path, webhook(hook)))
    feed(watch, [*healthy(80), math.nan])
    assert watch.flush(PATIENCE_S)
    assert hook.types == ["run.alert.firing"]
    assert len(hook.requests) == 2
    assert "is not delivered, trying again" in caplog.text
    watch.close()


def test_what_a_receiver_refuses_is_said_and_not_tried_again(
    tmp_path: Path,
    hook: WebhookStandIn,
    caplog: pytest.LogCaptureFixture,
    watching: Callable[..., Watch],
) -> None:
    hook.faults.append(Fault(status=400))
    watch = watching(settings(tmp_path, webhook(hook)))
    feed(watch, [*healthy(80), math.nan])
    assert watch.flush(PATIENCE_S)
    watch.close()
    assert "a notification is not delivered: " in caplog.text
    assert "1 notifications were not delivered to hook" in caplog.text


def test_a_notifier_that_fails_in_an_unforeseen_way_shows_no_secret(
    tmp_path: Path,
    hook: WebhookStandIn,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    watching: Callable[..., Watch],
) -> None:
    watch = watching(settings(tmp_path, webhook(hook)))
    receiver = watch._teller._receivers[0]  # type: ignore[attr-defined]

    def fail(_: object) -> None:
        monkeypatch.undo()
        raise RuntimeError("token=whsec_secret")

    monkeypatch.setattr(receiver._notifier, "send", fail)
    feed(watch, [*healthy(80), math.nan])
    assert watch.flush(PATIENCE_S)
    watch.close()
    assert "the notifier failed: RuntimeError" in caplog.text
    assert "whsec_secret" not in caplog.text
    assert hook.types[0] == "run.alert.firing"


def test_at_most_so_many_wait_and_what_is_lost_is_counted(
    tmp_path: Path,
    hook: WebhookStandIn,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    watching: Callable[..., Watch],
) -> None:
    monkeypatch.setattr(sending_module, "MOST_WAITING", 3)
    hook.faults.append(Fault(status=503, times=10**6))
    watch = watching(settings(tmp_path, webhook(hook), more='[alerts]\ncooldown = "0s"\n'))
    for _ in range(5):
        start = watch.points
        feed(
            watch, [math.nan, *healthy(FINITE_TO_RECOVER + 16, start=300 + start)], start=start + 1
        )
    assert hook.wait_for(lambda: len(hook.requests) >= 1, PATIENCE_S)

    def lost() -> int:
        watch.close(0.0)  # what is on its way now is counted when it has failed
        said = [text for text in caplog.messages if "were not delivered to hook" in text]
        return sum(int(text.split()[0]) for text in said)

    assert wait_until(lambda: lost() == 10, PATIENCE_S)
    assert lost() == 10


def test_routes_and_severities_decide_who_is_told(tmp_path: Path, hook: WebhookStandIn) -> None:
    with WebhookStandIn() as other:
        file = settings(
            tmp_path,
            webhook(hook, "all"),
            webhook(other, "grave", 'severity = "critical"\n'),
            more='[[route]]\nmatch = "run=gpt"\nreceivers = ["all", "grave"]\n',
        )
        jumped = [*healthy(300), *(loss + 0.2 for loss in healthy(40, start=300))]
        with Watch(file, name="gpt") as watch:
            feed(watch, jumped)
        with Watch(file, name="gpt") as watch:
            feed(watch, [*healthy(80), math.nan])
        assert {found["severity"] for found in data(hook)} == {"warning", "critical"}
        assert {found["severity"] for found in data(other)} == {"critical"}
        assert other.types == ["run.alert.firing", "run.alert.resolved"]


def test_the_end_of_the_program_waits_for_what_is_to_be_delivered(
    tmp_path: Path, hook: WebhookStandIn
) -> None:
    file = settings(tmp_path, webhook(hook))
    hook.faults.append(Fault(delay_s=0.5))
    code = (
        "import math\nfrom wtwin_watch.integrations import Watch\n"
        f"watch = Watch({str(file)!r}, name='gpt')\n"
        "for step in range(1, 81): watch.update(step, 2.0 + 1.0 / step)\n"
        "watch.update(81, math.nan)\nraise SystemExit('the training fails')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert hook.types == ["run.alert.firing"]


def test_who_was_told_before_a_crash_is_told_of_the_end_after_it(
    tmp_path: Path,
    hook: WebhookStandIn,
    watching: Callable[..., Watch],
) -> None:
    file = settings(tmp_path, webhook(hook))
    first = watching(file, name="gpt")
    feed(first, [*healthy(80), math.nan])
    assert first.flush(PATIENCE_S)
    stored = json.loads(json.dumps(first.state_dict()))

    with Watch(file, name="gpt") as second:
        second.load_state_dict(stored)
        feed(second, healthy(FINITE_TO_RECOVER, start=81), start=82)

    assert hook.types == ["run.alert.firing", "run.alert.resolved"]
    assert data(hook)[0]["alert_id"] == data(hook)[-1]["alert_id"]
    first.close(0.0)


def test_a_watch_that_was_closed_can_watch_another_training(
    tmp_path: Path, hook: WebhookStandIn
) -> None:
    file = settings(tmp_path, webhook(hook), more='[alerts]\ncooldown = "0s"\n')
    watch = Watch(file, name="gpt")
    for _ in range(2):
        feed(watch, [*healthy(80), math.nan])
        watch.close()
        watch.rewind(0)
    assert hook.types == ["run.alert.firing", "run.alert.resolved"] * 2


def test_a_receiver_that_forgets_is_reminded_while_an_alert_fires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AlertmanagerStandIn() as alertmanager:
        receiver = f'name = "am"\nnotifier = "alertmanager"\nurl = "{alertmanager.url}"\n'
        watch = Watch(settings(tmp_path, receiver), name="gpt")
        notifier = watch._teller._receivers[0]._notifier  # type: ignore[attr-defined]
        monkeypatch.setattr(notifier, "renew_every_s", 0.05)
        feed(watch, [*healthy(80), math.nan])

        assert alertmanager.wait_for(lambda: len(alertmanager.requests) >= 3, PATIENCE_S)

        assert len(alertmanager.firing) == 1
        watch.close()
        assert alertmanager.firing == []


def test_a_machine_that_has_no_thread_left_costs_the_training_nothing(
    tmp_path: Path,
    hook: WebhookStandIn,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    watch = Watch(settings(tmp_path, webhook(hook)), name="gpt")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        feed(watch, [*healthy(80), math.nan])
    assert "gpt: an alert could not be told" in caplog.text
    feed(watch, healthy(FINITE_TO_RECOVER, start=81), start=82)
    assert watch.flush(PATIENCE_S)
    watch.close()
    assert hook.types == ["run.alert.firing", "run.alert.resolved"]
