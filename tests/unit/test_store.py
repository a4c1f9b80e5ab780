"""The store: what is written together stays together, and one daemon owns it."""

import math
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
import sqlalchemy as sa

from tests.support.records import RUN, make_alert, make_checkpoint, make_entry
from wtwin_watch.alerting.lifecycle import Reason, Transition
from wtwin_watch.alerting.telling import GroupChange
from wtwin_watch.errors import OwnershipLost, StoreError
from wtwin_watch.model import AlertState, Companion, Event, Family, Receipt, Run, RunKey
from wtwin_watch.store import (
    Checkpoint,
    Progress,
    Store,
    codec,
    database,
    owner,
    read_status,
    tables,
)
from wtwin_watch.store.writer import Writer

NOW = 2e9


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "state.db"


@pytest.fixture
def store(path):
    store = Store(database.database_url(str(path)))
    store.claim(NOW)
    yield store
    store.close()


def test_a_run_comes_back_as_it_was_saved(store):
    checkpoint = make_checkpoint(
        cursor={"v": 1, "offset": 12},
        position="row 3",
        skipped={"short row": 2},
        roles={"loss": "train/loss"},
        points=3,
        last_step=3.0,
        last_loss=float("nan"),
        step_name="step",
    )

    store.save([checkpoint], NOW)

    (record,) = store.run_records("logs")
    assert record.cursor == {"v": 1, "offset": 12}
    assert record.run == RUN
    assert (record.position, record.step_name, record.points) == ("row 3", "step", 3)
    assert math.isnan(record.last_loss)
    assert record.skipped == {"short row": 2}
    assert record.roles == {"loss": "train/loss"}
    assert store.run_records("elsewhere") == []


def test_saving_again_replaces_the_run_and_keeps_one_row(store):
    store.save([make_checkpoint(cursor={"v": 1}), make_checkpoint(cursor={"v": 2})], NOW)

    assert [record.cursor for record in store.run_records("logs")] == [{"v": 2}]


def test_the_latest_alert_of_each_family_is_found_open_or_not(store):
    first = make_alert("1", started_at=1.0, state=AlertState.RESOLVED)
    second = make_alert("2", started_at=2.0)
    nan = make_alert("3", started_at=1.5, family=Family.NONFINITE)
    store.save([make_checkpoint(alert=alert) for alert in (first, second, nan)], NOW)

    latest = store.latest_alerts("logs")

    assert {family: alert.id for family, alert in latest[RUN.key].items()} == {
        Family.LOSS: "2",
        Family.NONFINITE: "3",
    }


def test_an_open_alert_is_the_latest_even_where_the_clock_was_set_back(store):
    before = make_alert("1", started_at=9e9, state=AlertState.RESOLVED)
    after = make_alert("2", started_at=2.0)
    store.save([make_checkpoint(alert=alert) for alert in (before, after)], NOW)

    assert store.latest_alerts("logs")[RUN.key][Family.LOSS].id == "2"


def test_what_was_written_though_nobody_waited_for_it_can_be_written_again(store):
    checkpoint = make_checkpoint(make_entry("n1"), make_entry("n2", "other"))
    store.save([checkpoint], NOW)

    store.save([checkpoint], NOW)

    assert store.waiting(["oncall", "other"]) == 2


def test_a_checkpoint_that_fails_leaves_nothing_of_itself_behind(store):
    good = make_checkpoint(make_entry("n1"), cursor={"v": 1})
    store.save([good], NOW)
    # Its notification can't be written: the whole piece of work is undone.
    bad = make_checkpoint(make_entry("n2", None), cursor={"v": 2}, alert=make_alert("a2"))

    with pytest.raises(sa.exc.IntegrityError):
        store.save([bad], NOW)

    assert store.run_records("logs")[0].cursor == {"v": 1}
    assert store.latest_alerts("logs") == {}


