"""The program as a process: one a state file, continued after a kill, ended in order, seen by systemd."""

import os
import signal
import time

import pytest

from tests.support.faulty_http import Fault
from tests.support.process import wait_until
from tests.support.service_manager import ServiceManager
from tests.support.training import FINITE_TO_RECOVER, NAN, healthy
from tests.support.webhook_standin import WebhookStandIn

pytestmark = pytest.mark.e2e

SOON_S = 8.0
"""An ordinary end takes half a second; the machine may be busy."""
DRAIN_S = 10.0
"""So long the end waits for a delivery that is under way."""


class Log:
    """A CSV log, written by the test itself."""

    def __init__(self, path):
        self.path = path
        self.rows = 0
        path.write_text("step,loss\n")

    def write(self, losses):
        with self.path.open("a") as out:
            for loss in losses:
                out.write(f"{self.rows},{loss!r}\n")
                self.rows += 1


@pytest.fixture
def log(program):
    (program.folder / "job").mkdir()
    log = Log(program.folder / "job" / "log.csv")
    log.write(healthy(40))
    program.args += ["--csv", str(log.path)]
    return log


def points(program):
    return [run.points for run in program.status().runs]


# -- one daemon a state ---------------------------------------------------------------------------


def test_a_second_daemon_on_one_state_is_refused_and_told_of_the_first(program, log):
    first = program.start().ready()

    for more in ((), ("--fresh",), ("--once",)):
        second = program.start(*more)
        assert second.wait() == 69
        assert f"process {first.pid} on " in second.log
        assert "--state" in second.log

    assert first.running
    assert first.stop() == 0
    assert points(program) == [40]


def test_killed_it_can_be_started_again_at_once_and_goes_on_where_it_was(program, log):
    first = program.start()
    assert program.known()
    first.kill()
    log.write(healthy(5, start=40))

    second = program.start().ready()

    assert second.logged("continuing from row 40")
    assert wait_until(lambda: points(program) == [45])
    assert second.stop() == 0
    assert points(program) == [45]


def test_fresh_forgets_what_was_known(program, log):
    program.start()
    assert program.known()
    log.write([*NAN, *healthy(3, start=40)])
    assert program.processes[-1].logged("alert firing")
    assert program.processes[-1].stop() == 0

    fresh = program.start("--fresh")

    assert fresh.logged("run found")
    assert program.known()
    assert "continuing" not in fresh.log
    assert fresh.stop() == 0
    assert [alert["id"] for alert in program.alerts()] != []
    assert points(program) == [45]


# -- the end --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_order_with_everything_saved(program, log, number):
    daemon = program.start()
    assert program.known()
    log.write(healthy(7, start=40))
    time.sleep(2.5)  # It looks every 2 s, and saves once a minute: these rows are read, not saved.

    before = time.monotonic()
    assert daemon.stop(number) == 0

    assert time.monotonic() - before < SOON_S
    assert points(program) == [47]
    assert not program.status().running
    assert daemon.log.rstrip().endswith("stopped")


def test_a_receiver_that_hangs_holds_up_the_end_for_its_deadline_only(program, log):
    with WebhookStandIn() as hook:
        hook.faults.append(Fault(hang=True))
        program.args += ["--webhook", hook.hook_url]
        daemon = program.start()
        assert program.known()
        log.write(NAN)
        assert hook.wait_for(lambda: bool(hook.requests))

        before = time.monotonic()
        assert daemon.stop() == 0

        assert time.monotonic() - before < DRAIN_S + SOON_S
        assert "notifications wait for the next start" in daemon.log
        program.start()
        assert hook.wait_for(lambda: hook.types == ["run.alert.firing"], 60)


def test_a_source_that_hangs_does_not_hold_up_the_end(program, log):
    daemon = program.start(fault="hang-fetch").ready()

    before = time.monotonic()
    assert daemon.stop() == 0

    assert time.monotonic() - before < SOON_S


# -- once -----------------------------------------------------------------------------------------


