"""Secrets reach nothing that the program writes, whatever goes wrong with those who know them."""

import base64
import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.faulty_http import Fault
from tests.support.process import wait_until
from tests.support.slack_standin import CHANNEL, SlackStandIn
from tests.support.training import NAN, healthy
from tests.support.webhook_standin import WebhookStandIn

pytestmark = pytest.mark.e2e

# The marks are what is searched for: a secret cut into pieces must not get through either.
MARK = "SeSaMe"
TOKEN = f"xoxb-{MARK}-bot-token"
PATH_MARK, QUERY_MARK, USER_MARK, FILE_MARK = (
    "PathSeSaMe",
    "QuerySeSaMe",
    "UserSeSaMe",
    "FileSeSaMe",
)
KEY = base64.b64encode(b"SeSaMe SeSaMe SeSaMe SeSaMe").decode()
SECRETS = [MARK, PATH_MARK, QUERY_MARK, USER_MARK, FILE_MARK, KEY]

SETTINGS = """
[[source]]
adapter = "csv"
path = "{folder}/log.csv"

[[receiver]]
name = "witness"
notifier = "webhook"
url = "{witness}"

[[receiver]]
name = "refused"
notifier = "webhook"
url = {{ env = "REFUSED_URL" }}
secret = {{ env = "SIGNING_KEY" }}

[[receiver]]
name = "from a file"
notifier = "webhook"
url = {{ file = "{folder}/secret-url" }}

[[receiver]]
name = "slack"
notifier = "slack"
token = {{ env = "OUR_TOKEN" }}
channel = "{channel}"
api_url = "{api_url}"

[[receiver]]
name = "slack hook"
notifier = "slack"
webhook = {{ env = "HOOK_URL" }}

[[receiver]]
name = "pager"
notifier = "pagerduty"
routing_key = {{ env = "PAGER_KEY" }}
url = "http://127.0.0.1:{gone}/v2/enqueue"

[[receiver]]
name = "alertmanager"
notifier = "alertmanager"
url = {{ env = "ALERTMANAGER_URL" }}
token = {{ env = "OUR_TOKEN" }}

[[receiver]]
name = "by apprise"
notifier = "apprise"
url = {{ env = "APPRISE_URL" }}
"""


def emitted(program):
    """All that stays behind or can be seen: outputs, the state with its journal, command lines."""
    texts = {}
    for process in program.processes:
        texts[f"log of {process.pid}"] = process.log.encode()
        texts[f"output of {process.pid}"] = process.out.encode()
        if process.running:
            texts["command line"] = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    for path in program.folder.glob("state.db*"):
        texts[path.name] = path.read_bytes()
    return texts


FAULTS = [
    Fault(status=429, headers={"Retry-After": "1"}),
    Fault(truncate=True),
    Fault(status=302, headers={"Location": f"http://u:{USER_MARK}@127.0.0.1/{PATH_MARK}"}),
]


