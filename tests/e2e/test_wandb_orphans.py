"""However the daemon ends, the wandb client and its helper end with it."""

import signal

import pytest

from tests.support.process import KILLED, wait_until
from tests.support.processes import descendants, gone
from tests.support.wandb_standin import KEY, WandbStandIn

pytest.importorskip("wandb", reason="needs the wandb client")
pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_is_left_behind(program, number):
    with WandbStandIn() as wandb:
        wandb.log("r", [{"loss": 1.0}] * 20)
        program.env |= {"WANDB_BASE_URL": wandb.url, "WANDB_API_KEY": KEY}
        program.args += ["--project", "myteam/llm", "--interval", "300ms"]
        daemon = program.start().ready()
        assert wait_until(lambda: program.known(1))
        started = descendants(daemon.pid)
        assert len(started) >= 2, "the client and its helper"

        assert daemon.stop(number) == (KILLED if number is signal.SIGKILL else 0)

        assert wait_until(lambda: all(map(gone, started)))
    assert KEY not in daemon.log
