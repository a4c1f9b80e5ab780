"""The engine: what is read is judged once, saved with what follows from it, and told."""

import math
import time
from dataclasses import replace

import pytest

from tests.support.memory import World, hang
from wtwin_watch.alerting.lifecycle import Policy
from wtwin_watch.errors import OwnershipLost, SourceError, StoreError
from wtwin_watch.ingest import engine as engine_module
from wtwin_watch.ingest import poller as poller_module
from wtwin_watch.model import Restart, Severity
from wtwin_watch.monitor.run import ClassicOptions
from wtwin_watch.store import Checkpoint, read_status

HEALTHY = [2.0 + 0.01 * math.sin(i) for i in range(20)]
NAN = [math.nan]
RECOVERED = HEALTHY * 4


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.store.close()


def seen(world, losses=HEALTHY, run="a"):
    """Let the engine get to know a run that is well."""
    world.source.log(run, losses)
    world.settle()


def test_a_nan_is_told_once_and_its_end_after_64_finite_points(world):
    seen(world)

    world.source.log("a", NAN)
    world.settle(2)
    world.source.log("a", RECOVERED[:63])
    world.settle(2)
    assert world.outbox() == [("firing", "a", "nonfinite")]
    world.source.log("a", [2.0])
    world.settle(2)

    assert world.outbox() == [("firing", "a", "nonfinite"), ("resolved", "a", "nonfinite")]
    assert world.wakes == 2


def test_an_alert_that_had_to_wait_tells_the_loss_of_now_as_well(tmp_path):
    world = World(tmp_path, policy=Policy(for_s=10, cooldown_s=0))
    seen(world)
    world.source.log("a", [math.nan, 7.25])
    world.settle(2)
    world.settle(20)

    entry = world.store.next_notification("oncall")
    assert entry.alert.detection.step == 21.0
    assert entry.alert.detection.evidence == ("now 7.25 at step 22",)
    world.store.close()


def test_every_receiver_is_told(tmp_path):
    world = World(tmp_path, receivers=("one", "two"))
    seen(world)

    world.source.log("a", NAN)
    world.settle(2)

    assert world.store.next_notification("one").id != world.store.next_notification("two").id
    world.store.close()


def test_history_found_at_first_sight_is_told_to_nobody_and_kept(world):
    world.source.log("a", HEALTHY + NAN + RECOVERED)
    world.settle()

    assert world.outbox() == []
    latest = world.store.latest_alerts("memory")
    assert [alert.quiet for families in latest.values() for alert in families.values()] == [True]


def test_what_is_wrong_at_first_sight_is_told(world):
    world.source.log("a", HEALTHY + NAN)
    world.settle()

    assert world.outbox() == [("firing", "a", "nonfinite")]


def test_a_run_already_old_at_first_sight_pages_nobody(world):
    world.source.log("a", HEALTHY + NAN)
    world.source.last_activity["a"] = world.clock.now - 4000

    world.settle()

    assert world.outbox() == []


def test_a_first_row_that_is_no_number_is_told_after_a_minute_without_a_second(world):
    world.source.log("a", NAN[:1])
    world.settle()
    world.pass_time(50.0)
    assert world.outbox() == []

    world.pass_time(20.0)

    assert world.outbox() == [("firing", "a", "nonfinite")]


def test_a_first_row_that_is_no_number_and_already_old_pages_nobody(world):
    world.source.log("a", NAN[:1])
    world.source.last_activity["a"] = world.clock.now - 4000

    world.settle()
    world.pass_time(200.0)

    assert world.outbox() == []
    (record,) = world.store.run_records("memory")
    assert record.points == 1


def test_of_a_first_row_that_is_a_number_nothing_is_said(world):
    world.source.log("a", HEALTHY[:1])
    world.settle()
    world.pass_time(200.0)

    assert world.outbox() == []


def test_a_long_history_is_read_in_pieces_and_stays_quiet_to_its_end(world, monkeypatch):
    monkeypatch.setattr(poller_module, "FETCH_LIMIT", 10)
    world.source.log("a", HEALTHY + NAN + RECOVERED)

    world.settle()

    assert len(world.source.fetches) == 11
    assert world.outbox() == []
    assert world.store.run_records("memory")[0].points == 101


def test_after_a_crash_no_point_counts_twice_and_no_alert_is_lost(world):
    seen(world)
    world.source.log("a", HEALTHY)
    world.settle(2)  # read, but not saved: nothing has changed that must be
    world.kill()
    world.source.log("a", NAN)
    world.start()
    world.settle(2)

    (record,) = world.store.run_records("memory")
    assert record.points == 41
    assert world.outbox() == [("firing", "a", "nonfinite")]


