"""Receivers that are down or misbehave: the watching goes on, others hear at once, and in the end all do."""

import os
import time
from contextlib import ExitStack

import pytest

from tests.support.faulty_http import Fault
from tests.support.log_writer import LogWriter
from tests.support.process import wait_until
from tests.support.slack_standin import CHANNEL, TOKEN, SlackStandIn
from tests.support.training import FINITE_TO_RECOVER, NAN, healthy
from tests.support.webhook_standin import WebhookStandIn

pytestmark = pytest.mark.e2e

OUTAGE_S = float(os.environ.get("WTWIN_WATCH_TEST_OUTAGE_S", "60"))
AT_ONCE_S = 4.0
"""Less than any of the receivers that misbehave needs; much, since the machine may be busy."""
# After an outage the next attempt comes after at most as long again, and that is a minute here.
AFTERWARDS_S = 75.0 + OUTAGE_S

FAULTS = {
    "busy": Fault(status=429, headers={"Retry-After": "5"}),
    "broken": Fault(status=500, times=2),
    "hanging": Fault(hang=True),
    "dropping": Fault(drop=True),
    "forgetful": Fault(drop=True, accept=True),
}
"""What goes wrong with the first requests. ``forgetful`` takes the message, but its answer is lost."""

TOLD = ["firing", "resolved", "firing"]


def settings(slacks: dict[str, SlackStandIn], hooks: dict[str, WebhookStandIn]) -> str:
    lines = ["[alerts]", 'cooldown = "0s"']
    for name, hook in hooks.items():
        lines += ["[[receiver]]", f'name = "webhook {name}"', 'notifier = "webhook"']
        lines += [f'url = "{hook.hook_url}"']
    for name, slack in slacks.items():
        lines += ["[[receiver]]", f'name = "slack {name}"', 'notifier = "slack"']
        lines += ['token = { env = "SLACK_BOT_TOKEN" }', f'channel = "{CHANNEL}"']
        lines += [f'api_url = "{slack.api_url}"']
    return "\n".join(lines) + "\n"


def events(receiver: SlackStandIn | WebhookStandIn) -> list[str]:
    """What a receiver took, oldest first; plots aside."""
    bodies = [entry["body"] for entry in receiver.requests if entry["accepted"] and entry["key"]]
    if isinstance(receiver, WebhookStandIn):
        return [body["type"].removeprefix("run.alert.") for body in bodies]
    return [body["metadata"]["event_payload"]["event"] for body in bodies]


def test_a_receiver_that_fails_delays_nobody_else_and_hears_it_all_afterwards(
    program, record_property
):
    with ExitStack() as stack:
        job = stack.enter_context(LogWriter("csv", program.folder / "job" / "log.csv"))
        hooks = {name: stack.enter_context(WebhookStandIn()) for name in ("well", "down", *FAULTS)}
        slacks = {name: stack.enter_context(SlackStandIn()) for name in ("well", "down", *FAULTS)}
        receivers = [*hooks.values(), *slacks.values()]
        for name, fault in FAULTS.items():
            hooks[name].faults.append(fault)
            slacks[name].faults.append(fault)
        program.configure(settings(slacks, hooks))
        program.args += ["--csv", str(job.path)]
        program.env["SLACK_BOT_TOKEN"] = TOKEN
        job.write(healthy(40))
        daemon = program.start()
        assert program.known()

        hooks["down"].down()
        slacks["down"].down()
        down_since = time.monotonic()
        for index, losses in enumerate((NAN, healthy(FINITE_TO_RECOVER, start=40), NAN), start=1):
            job.write(losses)
            for well in (hooks["well"], slacks["well"]):
                assert well.wait_for(
                    lambda well=well, told=TOLD[:index]: events(well) == told, AT_ONCE_S
                ), daemon.log
        assert daemon.logged("notification not delivered, trying again", times=2 + 2 * len(FAULTS))
        time.sleep(max(0.0, OUTAGE_S - (time.monotonic() - down_since)))
        assert events(hooks["down"]) == events(slacks["down"]) == []
        hooks["down"].up()
        slacks["down"].up()

        up_since = time.monotonic()
        query = "SELECT count(*) FROM outbox WHERE state != 'sent'"
        assert wait_until(lambda: program.rows(query) == [(0,)], AFTERWARDS_S), program.status()
        late_s = time.monotonic() - up_since
        assert daemon.stop() == 0

    twice = ["firing", *TOLD]
    for name, receiver in [*hooks.items(), *slacks.items()]:
        assert events(receiver) == (twice if name == "forgetful" else TOLD), name
        keys = [entry["key"] for entry in receiver.requests if entry["accepted"] and entry["key"]]
        assert len(set(keys)) == len(TOLD), name
        assert name != "forgetful" or keys[0] == keys[1]
    for name, slack in slacks.items():
        titles = ["Resolved" in title for title in slack.titles]
        assert titles == ([False] if name == "forgetful" else []) + [True, False], name
        assert slack.mistakes == []
    took = sum(len(events(receiver)) for receiver in receivers)
    record_property(
        "counted",
        f"{len(receivers)} receivers, two of them down for {OUTAGE_S:.0f} s:"
        f" {len(receivers) * len(TOLD)} notifications, {took} deliveries,"
        f" {took - len(receivers) * len(TOLD)} of these repeated (answer lost);"
        f" the last arrived {late_s:.0f} s after the outage",
    )


def test_a_receiver_that_refuses_for_good_is_reported_through_another_until_it_is_mended(program):
    def told(kind):
        return [d.body["data"]["source"] for d in hook.deliveries if d.body["type"].endswith(kind)]

    with ExitStack() as stack:
        slack, hook = stack.enter_context(SlackStandIn()), stack.enter_context(WebhookStandIn())
        program.configure(settings({"team": slack}, {"well": hook}))
        log = program.folder / "log.csv"
        log.write_text("step,loss\n" + "".join(f"{i},{x}\n" for i, x in enumerate(healthy(40))))
        program.args += ["--csv", str(log)]
        program.env["SLACK_BOT_TOKEN"] = "xoxb-revoked"
        daemon = program.start()
        assert program.known()
        with log.open("a") as out:
            out.writelines(f"{40 + i},{loss}\n" for i, loss in enumerate(NAN))
        assert hook.wait_for(lambda: len(told("firing")) == 2, timeout_s=60), daemon.log
        assert sorted(told("firing")) == ["csv", "receiver slack team"]
        [report] = [
            d.body["data"] for d in hook.deliveries if d.body["data"]["family"] == "receiver"
        ]
        assert "set receiver.slack team.token" in report["summary"]
        assert "notifications are refused (receiver slack team)" in report["title"]
        assert "receiver slack team" in program.command("status", "--state", program.state).stdout
        assert daemon.stop() == 0

        program.env["SLACK_BOT_TOKEN"] = TOKEN
        daemon = program.start()
        assert hook.wait_for(lambda: told("resolved") == ["receiver slack team"], 60), daemon.log
        assert len(slack.parents) == 1