def test_pieces_committed_together_fail_alone(path):
    database.make_place(database.database_url(str(path)))
    engine = database.connect(database.database_url(str(path)), writes=True)
    writer = Writer(engine, guard=lambda connection: None)
    release = threading.Event()
    writer.submit(lambda connection: release.wait(10))  # the next three share a commit
    made = writer.submit(lambda c: c.exec_driver_sql("CREATE TABLE t (n NOT NULL)"))
    failed = writer.submit(lambda c: c.exec_driver_sql("INSERT INTO t VALUES (1), (NULL)"))
    added = writer.submit(lambda c: c.exec_driver_sql("INSERT INTO t VALUES (3)"))
    release.set()

    made.result(10)
    added.result(10)
    assert failed.exception(10) is not None
    assert writer.write(lambda c: c.exec_driver_sql("SELECT n FROM t").scalars().all()) == [3]
    writer.close()
    with pytest.raises(StoreError, match="closed"):
        writer.write(lambda connection: None, timeout_s=5)


# -- outbox ---------------------------------------------------------------------------------------


def test_notifications_of_an_alert_keep_their_order_even_when_the_first_has_to_wait(store):
    alert = make_alert()
    store.save([make_checkpoint(make_entry("n1", alert=alert), make_entry("n2", alert=alert))], NOW)
    first = store.next_notification("oncall")
    store.mark_failed(first, "down", next_at=NOW + 100)

    again = store.next_notification("oncall")

    assert (again.id, again.attempts, again.next_at) == ("n1", 1, NOW + 100)


def test_a_later_episode_waits_until_the_earlier_one_is_told_to_its_end(store):
    first, second = make_alert("1", started_at=1.0), make_alert("2", started_at=2.0)
    ended = replace(first, state=AlertState.RESOLVED)
    resolved = make_entry("n1", alert=ended, event=Event.RESOLVED)
    store.save(
        [
            make_checkpoint(resolved, alert=ended),
            make_checkpoint(make_entry("n2", alert=second), alert=second),
        ],
        NOW,
    )

    store.mark_failed(resolved, "down", next_at=resolved.next_at + 100)

    assert store.next_notification("oncall").id == "n1"


def test_what_stands_behind_one_that_has_to_wait_is_not_due(store):
    alert = make_alert()
    entries = [make_entry("n1", alert=alert), make_entry("n2", alert=alert)]
    store.save([make_checkpoint(*entries, make_entry("n3", "other", alert=alert))], NOW)

    store.mark_failed(entries[0], "down", next_at=NOW + 100)

    both = ["oncall", "other"]
    assert (store.due(both, NOW), store.due(both, NOW + 100), store.waiting(both)) == (1, 2, 3)
    assert (store.due(["other"], NOW), store.waiting(["other"])) == (1, 1)


def test_another_alert_overtakes_one_that_has_to_wait(store):
    store.save(
        [
            make_checkpoint(
                make_entry("n1", alert=make_alert("a1")), make_entry("n2", alert=make_alert("a2"))
            )
        ],
        NOW,
    )
    store.mark_failed(store.next_notification("oncall"), "down", next_at=NOW + 100)

    assert store.next_notification("oncall").id == "n2"


def test_a_sent_notification_is_not_sent_again_and_its_receipt_is_kept(store):
    store.save([make_checkpoint(make_entry("n1"))], NOW)
    entry = store.next_notification("oncall")

    store.mark_sent(entry, Receipt({"channel": "C1", "ts": "1.5"}), NOW)

    assert store.next_notification("oncall") is None
    assert store.receipt("oncall", entry.alert.id) == {"channel": "C1", "ts": "1.5"}
    assert store.receipt("other", entry.alert.id) is None


def test_receivers_do_not_see_each_others_notifications(store):
    store.save([make_checkpoint(make_entry("n1", "a"), make_entry("n2", "b"))], NOW)

    assert store.next_notification("a").id == "n1"
    assert store.next_notification("b").id == "n2"
    assert store.next_notification("c") is None