def test_an_alert_that_came_and_went_while_the_daemon_was_down_is_told(world):
    seen(world)
    world.kill()
    world.source.log("a", NAN + RECOVERED)
    world.start()
    world.settle(2)

    assert [event for event, _, _ in world.outbox()] == ["firing", "resolved"]


def test_a_daemon_that_starts_again_goes_on_with_open_alerts(world):
    seen(world)
    world.source.log("a", NAN)
    world.settle(2)
    world.kill()
    world.start()
    world.settle(2)
    world.source.log("a", RECOVERED)
    world.settle(2)

    assert [event for event, _, _ in world.outbox()] == ["firing", "resolved"]


def test_an_idle_run_is_not_fetched_again(world):
    seen(world)
    fetches = len(world.source.fetches)

    for _ in range(5):
        world.settle(2)

    assert world.source.looks >= 6
    assert len(world.source.fetches) == fetches


def test_a_moving_run_is_saved_about_once_a_minute(world, monkeypatch):
    seen(world)
    saved = []
    monkeypatch.setattr(world.store, "save", lambda checkpoints, now: saved.append(now))

    for _ in range(45):
        world.source.log("a", [2.0])
        world.settle(2)

    assert 1 <= len(saved) <= 3


def test_how_far_a_run_has_come_is_shown_between_checkpoints(world):
    seen(world)
    world.source.log("a", [1.5])
    world.settle(2)

    world.engine.note_progress()

    (run,) = read_status(world.url.database, world.clock.now).runs
    assert (run.points, run.last_step, run.last_loss) == (21, 21.0, 1.5)
    assert "still learning" in run.judging


def test_a_source_that_cannot_be_read_is_one_alert_after_its_grace_and_freezes_its_runs(world):
    seen(world)
    world.source.log("b", HEALTHY)
    world.settle(2)
    world.source.down = "no such folder"
    world.settle(2)
    assert world.engine.blind == ["memory"]
    assert world.outbox() == []
    for _ in range(40):
        world.settle(2)
    assert world.outbox() == [("firing", "", "source_down")]
    world.source.down = None
    for _ in range(40):
        world.settle(2)

    assert world.outbox() == [("firing", "", "source_down"), ("resolved", "", "source_down")]
    assert world.engine.blind == []


def test_it_is_written_down_when_a_source_was_last_seen(world):
    seen(world)

    first = read_status(world.url.database, world.clock.now).sources[0].seen_at
    for _ in range(40):
        world.settle(2)

    assert world.clock.now - 65 <= read_status(world.url.database, 0.0).sources[0].seen_at
    assert first < world.clock.now - 65


def test_a_short_outage_of_a_source_is_told_to_nobody(world):
    seen(world)
    world.source.down = "no such folder"
    world.settle(2)
    world.source.down = None
    world.settle(30)
    for _ in range(40):
        world.settle(2)

    assert world.outbox() == []


def test_a_pending_alert_of_a_source_that_is_down_does_not_fire(tmp_path):
    world = World(tmp_path, policy=Policy(for_s=10, cooldown_s=0))
    seen(world)
    world.source.log("a", NAN)
    world.settle(2)
    world.source.down = "gone"
    world.settle(2)
    for _ in range(10):
        world.settle(2)
    assert ("firing", "a", "nonfinite") not in world.outbox()
    world.source.down = None
    for _ in range(20):
        world.settle(4)

    assert ("firing", "a", "nonfinite") in world.outbox()
    world.store.close()


def test_a_run_that_cannot_be_read_does_not_stop_the_others_and_is_shown(world):
    seen(world)
    seen(world, run="poisoned")
    world.source.broken["poisoned"] = SourceError("permission denied")
    world.source.log("poisoned", HEALTHY)
    world.source.log("a", NAN)
    world.settle(2)

    assert world.outbox() == [("firing", "a", "nonfinite")]
    assert world.engine.blind == ["memory"]
    status = read_status(world.url.database, world.clock.now)
    assert "1 of 2 runs can't be read: permission denied" in status.sources[0].error


def test_one_unreadable_run_is_a_warning_that_does_not_say_the_source_is_down(world):
    seen(world)
    seen(world, run="poisoned")
    world.source.broken["poisoned"] = SourceError("permission denied")
    world.source.log("poisoned", HEALTHY)
    for _ in range(40):
        world.settle(2)

    assert world.outbox() == [("firing", "", "source_partly_down")]
    alert = world.store.next_notification("oncall").alert
    assert alert.severity is Severity.WARNING
    assert "1 of 2 runs can't be read: permission denied" in alert.detection.summary
    world.source.down = "the folder is gone"
    world.settle(30)
    assert world.outbox()[1:] == [("changed", "", "source_down")]


