from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.records import make_alert, make_checkpoint, make_entry
from wtwin_watch.model import AlertState, Event, Receipt
from wtwin_watch.store import Store


def fill(store: Store, *names: str, receiver: str = "oncall") -> None:
    """Owe a notification about an alert of its own each."""
    for name in names:
        alert = make_alert(f"alert-{name}")
        entry = make_entry(name, receiver, alert=alert)
        store.save([make_checkpoint(entry, alert=alert)], 2e9)


def park(store: Store, receiver: str = "oncall") -> None:
    entry = store.next_notification(receiver)
    assert entry is not None
    store.mark_parked(entry, "channel_not_found: check the channel", 2e9)


def test_what_is_not_delivered_is_listed_with_the_reason(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    fill(store, "n1", "n2")
    park(store)

    done = wtwin_watch("outbox", "--state", state_path)

    assert (done.code, done.err) == (0, "")
    first, second = done.out.splitlines()
    assert first.startswith("n1  oncall  parked   firing  a  since ")
    assert first.endswith("1 attempts  channel_not_found: check the channel")
    assert second.startswith("n2  oncall  waiting  firing  a  since ")


def test_an_empty_outbox_says_so(wtwin_watch: CommandLine, state_path: Path, store: Store):
    assert wtwin_watch("outbox", "--state", state_path).out == "everything is delivered\n"
    assert wtwin_watch("outbox", "list", "--state", state_path, "--json").json == []


def test_a_parked_notification_is_tried_again(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    fill(store, "n1")
    park(store)
    assert store.next_notification("oncall") is None

    done = wtwin_watch("outbox", "retry", "n1", "--state", state_path)

    assert (done.code, done.out) == (0, "1 tried again\n")
    entry = store.next_notification("oncall")
    assert entry is not None
    assert (entry.id, entry.attempts) == ("n1", 1)


def test_retry_without_an_id_takes_all_that_is_parked_for_the_receiver(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    fill(store, "n1")
    park(store)
    fill(store, "m1", receiver="team")
    park(store, "team")

    done = wtwin_watch("outbox", "retry", "--receiver", "team", "--state", state_path, "--json")

    assert [entry["id"] for entry in done.json] == ["m1"]
    assert store.next_notification("oncall") is None
    assert store.next_notification("team") is not None


def test_what_a_later_word_has_overtaken_stays_parked(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    fill(store, "n1")
    park(store)
    over = make_alert("alert-n1", state=AlertState.RESOLVED, resolved_at=2e9)
    store.save([make_checkpoint(make_entry("n2", alert=over, event=Event.RESOLVED))], 2e9)
    entry = store.next_notification("oncall")
    assert entry is not None
    store.mark_sent(entry, Receipt(), 2e9)

    named = wtwin_watch("outbox", "retry", "n1", "--state", state_path)
    everything = wtwin_watch("outbox", "retry", "--state", state_path)

    assert named.code == 2
    assert "a later word about the same alert was delivered" in named.err
    assert everything.out == "0 tried again\n"


def test_a_dropped_notification_is_never_sent(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    fill(store, "n1", "n2")

    done = wtwin_watch("outbox", "drop", "n1", "--state", state_path)

    assert (done.code, done.out) == (0, "1 dropped\n")
    entry = store.next_notification("oncall")
    assert entry is not None
    assert entry.id == "n2"
    assert wtwin_watch("outbox", "retry", "n1", "--state", state_path).code == 2


def test_all_of_a_receiver_can_be_dropped_but_not_everything_by_mistake(
    wtwin_watch: CommandLine, state_path: Path, store: Store
):
    fill(store, "n1", "n2")
    fill(store, "m1", receiver="team")

    assert wtwin_watch("outbox", "drop", "--state", state_path).code == 2
    assert wtwin_watch("outbox", "drop", "--receiver", "oncall", "--state", state_path).code == 0

    assert store.next_notification("oncall") is None
    assert store.next_notification("team") is not None


@pytest.mark.parametrize(("given", "why"), [("x", "no notification"), ("n", "more than one")])
def test_an_id_that_is_no_notifications_own_is_refused(
    wtwin_watch: CommandLine, state_path: Path, store: Store, given: str, why: str
):
    fill(store, "n1", "n2")

    done = wtwin_watch("outbox", "drop", given, "--state", state_path)

    assert done.code == 2
    assert why in done.err


def test_there_is_no_outbox_without_a_state(wtwin_watch: CommandLine, state_path: Path):
    done = wtwin_watch("outbox", "--state", state_path)

    assert done.code == 69
    assert "there is no state at" in done.err
    assert not state_path.exists()
