"""From a written line to a message: file events hasten a look, and polling alone brings it too."""

import time

import pytest

from tests.support.log_writer import LogWriter
from tests.support.training import FINITE_TO_RECOVER, NAN, healthy
from tests.support.webhook_standin import WebhookStandIn

pytestmark = pytest.mark.e2e

EPISODES = 4


@pytest.mark.parametrize(
    ("fault", "interval", "within_s"),
    [(None, "30s", 2.0), ("no-file-events", "1s", 5.0)],
    ids=["with file events and an interval of 30 s", "by polling each second alone"],
)
def test_a_line_becomes_a_message_soon(program, record_property, fault, interval, within_s):
    path = program.folder / "job" / "log.csv"
    with LogWriter("csv", path) as job, WebhookStandIn() as hook:
        program.configure('[alerts]\ncooldown = "0s"\n')
        program.args += ["--csv", str(path), "--webhook", hook.hook_url, "--interval", interval]
        job.write(healthy(40))
        daemon = program.start(fault=fault)
        assert program.known()

        took_s = []
        for _ in range(EPISODES):
            for losses in (NAN, healthy(FINITE_TO_RECOVER, start=job.written)):
                written = time.monotonic()
                job.write(losses)
                count = len(took_s) + 1
                assert hook.wait_for(lambda count=count: len(hook.deliveries) == count), daemon.log
                took_s.append(time.monotonic() - written)

        polling = "file events unavailable, polling alone" in daemon.log
        assert polling == (fault is not None)
        assert hook.types == ["run.alert.firing", "run.alert.resolved"] * EPISODES
        middle = sorted(took_s)[len(took_s) // 2]
        record_property(
            "counted",
            f"from a line in the log to a message, {'polling' if polling else 'file events'},"
            f" interval {interval}: median {middle:.2f} s, longest {max(took_s):.2f} s",
        )
        assert max(took_s) < within_s
