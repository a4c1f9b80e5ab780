"""Runs that stop, lose their loss or slow down, told by the program as it is started."""

import os

import pytest

from tests.support.log_writer import LogWriter
from tests.support.plugin_site import TOY, installed
from tests.support.process import ROOT, wait_until
from tests.support.training import healthy
from tests.support.webhook_standin import WebhookStandIn

pytestmark = pytest.mark.e2e

SETTINGS = """
[alerts]
group_wait = "0s"
group_window = "0s"
stall_after = "3s"
cooldown = "0s"

[[source]]
adapter = "csv"
path = "{folder}/logs"
interval = "200ms"
"""


def told(hook, event, kind):
    alerts = {d.id: d.body for d in hook.deliveries}.values()
    return [
        body["data"]
        for body in alerts
        if body["type"] == f"run.alert.{event}" and body["data"]["kind"] == kind
    ]


def test_a_job_that_hangs_is_told_and_so_is_its_going_on(program):
    program.configure(SETTINGS.format(folder=program.folder))
    (program.folder / "logs").mkdir()
    with WebhookStandIn() as hook, LogWriter("csv", program.folder / "logs" / "a.csv") as job:
        program.args += ["--webhook", hook.hook_url]
        job.write(healthy(20))
        daemon = program.start()
        assert program.known(1)
        job.write(healthy(20, start=20), each_s=0.3)
        before = len(told(hook, "firing", "stalled"))

        assert hook.wait_for(lambda: len(told(hook, "firing", "stalled")) > before), daemon.log
        assert told(hook, "firing", "stalled")[-1]["severity"] == "warning"
        job.write(healthy(1, start=40))
        assert hook.wait_for(
            lambda: len(told(hook, "resolved", "stalled")) == len(told(hook, "firing", "stalled"))
        ), daemon.log
        assert daemon.stop() == 0


def test_a_log_that_goes_on_without_its_loss_and_one_that_slows_down_are_told(program):
    program.configure(SETTINGS.format(folder=program.folder).replace('"3s"', '"1h"'))
    logs = program.folder / "logs"
    logs.mkdir()
    without, slow = logs / "without.csv", logs / "slow.csv"
    without.write_text("step,loss,grad_norm\n")
    slow.write_text("step,loss,tokens_per_second\n")
    with WebhookStandIn() as hook, without.open("a") as lost, slow.open("a") as slower:
        program.args += ["--webhook", hook.hook_url]
        losses = healthy(400)
        for step, loss in enumerate(losses):
            lost.write(f"{step},{loss},1.0\n")
            slower.write(f"{step},{loss},{1000 + step % 7}\n")
        lost.flush()
        slower.flush()
        daemon = program.start()
        assert program.known(2)

        for step in range(400, 440):
            lost.write(f"{step},,1.0\n")
        for step in range(400, 540):
            slower.write(f"{step},{losses[-1]},{400 + step % 7}\n")
        lost.flush()
        slower.flush()

        assert hook.wait_for(lambda: told(hook, "firing", "loss_missing")), daemon.log
        assert hook.wait_for(lambda: told(hook, "firing", "throughput_drop")), daemon.log
        assert told(hook, "firing", "loss_missing")[0]["run"] == "without.csv"
        assert told(hook, "firing", "throughput_drop")[0]["run"] == "slow.csv"
        lost.write(f"440,{losses[-1]},1.0\n")
        lost.flush()
        assert hook.wait_for(lambda: told(hook, "resolved", "loss_missing")), daemon.log
        assert daemon.stop() == 0


def test_the_adapter_of_a_stranger_is_watched_like_any_other(program, tmp_path):
    log = program.folder / "run.toy"
    log.write_text("".join(f"{step} 2.0\n" for step in range(20)))
    program.configure(
        f"""
[[source]]
adapter = "toy"
path = "{log}"
interval = "200ms"
max_severity = "warning"
"""
    )
    with (
        installed(tmp_path, modules={"acme_toy": TOY}, adapters={"toy": "acme_toy:ToySource"}),
        WebhookStandIn() as hook,
    ):
        program.env["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(tmp_path)])
        program.args += ["--webhook", hook.hook_url]
        daemon = program.start()
        assert program.known(1)
        with log.open("a") as file:
            file.write("20 nan\n")

        assert hook.wait_for(lambda: told(hook, "firing", "nonfinite")), daemon.log
        assert told(hook, "firing", "nonfinite")[0]["severity"] == "warning"
        with log.open("a") as file:
            file.write("back 10\n" + "".join(f"{step} 2.0\n" for step in range(10, 80)))
        assert hook.wait_for(lambda: told(hook, "resolved", "nonfinite")), daemon.log
        assert wait_until(lambda: [run.attempt for run in program.status().runs] == [2])
        shown = program.command("status", "--state", program.state).stdout
        assert "attempt 2 from step 10: again" in shown
        assert daemon.stop() == 0


def test_what_was_open_about_a_source_that_the_settings_drop_ends(program):
    program.configure(SETTINGS.format(folder=program.folder).replace('"3s"', '"1h"'))
    (program.folder / "logs").mkdir()
    log = program.folder / "logs" / "a.csv"
    log.write_text("step,loss\n" + "".join(f"{step},2.0\n" for step in range(20)) + "20,nan\n")
    with WebhookStandIn() as hook:
        program.args += ["--webhook", hook.hook_url]
        daemon = program.start()
        assert hook.wait_for(lambda: told(hook, "firing", "nonfinite")), daemon.log
        assert daemon.stop() == 0

        settings = SETTINGS.format(folder=program.folder)
        program.configure(settings.replace("[[source]]", '[[source]]\nname = "others"'))
        daemon = program.start().ready()
        assert hook.wait_for(lambda: told(hook, "resolved", "nonfinite")), daemon.log
        assert "no longer watched" in told(hook, "resolved", "nonfinite")[0]["summary"]
        assert daemon.stop() == 0