def test_a_parked_notification_lets_the_next_of_its_alert_through(store):
    store.save([make_checkpoint(make_entry("n1"), make_entry("n2", event=Event.RESOLVED))], NOW)
    store.mark_parked(store.next_notification("oncall"), "no such channel", NOW)

    assert store.next_notification("oncall").id == "n2"
    assert store.waiting(["oncall"]) == 1


def test_what_waits_for_a_receiver_no_longer_configured_is_parked_and_shown(store, path):
    store.save([make_checkpoint(make_entry("n1", "gone"), make_entry("n2", "here"))], NOW)

    assert store.park_strangers(["here"], NOW) == 1

    status = read_status(str(path), NOW)
    assert status.outbox == {"parked": 1, "waiting": 1}
    assert status.undelivered[0][0] == "gone"
    assert "no longer configured" in status.undelivered[0][3]


def test_what_was_parked_is_tried_again_after_a_start(store):
    store.save([make_checkpoint(make_entry("n1"))], NOW)
    store.mark_parked(store.next_notification("oncall"), "no such channel", NOW)

    assert store.retry_parked(["other"], 0.0, NOW) == 0
    assert store.retry_parked(["oncall"], NOW, NOW) == 0  # made too long ago
    assert store.retry_parked(["oncall"], 0.0, NOW) == 1

    assert store.next_notification("oncall").id == "n1"


def test_what_was_parked_stays_so_once_a_later_word_of_its_alert_arrived(store):
    store.save([make_checkpoint(make_entry("n1"), make_entry("n2", event=Event.RESOLVED))], NOW)
    store.mark_parked(store.next_notification("oncall"), "too long", NOW)
    store.mark_sent(store.next_notification("oncall"), Receipt(), NOW)

    assert store.retry_parked(["oncall"], 0.0, NOW) == 0


def test_what_was_parked_stays_so_once_a_later_episode_of_the_same_is_told(store):
    first, second = make_alert("1", started_at=1.0), make_alert("2", started_at=2.0)
    other = make_alert("3", family=Family.NONFINITE)
    for entry, alert in (("n1", first), ("n2", second), ("n3", other)):
        store.save([make_checkpoint(make_entry(entry, alert=alert), alert=alert)], NOW)
    store.mark_parked(store.next_notification("oncall"), "too long", NOW)
    store.mark_sent(store.next_notification("oncall"), Receipt(), NOW)
    store.mark_parked(store.next_notification("oncall"), "too long", NOW)

    assert store.retry_parked(["oncall"], 0.0, NOW) == 1

    assert store.next_notification("oncall").id == "n3"


def test_progress_is_shown_but_the_checkpoint_stays_where_it_was(store, path):
    store.save([make_checkpoint(cursor={"v": 1}, position="row 3", points=3)], NOW)

    store.note_progress([Progress(RUN.key, 9, 9.0, float("nan"), "judging")])

    (run,) = read_status(str(path), NOW).runs
    assert (run.points, run.last_step, run.judging) == (9, 9.0, "judging")
    assert math.isnan(run.last_loss)
    (record,) = store.run_records("logs")
    assert (record.cursor, record.position) == ({"v": 1}, "row 3")


def test_pruning_keeps_what_is_open_or_undelivered(store):
    old = make_alert("old", started_at=1.0, state=AlertState.RESOLVED)
    open_ = make_alert("open", started_at=1.0, family=Family.NONFINITE)
    owed = make_alert("owed", started_at=1.0, state=AlertState.RESOLVED, family=Family.STATE)
    store.save(
        [
            make_checkpoint(make_entry("n1", alert=old), alert=old),
            make_checkpoint(alert=open_),
            make_checkpoint(make_entry("n2", "down", alert=owed), alert=owed),
        ],
        NOW,
    )
    store.mark_sent(store.next_notification("oncall"), Receipt(), NOW)

    store.prune(NOW + 1, gone_before=0.0)

    kept = {alert.id for alert in store.latest_alerts("logs")[RUN.key].values()}
    assert kept == {"open", "owed"}
    assert store.next_notification("down").id == "n2"


# -- ownership ------------------------------------------------------------------------------------


