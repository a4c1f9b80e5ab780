"""The program with a fault put into it from outside, since its own code has no switch for tests.

    python -m tests.support.faulty_daemon --fault after-send:resolved -- run --csv …

Faults that end the process as SIGKILL does, each at one moment on a point's way:

``after-fetch:N``        points were fetched for the Nth time, nothing is made of them yet
``before-commit:EVENT``  the transaction with a notification of that event is written, not committed
``after-commit:EVENT``   it is committed, and nobody is told yet
``before-send:EVENT``    the notification is about to be sent
``after-send:EVENT``     the receiver has taken it, it isn't marked as sent yet
``after-mark:EVENT``     it is marked as sent

Faults of the surroundings: ``hang-fetch`` (no fetch returns), ``block-engine`` (judging a point never ends),
``no-file-events`` (the machine has no more inotify instances), ``crash:NAME`` (the engine fails with an error
that quotes the environment variable of that name).
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from wtwin_watch import cli, daemon
from wtwin_watch.ingest import events
from wtwin_watch.ingest.engine import Engine
from wtwin_watch.model import Notification, Point
from wtwin_watch.monitor.run import RunMonitor
from wtwin_watch.store import Checkpoint, OutboxEntry, Store, writing

Method = Callable[..., Any]
Around = Callable[[Method], Method]


def _wrap(owner: Any, name: str, around: Around) -> None:
    setattr(owner, name, around(getattr(owner, name)))


def _wrap_plugins(load: str, method: str, around: Around) -> None:
    """Wrap ``method`` of every source or notifier that the daemon makes."""
    known = getattr(daemon, load)

    def loading(name: str) -> Any:
        plugin = known(name)

        def make(*args: Any) -> Any:
            made = plugin(*args)
            _wrap(made, method, around)
            return made

        make.Options = plugin.Options
        return make

    setattr(daemon, load, loading)


def _die_after(happened: Callable[..., bool]) -> Around:
    """Die once a call has returned for which ``happened``, given its arguments, says so."""

    def around(method: Method) -> Method:
        def called(*args: Any) -> Any:
            result = method(*args)
            if happened(*args):
                _die()
            return result

        return called

    return around


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _holds(checkpoint: Checkpoint, event: str) -> bool:
    return any(entry.event.value == event for entry in checkpoint.notifications)


def _after_fetch(which: str) -> None:
    countdown = iter(range(int(which) - 1, -1, -1))

    def around(fetch: Method) -> Method:
        def fetched(*args: Any) -> Any:
            batch = fetch(*args)
            if batch.points and next(countdown) == 0:
                _die()
            return batch

        return fetched

    _wrap_plugins("load_adapter", "fetch", around)


def _before_commit(event: str) -> None:
    # What is wrapped runs in the transaction, so its end lies before the commit.
    def happened(_: object, checkpoint: Checkpoint, __: float) -> bool:
        return _holds(checkpoint, event)

    _wrap(writing, "save_checkpoint", _die_after(happened))


def _after_commit(event: str) -> None:
    def happened(_: Store, checkpoints: list[Checkpoint], __: float) -> bool:
        return any(_holds(checkpoint, event) for checkpoint in checkpoints)

    _wrap(Store, "save", _die_after(happened))


def _before_send(event: str) -> None:
    def around(send: Method) -> Method:
        def sending(notification: Notification) -> Any:
            if notification.event.value == event:
                _die()
            return send(notification)

        return sending

    _wrap_plugins("load_notifier", "send", around)


def _after_send(event: str) -> None:
    def happened(notification: Notification) -> bool:
        return notification.event.value == event

    _wrap_plugins("load_notifier", "send", _die_after(happened))


def _after_mark(event: str) -> None:
    def happened(_: Store, entry: OutboxEntry, *__: Any) -> bool:
        return entry.event.value == event

    _wrap(Store, "mark_sent", _die_after(happened))


def _hang(*_: Any) -> None:
    threading.Event().wait()


def _hang_fetch(_: str) -> None:
    _wrap_plugins("load_adapter", "fetch", lambda _: _hang)


def _block_engine(_: str) -> None:
    def around(feed: Method) -> Method:
        def blocked(monitor: RunMonitor, points: Sequence[Point]) -> Any:
            return _hang() if points else feed(monitor, points)

        return blocked

    _wrap(RunMonitor, "feed", around)


def _no_file_events(_: str) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    _wrap(events.Observer, "start", lambda _: refuse)


def _crash(name: str) -> None:
    def failing(*_: Any) -> None:
        raise RuntimeError(f"no answer to {os.environ[name]}")

    _wrap(Engine, "turn", lambda _: failing)


FAULTS = {
    "after-fetch": _after_fetch,
    "before-commit": _before_commit,
    "after-commit": _after_commit,
    "before-send": _before_send,
    "after-send": _after_send,
    "after-mark": _after_mark,
    "hang-fetch": _hang_fetch,
    "block-engine": _block_engine,
    "no-file-events": _no_file_events,
    "crash": _crash,
}


def main() -> int:
    """Put the fault in, then be the program."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--fault", required=True, metavar="POINT[:WHICH]")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    point, _, which = given.fault.partition(":")
    FAULTS[point](which)
    return cli.main([arg for arg in given.args if arg != "--"])


if __name__ == "__main__":
    sys.exit(main())