@pytest.mark.parametrize("given", ["by reference in a settings file", "in the environment"])
def test_no_secret_is_in_anything_the_program_emits(program, record_property, given):
    log = program.folder / "log.csv"
    log.write_text("step,loss\n" + "".join(f"{i},{x}\n" for i, x in enumerate(healthy(40))))
    with ExitStack() as stack:
        # The token and the addresses are none that the stand-ins know: in the end they are refused for good.
        slack = stack.enter_context(SlackStandIn(message_gap_s=0.0))
        hook = stack.enter_context(WebhookStandIn())
        witness = stack.enter_context(WebhookStandIn())
        gone = stack.enter_context(WebhookStandIn())
        gone.down()
        slack.faults += FAULTS
        hook.faults += FAULTS
        hook_url = f"http://user:{FILE_MARK}@127.0.0.1:{hook.port}/{PATH_MARK}?token={QUERY_MARK}"
        if given == "in the environment":
            receivers = ["slack", "webhook"]
            program.env |= {
                "SLACK_BOT_TOKEN": TOKEN,
                "SLACK_API_URL": slack.api_url,
                "SLACK_WEBHOOK_URL": f"{slack.url}/services/T000/B000/{PATH_MARK}",
                "WTWIN_WATCH_WEBHOOK_URL": hook_url,
                "WTWIN_WATCH_WEBHOOK_SECRET": f"whsec_{KEY}",
            }
            place, told = ["--csv", str(log)], ["--slack-channel", CHANNEL]
        else:
            receivers = ["alertmanager", "by apprise", "from a file", "pager", "refused"]
            receivers += ["slack", "slack hook"]
            program.env |= {
                "OUR_TOKEN": TOKEN,
                "SIGNING_KEY": f"whsec_{KEY}",
                "REFUSED_URL": f"http://127.0.0.1:{gone.port}/{PATH_MARK}?key={QUERY_MARK}",
                "HOOK_URL": f"{slack.url}/services/T000/B000/{PATH_MARK}",
                "PAGER_KEY": f"{MARK}RoutingKey",
                "ALERTMANAGER_URL": f"http://u:{USER_MARK}@127.0.0.1:{gone.port}/{PATH_MARK}",
                "APPRISE_URL": f"json://u:{USER_MARK}@127.0.0.1:{gone.port}/{PATH_MARK}",
            }
            (program.folder / "secret-url").write_text(hook_url + "\n")
            program.configure(
                SETTINGS.format(
                    folder=program.folder,
                    channel=CHANNEL,
                    api_url=slack.api_url,
                    gone=gone.port,
                    witness=witness.hook_url,
                )
            )
            place, told = [], program.args
        program.env["WTWIN_WATCH_DEBUG"] = "1"
        program.args = [*place, *told, "--verbose"]
        daemon = program.start()
        assert program.known()
        with log.open("a") as out:
            out.writelines(
                f"{i},{x}\n" for i, x in enumerate([*NAN, *healthy(70, start=40)], start=40)
            )
        failed = "SELECT DISTINCT receiver FROM outbox WHERE error IS NOT NULL ORDER BY receiver"
        assert wait_until(lambda: [name for (name,) in program.rows(failed)] == receivers)
        assert wait_until(lambda: not (slack.faults or hook.faults)), daemon.log
        if given == "by reference in a settings file":
            # What is refused for good is reported to those who take it.
            reports = {"receiver from a file", "receiver slack", "receiver slack hook"}
            assert witness.wait_for(
                lambda: reports <= {d.body["data"]["source"] for d in witness.deliveries}, 60
            ), daemon.log
        texts = emitted(program)
        daemon.stop()
        texts |= emitted(program)

        told_of = [alert for alert in program.alerts() if alert["family"] == "nonfinite"]
        assert told_of
        for command in (
            ["status", "--state", program.state],
            ["status", "--state", program.state, "--json"],
            ["test-notify", *told],
            ["check", *place, *told],
            ["outbox", "--state", program.state],
            ["outbox", "--state", program.state, "--json"],
            *(["alerts", "show", alert["id"], "--state", program.state] for alert in told_of[:1]),
            *(
                ["alerts", "show", alert["id"], "--state", program.state, "--json"]
                for alert in told_of[:1]
            ),
        ):
            result = program.command(*command)
            texts[" ".join(command)] = (result.stdout + result.stderr).encode()
            assert all(receiver in result.stdout + result.stderr for receiver in receivers), command
        for command in (["alerts"], ["alerts", "--json"]):
            result = program.command(*command, "--state", program.state)
            texts[" ".join(command)] = (result.stdout + result.stderr).encode()
        for name, stand_in in (("slack", slack), ("hook", hook), ("witness", witness)):
            bodies = [entry["body"] for entry in stand_in.requests]
            texts[f"what {name} was sent"] = json.dumps(bodies, ensure_ascii=False).encode()

    assert "command line" in texts
    assert "state.db" in texts
    for where, text in texts.items():
        for secret in SECRETS:
            assert secret.encode() not in text, f"{secret} in {where}"
    record_property(
        "counted",
        f"{len(SECRETS)} secrets {given}, {len(slack.requests) + len(hook.requests)} failed requests,"
        f" searched in {len(texts)} places of {sum(map(len, texts.values()))} bytes: none found",
    )


def test_a_secret_on_the_command_line_is_refused_without_being_repeated(program):
    for args in (
        ("--slack-channel", TOKEN),
        ("--webhook", f"https://user:{USER_MARK}@host/x"),
        ("--webhook", f"https://hooks.slack.com/services/T0/B0/{PATH_MARK}"),
    ):
        process = program.once("--csv", str(program.folder), *args)

        assert process.wait() == 2
        assert "command line" in process.log
        assert not any(secret in process.log + process.out for secret in SECRETS)


@pytest.mark.parametrize(
    ("name", "secret"), [("THE_TOKEN", TOKEN), ("THE_URL", f"http://127.0.0.1:9/{PATH_MARK}?k=v")]
)
def test_a_crash_report_quotes_no_secret_though_the_error_does(program, name, secret):
    program.configure(
        f"""
[[receiver]]
notifier = "slack"
token = {{ env = "THE_TOKEN" }}
channel = "{CHANNEL}"

[[receiver]]
notifier = "webhook"
url = {{ env = "THE_URL" }}
"""
    )
    program.env |= {"THE_TOKEN": TOKEN, "THE_URL": "http://127.0.0.1:9/x?y", name: secret}
    program.env["WTWIN_WATCH_DEBUG"] = "1"
    program.args += ["--csv", str(program.folder / "*.csv")]

    daemon = program.start(fault=f"crash:{name}")

    assert daemon.wait() == 70
    assert "Traceback" in daemon.log
    assert "RuntimeError: no answer to (hidden)" in daemon.log
    assert not any(mark in daemon.log + daemon.out for mark in SECRETS)