def test_a_run_that_can_be_read_again_goes_on_where_it_stopped(world):
    seen(world)
    world.source.broken["a"] = SourceError("permission denied")
    world.source.log("a", HEALTHY)
    world.settle(2)
    del world.source.broken["a"]
    world.settle(10)

    assert world.engine.blind == []
    world.engine.close()
    assert world.store.run_records("memory")[0].points == 40


def test_a_run_that_could_not_be_read_and_is_gone_leaves_its_source_well(world):
    seen(world)
    seen(world, run="brief")
    world.source.broken["brief"] = SourceError("no such file")
    world.source.log("brief", HEALTHY)
    world.settle(2)
    assert world.engine.blind == ["memory"]
    del world.source.logs["brief"]
    for _ in range(60):
        world.settle(2)

    assert world.engine.blind == []
    assert world.outbox() == []


def test_a_run_that_cannot_be_read_holds_back_no_alert_of_another(tmp_path):
    world = World(tmp_path, policy=Policy(for_s=10, cooldown_s=0))
    seen(world)
    seen(world, run="poisoned")
    world.source.log("poisoned", NAN)
    world.source.log("a", NAN)
    world.settle(2)
    world.source.broken["poisoned"] = SourceError("permission denied")
    world.source.log("poisoned", HEALTHY)
    world.settle(2)
    for _ in range(10):
        world.settle(2)

    assert world.outbox() == [("firing", "a", "nonfinite")]
    world.store.close()


def test_an_error_that_names_a_file_whose_name_is_no_unicode_can_be_stored(world):
    seen(world)
    world.source.down = "/runs/caf\udce9 can't be read"
    world.settle(2)

    assert read_status(world.url.database, 0.0).sources[0].error == "/runs/caf\\udce9 can't be read"


def test_many_runs_cost_few_commits(world, monkeypatch):
    commits = []
    save, save_source = world.store.save, world.store.save_source
    monkeypatch.setattr(world.store, "save", lambda *args: commits.append(1) or save(*args))
    monkeypatch.setattr(
        world.store, "save_source", lambda record: commits.append(1) or save_source(record)
    )
    for n in range(50):
        world.source.log(f"run {n}", HEALTHY)
    world.settle()
    assert len(world.store.run_records("memory")) == 50
    for n in range(50):
        world.source.broken[f"run {n}"] = SourceError("permission denied")
        world.source.log(f"run {n}", HEALTHY)
    world.settle(2)

    assert len(commits) < 10


def test_a_long_history_leaves_time_for_everything_else(world, monkeypatch):
    monkeypatch.setattr(poller_module, "FETCH_LIMIT", 1)
    world.source.log("a", HEALTHY * 20)
    deadline = time.monotonic() + 20
    turns = 0
    while not world.engine.answered or world.engine.busy:
        assert time.monotonic() < deadline
        world.engine.turn(0.05)
        turns += 1

    assert turns >= 400 / engine_module.QUEUE_SIZE


def test_an_adapter_that_fails_unexpectedly_shows_its_error_class_but_not_its_text(world):
    seen(world)
    world.source.broken["a"] = RuntimeError("https://user:secret@host")
    world.source.log("a", HEALTHY)
    world.settle(2)

    status = read_status(world.url.database, world.clock.now)
    assert "RuntimeError" in status.sources[0].error
    assert "secret" not in status.sources[0].error


def test_a_fetch_that_hangs_is_given_up_and_the_other_runs_go_on(world):
    seen(world)
    seen(world, run="stuck")
    release = world.source.hanging["stuck"] = hang()
    world.source.log("stuck", HEALTHY)
    world.engine.turn(0.01)
    world.clock.now += 2
    world.engine.turn(0.2)
    world.engine.turn(0.2)
    world.source.log("a", NAN)
    for _ in range(10):
        world.clock.now += 2
        world.engine.turn(0.05)
    assert world.outbox() == [("firing", "a", "nonfinite")]
    world.clock.now += poller_module.DEADLINE_S
    world.engine.turn(0.0)
    world.engine.turn(0.0)

    assert world.engine.blind == ["memory"]
    assert not world.engine.hopeless
    release.set()


def test_a_log_that_starts_anew_ends_what_was_open(world):
    seen(world)
    world.source.log("a", NAN)
    world.settle(2)
    world.source.logs["a"].clear()
    world.source.log("a", HEALTHY)
    world.source.restarts["a"] = Restart("the file was replaced")
    world.settle(2)

    assert [event for event, _, _ in world.outbox()] == ["firing", "resolved"]