def test_a_second_daemon_on_the_same_file_is_refused_with_the_cure(store, path):
    second = Store(database.database_url(str(path)))

    with pytest.raises(StoreError, match=r"another daemon watches with the state .*--state"):
        second.claim(NOW + 1)

    second.close()


def test_the_place_of_a_daemon_that_was_killed_is_taken_at_once(path):
    code = (
        "import os, sys, time; from wtwin_watch.store import Progress, Store, database;"
        "s = Store(database.database_url(sys.argv[1])); s.claim(time.time()); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    store = Store(database.database_url(str(path)))

    store.claim(NOW)

    assert read_status(str(path), NOW).running
    store.close()


def test_a_daemon_that_lost_its_place_stops_writing(store, path):
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE owner SET token = 'somebody else'")

    with pytest.raises(OwnershipLost):
        store.save([make_checkpoint()], NOW)


HERE = {"host": "a", "boot": "b", "pids": "p", "pid": 1, "started": "77"}


@pytest.mark.parametrize(
    ("holder", "heartbeat_age", "start", "alive"),
    [
        (HERE, 1e9, "77", True),  # it lives, however long it was silent
        (HERE, 0, None, False),  # its process is gone
        (HERE, 0, "99", False),  # another process has its number now
        (HERE | {"boot": "other"}, 1, "77", True),  # another machine: only the heartbeat counts
        (HERE | {"boot": "other"}, owner.SILENT_S + 1, "77", False),
        (HERE | {"boot": None}, 1, None, True),  # nothing known: the heartbeat counts
    ],
)
def test_who_lives_is_told_from_the_process_or_else_from_the_heartbeat(
    holder, heartbeat_age, start, alive
):
    verdict = owner.is_alive(holder, NOW - heartbeat_age, NOW, HERE, lambda pid: start)

    assert verdict is alive


def test_closing_gives_the_place_up(store, path):
    store.close()

    assert not read_status(str(path), NOW).running


# -- place, schema --------------------------------------------------------------------------------


def test_the_state_file_is_readable_by_its_owner_alone(store, path):
    assert path.stat().st_mode & 0o077 == 0


def test_a_place_that_cannot_be_made_is_an_error_naming_the_setting(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="--state"):
        Store(database.database_url(str(tmp_path / "file" / "state.db")))


def test_a_file_that_is_no_database_is_an_error_naming_the_cure(tmp_path):
    path = tmp_path / "state.db"
    path.write_bytes(b"this is a text, and long enough to be taken for a page of a database" * 20)

    with pytest.raises(StoreError, match="--state"):
        Store(database.database_url(str(path)))


def test_a_database_of_a_newer_version_is_left_alone(store, path):
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(StoreError, match="newer version"):
        Store(database.database_url(str(path)))


def test_an_unknown_database_driver_is_an_error_naming_what_to_install():
    with pytest.raises(StoreError, match="psycopg"):
        Store(database.database_url("postgresql+nosuch://host/db"))


def test_the_migrations_make_the_tables_that_the_code_uses(store, path):
    engine = database.connect(database.database_url(str(path)), writes=False)
    inspector = sa.inspect(engine)

    for table in tables.metadata.sorted_tables:
        made = {column["name"]: column for column in inspector.get_columns(table.name)}
        assert set(made) == {column.name for column in table.columns}, table.name
        for column in table.columns:
            assert made[column.name]["nullable"] == column.nullable, (table.name, column.name)
        assert {index["name"] for index in inspector.get_indexes(table.name)} == {
            index.name for index in table.indexes
        }
    engine.dispose()


def test_a_state_of_the_first_schema_is_taken_over_with_its_runs(path):
    from alembic import command
    from alembic.config import Config

    url = database.database_url(str(path))
    database.make_place(url)
    config = Config()
    config.set_main_option("script_location", "wtwin_watch:store/migrations")
    engine = database.connect(url, writes=True)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.exec_driver_sql(
            "INSERT INTO runs (source, run, run_json, backlog, skipped_json, roles_json, points, judging,"
            " first_seen_at, saved_at) VALUES ('logs', 'a.csv',"
            ' \'{"key": {"source": "logs", "run": "a.csv"}, "name": "a"}\','
            " 0, '{}', '{}', 7, '', 1.0, 2.0)"
        )
    engine.dispose()

    store = Store(url)

    (record,) = store.run_records("logs", resting=False)
    assert (record.run.name, record.points) == ("a", 7)
    assert (record.attempt, record.gone_since, record.resting) == (1, None, False)
    store.close()


def test_forgetting_empties_everything_but_the_ownership(store, path):
    store.save([make_checkpoint(make_entry("n1"), alert=make_alert())], NOW)

    store.forget()

    status = read_status(str(path), NOW)
    assert (status.runs, status.alerts, status.outbox) == ((), (), {})
    assert status.running


def test_a_copy_of_the_state_is_whole_and_free_for_another_to_own(store, path, tmp_path):
    store.save([make_checkpoint(make_entry("n1"), cursor={"v": 1})], NOW)
    (tmp_path / "elsewhere").mkdir()

    copied = Store(database.copy(database.database_url(str(path)), tmp_path / "elsewhere"))
    copied.claim(NOW)
    copied.mark_parked(copied.next_notification("oncall"), "only here", NOW)

    assert copied.run_records("logs")[0].cursor == {"v": 1}
    assert store.next_notification("oncall").id == "n1"
    copied.close()


def test_a_copy_of_a_state_that_is_not_there_is_empty(tmp_path):
    url = database.copy(database.database_url(str(tmp_path / "none.db")), tmp_path)

    copied = Store(url)

    assert copied.run_records("logs") == []
    copied.close()


def test_damage_in_the_middle_of_the_file_is_an_error_of_the_store(store, path):
    store.save([make_checkpoint(cursor={"v": i}, points=i) for i in range(50)], NOW)
    store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)

    with pytest.raises(StoreError, match="can't be"):
        Store(database.database_url(str(path))).run_records("logs")


