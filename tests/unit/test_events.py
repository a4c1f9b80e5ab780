"""File events: a change in a watched folder is heard, also after the folder was made anew."""

import shutil
import threading

import pytest
import structlog.testing

from wtwin_watch.ingest import events as events_module
from wtwin_watch.ingest.events import FileEvents


@pytest.fixture
def events():
    events = FileEvents()
    yield events
    events.close()


def test_a_change_below_the_folder_is_heard_and_our_own_reading_is_not(events, tmp_path):
    log = tmp_path / "deep" / "run.csv"
    log.parent.mkdir()
    log.write_text("step,loss\n")
    heard = threading.Event()
    events.watch("logs", [tmp_path], heard.set)
    assert events.wait(20)

    log.read_text()
    assert not heard.wait(0.5)
    with log.open("a") as file:
        file.write("1,2.0\n")

    assert heard.wait(5)


def test_a_folder_that_was_deleted_and_made_again_is_heard_by_all_that_watch_it(events, tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    one, two = threading.Event(), threading.Event()
    events.watch("one", [folder], one.set)
    events.watch("two", [folder], two.set)
    assert events.wait(20)
    shutil.rmtree(folder)
    (tmp_path / "another").mkdir()  # takes the number of the folder that is gone
    folder.mkdir()
    events.watch("one", [folder], one.set)
    events.watch("two", [folder], two.set)
    assert events.wait(20)
    one.clear()
    two.clear()

    (folder / "run.csv").write_text("step,loss\n")

    assert one.wait(5)
    assert two.wait(5)


def test_a_folder_that_is_not_there_is_passed_over(events, tmp_path):
    events.watch("logs", [tmp_path / "none"], lambda: None)
    assert events.wait(20)

    assert not (tmp_path / "none").exists()


def test_a_machine_without_room_for_file_events_is_watched_by_polling_alone(
    events, tmp_path, monkeypatch
):
    def no_room():
        raise OSError(24, "inotify instance limit reached")

    monkeypatch.setattr(events_module, "Observer", no_room)

    with structlog.testing.capture_logs() as said:
        events.watch("logs", [tmp_path], lambda: None)
        assert events.wait(20)
        events.watch("logs", [tmp_path], lambda: None)
        assert events.wait(20)

    assert [line["event"] for line in said] == ["file events unavailable, polling alone"]


def test_a_folder_whose_watch_is_never_set_up_keeps_nobody_waiting(events, tmp_path, monkeypatch):
    release, entered = threading.Event(), threading.Event()

    def hang(self, name, wish):
        entered.set()
        release.wait(30)

    monkeypatch.setattr(FileEvents, "_watch", hang)
    events.watch("dead mount", [tmp_path], lambda: None)
    assert entered.wait(20)
    events.watch("logs", [tmp_path], lambda: None)

    assert not events.wait(0)
    release.set()