def test_once_says_by_its_exit_code_whether_something_is_wrong(program, log):
    assert program.once().wait() == 0
    log.write(NAN)
    assert program.once().wait() == 1
    assert program.once().wait() == 1
    log.write(healthy(FINITE_TO_RECOVER, start=40))
    assert program.once().wait() == 0


def test_once_says_by_its_exit_code_that_a_source_could_not_be_read(program, log):
    missing = program.folder / "nowhere"

    blind = program.once("--csv", str(missing))

    assert blind.wait() == 69
    assert f"{missing} can't be read: No such file or directory" in blind.log
    assert points(program) == [40]


def test_once_says_of_an_alert_first_where_a_source_could_not_be_read_either(program, log):
    program.once()
    log.write(NAN)

    assert program.once("--csv", str(program.folder / "nowhere")).wait() == 1


def test_once_says_by_its_exit_code_that_nobody_could_be_told(program, log):
    with WebhookStandIn() as hook:
        hook.down()
        program.args += ["--webhook", hook.hook_url]
        assert program.once().wait() == 0
        log.write([*NAN, *healthy(FINITE_TO_RECOVER, start=40)])

        process = program.once()

        assert process.wait() == 69
        assert "notifications wait for the next start count=2" in process.log
        hook.up()
        wait_until(lambda: program.once().wait() == 0)
        assert hook.types == ["run.alert.firing", "run.alert.resolved"]


# -- whom it tells --------------------------------------------------------------------------------


def test_without_a_receiver_it_says_so_and_shows_alerts_in_the_terminal(program, log):
    log.write(NAN)

    process = program.once()

    assert "no receiver is given" in process.log
    assert "FIRING" in process.out
    assert "loss is not finite" in process.out


def test_a_dry_run_shows_alerts_in_the_terminal_and_sends_nothing(program, log):
    log.write(NAN)
    with WebhookStandIn() as hook:
        process = program.once("--dry-run", "--webhook", hook.hook_url)

        assert process.wait() == 1
        assert hook.requests == []
    assert "FIRING" in process.out
    assert "dry run" in process.log


def test_a_dry_run_loses_nothing_that_receivers_are_still_owed(program, log):
    with WebhookStandIn() as hook:
        program.args += ["--webhook", hook.hook_url]
        hook.down()
        program.start()
        assert program.known()
        log.write(NAN)
        assert program.processes[-1].logged("notification not delivered")
        assert program.processes[-1].stop() == 0

        program.once("--dry-run")
        hook.up()
        program.start()

        assert hook.wait_for(lambda: hook.types == ["run.alert.firing"], 30)


# -- systemd --------------------------------------------------------------------------------------


def test_systemd_hears_how_it_goes_from_the_start_to_the_end(program, log):
    with ServiceManager(program.folder) as systemd:
        program.env["NOTIFY_SOCKET"] = systemd.address
        daemon = program.start()

        assert systemd.hears("READY=1")
        assert systemd.hears("STATUS=watching 1 run, 0 firing")
        assert systemd.hears("WATCHDOG=1")
        assert "STOPPING=1" not in systemd.said()
        assert daemon.stop() == 0

        assert systemd.hears("STOPPING=1")
        assert systemd.said().count("READY=1") == 1


def test_the_watchdog_is_not_fed_while_the_engine_is_blocked(program):
    path = program.folder / "log.csv"
    path.write_text("step,loss\n")
    with ServiceManager(program.folder) as systemd:
        program.env["NOTIFY_SOCKET"] = systemd.address
        daemon = program.start("--csv", str(path), fault="block-engine")
        assert systemd.hears("READY=1")
        assert wait_until(lambda: systemd.said().count("WATCHDOG=1") >= 4)

        path.write_text("step,loss\n1,2.0\n")
        assert wait_until(lambda: systemd.silent_for_s("WATCHDOG") > 4.0, 20)

        # What systemd does then, an operator can do too: the second signal ends it at once.
        os.kill(daemon.pid, signal.SIGTERM)
        time.sleep(0.5)
        assert daemon.stop() == -signal.SIGTERM
