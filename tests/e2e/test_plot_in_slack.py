"""The daemon's picture of a loss arrives in the thread of the alert, also after a restart."""

import importlib.util

import pytest

from tests.support.process import wait_until
from tests.support.slack_standin import CHANNEL, TOKEN, SlackStandIn
from tests.support.training import NAN, healthy

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        importlib.util.find_spec("matplotlib") is None, reason="needs the extra plot"
    ),
]


def rows(losses, start=0):
    return "".join(f"{step},{loss}\n" for step, loss in enumerate(losses, start=start))


@pytest.mark.parametrize("restarted", [False, True])
def test_the_plot_follows_the_text_into_its_thread(program, restarted):
    log = program.folder / "log.csv"
    log.write_text("step,loss\n" + rows(healthy(40)))
    with SlackStandIn(message_gap_s=0.0) as slack:
        program.env |= {"SLACK_BOT_TOKEN": TOKEN, "SLACK_API_URL": slack.api_url}
        program.args = ["--csv", str(log), "--slack-channel", CHANNEL]
        daemon = program.start()
        assert program.known()
        if restarted:
            daemon.stop()
            daemon = program.start()

        with log.open("a") as out:
            out.write(rows(NAN, start=40))

        assert wait_until(lambda: any(file.thread_ts for file in slack.files)), daemon.log
        daemon.stop()

    [parent] = slack.parents
    [file] = slack.files
    assert file.thread_ts == parent.ts
    assert file.content.startswith(b"\x89PNG")
    assert slack.requests[0]["path"] == "/api/chat.postMessage"
    assert slack.mistakes == []
