"""A place that can't be read: the watcher goes on, says so once, and says when it is over."""

import shutil

import pytest

from tests.support.log_writer import LogWriter
from tests.support.process import wait_until
from tests.support.training import NAN, healthy
from tests.support.webhook_standin import WebhookStandIn

pytestmark = pytest.mark.e2e

SETTINGS = """
[alerts]
source_down_after = "2s"
cooldown = "0s"

[[source]]
name = "lost"
adapter = "csv"
path = "{folder}/lost"

[[source]]
name = "found"
adapter = "csv"
path = "{folder}/found"
"""


def problems(program):
    return {source.name: source.error for source in program.status().sources}


def test_a_place_that_is_gone_is_one_alert_and_does_not_stop_the_others(program):
    lost, found = program.folder / "lost", program.folder / "found"
    program.configure(SETTINGS.format(folder=program.folder))
    with (
        WebhookStandIn() as hook,
        LogWriter("csv", found / "a.csv") as well,
        LogWriter("csv", lost / "b.csv") as ill,
        LogWriter("csv", lost / "c.csv") as ill_too,
    ):
        program.args += ["--webhook", hook.hook_url]

        def told(event, what):
            return [
                d.body["data"]
                for d in hook.deliveries
                if d.body["type"] == f"run.alert.{event}" and d.body["data"]["family"] == what
            ]

        for job in (well, ill, ill_too):
            job.write(healthy(40))
        ill.write(NAN)
        daemon = program.start()
        assert program.known(3)
        assert hook.wait_for(lambda: len(told("firing", "nonfinite")) == 1)

        shutil.move(lost, program.folder / "elsewhere")
        assert hook.wait_for(lambda: len(told("firing", "source")) == 1), daemon.log
        assert "No such file or directory" in problems(program)["lost"]
        assert problems(program)["found"] is None
        assert "lost can't be read" in program.command("status", "--state", program.state).stdout

        # The others are watched meanwhile, and of the lost one nothing is taken for resolved.
        well.write(NAN)
        assert hook.wait_for(lambda: len(told("firing", "nonfinite")) == 2)
        assert told("resolved", "nonfinite") == []

        shutil.move(program.folder / "elsewhere", lost)
        assert hook.wait_for(lambda: len(told("resolved", "source")) == 1, 60), daemon.log
        assert wait_until(lambda: problems(program)["lost"] is None)
        assert len(told("firing", "source")) == 1
        assert daemon.log.count("source can't be read") == 1
        assert "source can be read again" in daemon.log
        assert daemon.stop() == 0


def test_a_place_that_is_not_there_yet_is_watched_once_it_is(program):
    lost = program.folder / "lost"
    (program.folder / "found").mkdir()
    program.configure(SETTINGS.format(folder=program.folder))
    with WebhookStandIn() as hook:
        program.args += ["--webhook", hook.hook_url]
        daemon = program.start().ready()
        assert hook.wait_for(lambda: hook.types == ["run.alert.firing"])

        with LogWriter("csv", lost / "b.csv") as job:
            job.write(healthy(40))
            assert hook.wait_for(
                lambda: hook.types == ["run.alert.firing", "run.alert.resolved"], 60
            )
            assert wait_until(lambda: [run.points for run in program.status().runs] == [40])
        assert daemon.stop() == 0
