"""A digest on its way from a daemon to its receiver."""

import time

import pytest

from tests.support.records import make_checkpoint
from tests.support.webhook_standin import WebhookStandIn
from wtwin_watch.store import Store, database

pytestmark = pytest.mark.e2e


def test_a_daemon_sends_the_digest_that_is_due_once_over_restarts(program):
    log = program.folder / "log.csv"
    log.write_text("step,loss\n1,3.0\n2,2.9\n")
    store = Store(database.database_url(program.state))
    store.save([make_checkpoint()], time.time() - 2 * 86_400)
    store.close()

    with WebhookStandIn() as hook:
        program.configure(
            f'[[source]]\nname = "logs"\nadapter = "csv"\npath = "{log}"\n'
            f'[[receiver]]\nname = "hook"\nnotifier = "webhook"\nurl = "{hook.hook_url}"\n'
            '[[digest]]\nreceiver = "hook"\nat = "00:00"\n'
        )
        first, second = program.once(), program.once()

    assert first.wait() == second.wait() == 0, first.log + second.log
    assert hook.types == ["run.digest"]
    assert len(hook.deliveries) == 1
    assert hook.deliveries[0].body["data"]["title"].startswith("Digest: 0 alerts in ")