def test_a_state_that_cannot_be_written_loses_nothing_and_is_written_later(world, monkeypatch):
    seen(world)
    write = world.store.save

    def full(checkpoints, now):
        raise StoreError("the disk is full")

    monkeypatch.setattr(world.store, "save", full)
    world.source.log("a", NAN)
    world.settle(2)
    world.source.log("a", RECOVERED)
    world.settle(2)
    assert world.outbox() == []
    monkeypatch.setattr(world.store, "save", write)
    world.settle(10)

    assert [event for event, _, _ in world.outbox()] == ["firing", "resolved"]


def test_while_the_state_cannot_be_written_memory_does_not_grow(world, monkeypatch):
    seen(world)
    write = world.store.save
    sizes = []

    def full(checkpoints, now):
        sizes.append(len(checkpoints))
        raise StoreError("the disk is full")

    monkeypatch.setattr(world.store, "save", full)
    for _ in range(20):
        world.source.log("a", HEALTHY)
        world.settle(61)
    assert max(sizes) == 1
    monkeypatch.setattr(world.store, "save", write)
    world.settle(61)

    assert world.store.run_records("memory")[0].points == 20 * 21


def test_an_engine_whose_place_was_taken_stops(world, monkeypatch):
    seen(world)

    def lost(checkpoints, now):
        raise OwnershipLost("taken over")

    monkeypatch.setattr(world.store, "save", lost)
    world.source.log("a", NAN)

    with pytest.raises(OwnershipLost):
        world.settle(2)


def test_a_monitor_that_fails_sets_its_run_aside_as_it_was_last_saved(world, monkeypatch):
    seen(world)
    seen(world, run="b")
    monitor = world.engine._pollers["memory"].roster.awake["a"].monitor
    monkeypatch.setattr(
        type(monitor), "feed", lambda self, points: 1 / 0 if self is monitor else []
    )
    world.source.log("a", HEALTHY)
    world.settle(2)

    assert world.engine.blind == ["memory"]
    monkeypatch.undo()
    world.settle(20)
    assert world.engine.blind == []
    world.engine.close()
    points = {r.run.key.run: r.points for r in world.store.run_records("memory")}
    assert points["a"] == 40


def test_history_is_read_anew_where_the_stored_monitor_cannot_be_used(world):
    seen(world)
    world.engine.close()
    (record,) = world.store.run_records("memory")
    changed = replace(record, monitor=record.monitor | {"state": {"version": 999}})
    world.store.save([Checkpoint(changed)], world.clock.now)
    world.kill()
    world.start()
    world.settle()

    world.engine.close()
    assert world.store.run_records("memory")[0].points == 20
    assert world.outbox() == []


def test_other_settings_of_the_detector_read_the_history_anew(world):
    seen(world)
    world.engine.close()
    world.kill()
    fetches = len(world.source.fetches)
    world.start(detector=ClassicOptions(alpha=3.0))
    world.settle()

    assert world.source.fetches[fetches] == ("a", None)


@pytest.mark.parametrize(
    ("later", "told"),
    [([], ["firing"]), (RECOVERED, ["firing", "resolved"])],
    ids=["still wrong", "well again"],
)
def test_an_alert_that_is_open_when_the_settings_change_is_told_once_with_its_end(
    world, later, told
):
    seen(world, NAN + RECOVERED)
    world.source.log("a", NAN)
    world.settle(2)
    world.engine.close()
    world.kill()
    world.source.log("a", later)
    world.start(detector=ClassicOptions(alpha=3.0))
    world.settle()
    assert [event for event, _, _ in world.outbox()] == told
    world.source.log("a", RECOVERED)
    world.settle(2)

    assert [event for event, _, _ in world.outbox()] == ["firing", "resolved"]


def test_an_alert_that_other_settings_do_not_see_ends(world):
    seen(world, [2.0 * step**-0.5 + 0.02 * math.sin(step**2) for step in range(1, 400)])
    world.source.log("a", [3.0 + 0.02 * math.sin(step**2) for step in range(20)])
    world.settle(2)
    assert world.outbox() == [("firing", "a", "drift")]
    world.engine.close()
    world.kill()
    world.start(detector=ClassicOptions(alpha=1e6))
    world.settle()

    assert world.outbox() == [("firing", "a", "drift"), ("resolved", "a", "drift")]
    assert world.engine.firing == 0


def test_looking_once_looks_once(world):
    world.source.log("a", HEALTHY)
    world.kill()
    world.source.looks = 0
    world.start(once=True)
    world.settle()
    world.settle(100)

    assert world.source.looks == 1
