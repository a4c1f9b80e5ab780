"""The store on a real PostgreSQL server does what it does on SQLite."""

import time

import pytest

from tests.support import postgres
from tests.support.records import RUN, make_alert, make_checkpoint, make_entry
from wtwin_watch.errors import StoreError
from wtwin_watch.model import AlertState, Family, Receipt
from wtwin_watch.store import Store, database, read_status

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(postgres.missing() is not None, reason=str(postgres.missing())),
]


@pytest.fixture(scope="module")
def url():
    pytest.importorskip("psycopg")
    with postgres.server() as url:
        yield url


@pytest.fixture
def store(url):
    database.remove(database.database_url(url))
    store = Store(database.database_url(url))
    store.claim(time.time())
    yield store
    store.close()


def test_a_checkpoint_is_read_back_whole(store, url):
    alert = make_alert("a1", started_at=1e9)
    older = make_alert("a0", started_at=1e8, state=AlertState.RESOLVED)
    store.save(
        [
            make_checkpoint(alert=older, cursor={"v": 1}),
            make_checkpoint(make_entry("n1", alert=alert), alert=alert, cursor={"v": 2}),
        ],
        time.time(),
    )

    (record,) = store.run_records("logs")
    assert record.cursor == {"v": 2}
    assert store.latest_alerts("logs")[RUN.key][Family.LOSS] == alert
    status = read_status(url, time.time())
    assert (status.running, len(status.runs), status.outbox) == (True, 1, {"waiting": 1})


def test_notifications_are_delivered_in_order_and_settled(store):
    alert = make_alert()
    store.save([make_checkpoint(*(make_entry(f"n{i}", alert=alert) for i in range(3)))], 1.0)
    seen = []
    while (entry := store.next_notification("oncall")) is not None:
        seen.append(entry.id)
        store.mark_sent(entry, Receipt({"ts": entry.id}), time.time())

    assert seen == ["n0", "n1", "n2"]
    assert store.receipt("oncall", alert.id) == {"ts": "n2"}
    assert store.retry_parked(["oncall"], 0.0, time.time()) == 0
    assert store.due(["oncall"], time.time()) == 0
    store.prune(time.time() + 1, gone_before=0.0)
    assert store.waiting(["oncall"]) == 0


def test_a_second_daemon_is_refused(store, url):
    second = Store(database.database_url(url))

    with pytest.raises(StoreError, match="another daemon"):
        second.claim(time.time())

    second.close()


def test_a_server_that_is_not_there_is_an_error_naming_the_setting():
    with pytest.raises(StoreError, match="--state"):
        Store(database.database_url("postgresql+psycopg://nobody@localhost:1/none"))