def test_a_state_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(StoreError, match="no daemon has run"):
        read_status(str(tmp_path / "none.db"), NOW)


def test_a_database_is_shown_without_its_password():
    url = database.database_url("postgresql+psycopg://me:hunter2@host:5432/db")

    assert "hunter2" not in database.shown(url)
    assert "host" in database.shown(url)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), 1.5, 0.0])
def test_every_number_is_stored_as_json_and_comes_back(number):
    run = Run(RunKey("s", "r"), "r", last_activity=number)

    text = codec.dump_record(run)

    assert repr(codec.load_run(text)) == repr(run)
    assert "nan" not in text


def test_a_notification_comes_back_with_those_it_is_told_with(store):
    other = Run(RunKey("logs", "b.csv"), "b", group="sweep")
    companion = Companion(make_alert("alert-2", run=other), other)
    entry = replace(make_entry("n1"), others=(companion,), size=7)

    store.save([make_checkpoint(entry)], NOW)

    told = store.next_notification("oncall")
    assert (told.others, told.size) == ((companion,), 7)


def test_what_people_were_being_told_of_is_remembered(store):
    waiting, over = make_alert("waiting"), make_alert("over", state=AlertState.RESOLVED)
    quiet, aside = make_alert("quiet", quiet=True), make_alert("aside")
    kept = GroupChange("oncall", "over", {"members": {"over": None}})
    transitions = [
        Transition(alert, Reason.STARTED, NOW) for alert in (waiting, over, quiet, aside)
    ]
    store.save([make_checkpoint(make_entry("n1", alert=aside))], NOW)
    store.save([Checkpoint(transitions=transitions, groups=[kept])], NOW)

    remembered = store.remembered()
    assert {subject.alert.id for subject in remembered.subjects} == {"waiting", "over", "aside"}
    assert remembered.groups == [kept]
    assert remembered.told == [("oncall", "aside")]

    store.save([Checkpoint(groups=[replace(kept, state=None)])], NOW)
    assert store.remembered().groups == []
