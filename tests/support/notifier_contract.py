"""What every notifier must keep to, whatever it sends to."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.notifications import HOSTILE_NAMES, digest, notification
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Event, Receipt
from wtwin_watch.protocols import Notifier, Options

LIFE = (Event.TEST, Event.FIRING, Event.CHANGED, Event.ACKNOWLEDGED, Event.RESOLVED)


def check_notifier(
    notifier: Notifier, *, secrets: Iterable[str] = (), digests: bool = True
) -> None:
    """Check a notifier whose receiver is up and takes any number of messages at once.

    An alert goes through its whole life under every hostile name; receipts must survive storage.
    A digest is delivered, or, without ``digests``, refused for good.
    """
    assert notifier.min_interval_s >= 0
    told = notifier.describe()
    assert told
    assert "\n" not in told
    assert not [secret for secret in secrets if secret in told + repr(notifier)]
    for index, name in enumerate(HOSTILE_NAMES):
        previous: Any = None
        for event in LIFE:
            given = notification(event, name=name, previous=previous, id=f"ntf_{index}_{event}")
            receipt = notifier.send(given)
            assert isinstance(receipt, Receipt)
            previous = json.loads(json.dumps(dict(receipt.data))) or previous
        if digests:
            assert isinstance(notifier.send(digest(name)), Receipt)
    if not digests:
        with pytest.raises(DeliveryError) as refused:
            notifier.send(digest())
        assert refused.value.permanent
    assert notifier.send(notification(Event.RESOLVED, previous={"of": "another version"}))
    notifier.close()
    notifier.close()


def check_notifier_plugin(plugin: Any) -> None:
    """Check the class: its options are frozen and name an unknown key."""
    assert issubclass(plugin.Options, Options)
    assert plugin.Options.model_json_schema()["additionalProperties"] is False
    with pytest.raises(ValidationError, match="surely_no_such_option"):
        plugin.Options(surely_no_such_option=1)
