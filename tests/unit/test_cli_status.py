import sqlite3
from pathlib import Path

from tests.support.command_line import CommandLine
from tests.support.records import make_alert, make_checkpoint, make_entry
from wtwin_watch.model import AlertState
from wtwin_watch.store import SourceRecord, Store


def test_nothing_firing_is_exit_code_0(wtwin_watch: CommandLine, state_path: Path, store: Store):
    store.heartbeat(2e9, "watching 1 run, 0 firing")
    store.save([make_checkpoint(points=12, last_step=30.0, last_loss=2.5)], 2e9)
    store.save_source(SourceRecord("logs", "csv", seen_at=2e9))

    done = wtwin_watch("status", "--state", state_path)

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("running: watching 1 run, 0 firing\n")
    assert "logs  a  step 30  loss 2.5  12 points" in done.out
    assert "notifications: none" in done.out


def test_something_firing_is_exit_code_1(wtwin_watch: CommandLine, state_path: Path, store: Store):
    alert = make_alert()
    store.save([make_checkpoint(make_entry("n1", alert=alert), alert=alert)], 2e9)

    done = wtwin_watch("status", "--state", state_path)
    assert done.code == 1
    assert "firing  warning  a  since 1970-01-01" in done.out
    assert "the loss is 0.40 above its forecast" in done.out
    assert "notifications: 1 waiting" in done.out

    done = wtwin_watch("status", "--state", state_path, "--json")
    assert done.code == 1
    [shown] = done.json["alerts"]
    assert shown["id"] == "alert-1"
    assert shown["state"] == "firing"
    assert shown["observed"] == 1.9
    assert done.json["running"] is True
    assert done.json["outbox"] == {"waiting": 1}


def test_an_alert_that_is_only_pending_is_not_firing(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    store.save([make_checkpoint(alert=make_alert(state=AlertState.PENDING, fired_at=None))], 2e9)

    assert wtwin_watch("status", "--state", state_path).code == 0


def test_a_source_that_is_down_and_a_delivery_that_failed_are_shown(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    store.save_source(SourceRecord("logs", "csv", 2e9, "no such folder", 2e9))
    alert = make_alert()
    store.save([make_checkpoint(make_entry("n1", alert=alert), alert=alert)], 2e9)
    entry = store.next_notification("oncall")
    assert entry is not None
    store.mark_failed(entry, "Slack is down", 2e9 + 60)

    done = wtwin_watch("status", "--state", state_path)

    assert "logs  csv  no such folder" in done.out
    assert "oncall  waiting  1 attempts  Slack is down" in done.out


def test_no_running_daemon_is_exit_code_69_and_what_is_known_is_shown(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    store.save([make_checkpoint(points=12)], 2e9)
    store.close()

    done = wtwin_watch("status", "--state", state_path)

    assert done.code == 69
    assert done.out.startswith("no daemon is running")
    assert "12 points" in done.out
    assert wtwin_watch("status", "--state", state_path, "--json").json["running"] is False


def test_a_missing_state_is_exit_code_69(wtwin_watch: CommandLine, state_path: Path):
    done = wtwin_watch("status", "--state", state_path)

    assert done.code == 69
    assert f"there is no state at {state_path}" in done.err
    assert not state_path.exists()


def test_a_state_that_is_no_database_is_exit_code_69(wtwin_watch: CommandLine, state_path: Path):
    state_path.write_text("this is no database, whatever it says")
    assert wtwin_watch("status", "--state", state_path).code == 69

    state_path.unlink()
    sqlite3.connect(state_path).execute("CREATE TABLE other (x)").connection.close()
    assert wtwin_watch("status", "--state", state_path).code == 69


def test_mistakes_elsewhere_in_the_settings_do_not_keep_the_status_back(
    wtwin_watch: CommandLine, state_path: Path, store: Store, tmp_path: Path
):
    config = tmp_path / "config.toml"
    config.write_text(f'state = "{state_path}"\nnonsense = 1\n')

    assert wtwin_watch("status", "--config", config).code == 0
