"""The commands that ask the daemon about an alert."""

import threading
import time
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.records import make_alert, make_checkpoint
from wtwin_watch.cli import asking
from wtwin_watch.model import AlertState
from wtwin_watch.store import Answer, Checkpoint, Store, Verb


def fire(store: Store, *ids: str) -> None:
    store.save([make_checkpoint(alert=make_alert(id_)) for id_ in ids], 2e9)


class Daemon:
    """Takes requests up as the engine does, with the same outcome for each."""

    def __init__(self, store: Store, outcome: str, *, refused: bool = False) -> None:
        self.store, self.outcome, self.refused = store, outcome, refused
        self.requests = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        while not self.over.wait(0.01):
            for request in self.store.requests():
                self.requests.append(request)
                answer = Answer(request.seq, self.outcome, self.refused)
                self.store.save([Checkpoint(answers=(answer,))], time.time())

    def __enter__(self) -> "Daemon":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


@pytest.fixture
def idle(state_path: Path, store: Store) -> Store:
    """A state with an open alert, whose daemon has stopped."""
    fire(store, "3f2a-1", "3f2b-2")
    store.close()
    return store


def test_an_alert_is_acknowledged_by_the_first_characters_of_its_id(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    fire(store, "3f2a-1", "3f2b-2")
    with Daemon(store, "acknowledged by ada") as daemon:
        done = wtwin_watch(
            "ack",
            "3f2a",
            "--by",
            "ada",
            "--comment",
            "on  it\n",
            "--for",
            "2h",
            "--state",
            state_path,
        )

    assert (done.code, done.out, done.err) == (0, "3f2a-1  acknowledged by ada\n", "")
    [request] = daemon.requests
    assert (request.verb, request.alert_id, request.by) == (Verb.ACKNOWLEDGE, "3f2a-1", "ada")
    assert request.comment == "on it"
    assert request.until - request.at == pytest.approx(7200.0, abs=1e-3)


def test_several_alerts_are_asked_for_at_once(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    fire(store, "3f2a-1", "3f2b-2")
    with Daemon(store, "no longer acknowledged") as daemon:
        done = wtwin_watch("ack", "3f2b", "3f2a", "--undo", "--state", state_path, "--json")

    assert done.code == 0
    assert [(one["alert"], one["verb"], one["state"]) for one in done.json] == [
        ("3f2b-2", "unacknowledge", "done"),
        ("3f2a-1", "unacknowledge", "done"),
    ]
    assert done.json[0]["outcome"] == "no longer acknowledged"
    assert len(daemon.requests) == 2


def test_a_refusal_is_exit_code_2(wtwin_watch: CommandLine, state_path: Path, store: Store):
    fire(store, "3f2a-1")
    with Daemon(store, "a NaN is no level", refused=True):
        done = wtwin_watch("accept", "3f2a", "--by", "ada", "--state", state_path)

    assert (done.code, done.out) == (2, "3f2a-1  not done: a NaN is no level\n")


@pytest.mark.parametrize("verb", ["ack", "accept"])
def test_without_a_daemon_it_is_noted_for_the_next_start(
    wtwin_watch: CommandLine, state_path: Path, idle: Store, verb: str
):
    done = wtwin_watch(verb, "3f2a", "--by", "ada", "--state", state_path)

    assert (done.code, done.err) == (0, "")
    assert done.out == "3f2a-1  no daemon is running; it is done when one starts\n"
    [plain] = wtwin_watch(verb, "3f2a", "--by", "ada", "--state", state_path, "--json").json
    assert (plain["state"], plain["outcome"], plain["daemon"]) == ("waiting", None, False)


def test_a_daemon_that_does_not_answer_is_exit_code_69_and_the_request_stays(
    wtwin_watch: CommandLine, state_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(asking, "PATIENCE_S", 0.3)
    monkeypatch.setattr(asking, "SAY_AFTER_S", 0.0)
    fire(store, "3f2a-1")

    done = wtwin_watch("ack", "3f2a", "--by", "ada", "--state", state_path)

    assert (done.code, done.out) == (
        69,
        "3f2a-1  not answered yet; the daemon does it when it can\n",
    )
    assert done.err == "waiting for the daemon to answer …\n"
    assert [request.alert_id for request in store.requests()] == ["3f2a-1"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["ack", "ffff"], "ffff: no such alert"),
        (["ack", "3f2"], "3f2: more than one alert begins so"),
        (["ack", "3f2a", "ffff"], "ffff: no such alert"),
        (["ack", "over"], "over: the alert is resolved already: it is back"),
        (["accept", "over"], "over: the alert is resolved already: it is back"),
        (["ack"], "missing argument"),
        (["ack", "3f2a", "--for", "2h", "--until", "2027-01-01T00:00Z"], "say the same thing"),
        (["ack", "3f2a", "--until", "2020-01-01T00:00Z"], "within the next 366 days"),
        (["ack", "3f2a", "--until", "2999-01-01T00:00Z"], "within the next 366 days"),
        (["ack", "3f2a", "--until", "2027-01-01T00:00"], "with its time zone"),
        (["ack", "3f2a", "--until", "tomorrow"], "should be a time such as"),
        (["ack", "3f2a", "--for", "soon"], "should be a duration such as"),
        (["ack", "3f2a", "--for", "0s"], "longer than nothing"),
        (["ack", "3f2a", "--undo", "--for", "2h"], "--undo takes no --for"),
        (["ack", "3f2a", "--comment", " "], "--comment is missing or empty"),
        (["ack", "3f2a", "--by", "x" * 101], "--by should have at most 100 characters"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_what_is_asked_wrongly_is_exit_code_2_and_asks_for_nothing(
    wtwin_watch: CommandLine, state_path: Path, store: Store, arguments: list[str], why: str
):
    fire(store, "3f2a-1", "3f2b-2")
    over = make_alert("over-1", state=AlertState.RESOLVED, outcome="it is back")
    store.save([make_checkpoint(alert=over)], 2e9)

    done = wtwin_watch(*arguments, "--state", state_path)

    assert done.code == 2
    assert why in done.err
    assert store.requests() == []


def test_who_is_not_named_is_who_is_logged_in(
    wtwin_watch: CommandLine, state_path: Path, idle: Store, monkeypatch: pytest.MonkeyPatch
):
    for name, value in {"LOGNAME": "grace", "USER": "grace"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SUDO_USER", raising=False)
    assert wtwin_watch("ack", "3f2a", "--state", state_path, "--json").json[0]["by"] == "grace"

    monkeypatch.setenv("SUDO_USER", "ada")
    assert wtwin_watch("ack", "3f2a", "--state", state_path, "--json").json[0]["by"] == "ada"


def test_there_is_nothing_to_ask_without_a_state(wtwin_watch: CommandLine, state_path: Path):
    assert wtwin_watch("ack", "3f2a", "--by", "ada", "--state", state_path).code == 69
