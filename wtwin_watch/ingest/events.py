"""File events hasten a look; they are never needed for one.

inotify is silent on NFS, Lustre and the like, and its watches are limited, so whatever goes wrong here is
said once and polling goes on alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog
from watchdog.events import (
    EVENT_TYPE_CLOSED,
    EVENT_TYPE_CREATED,
    EVENT_TYPE_DELETED,
    EVENT_TYPE_MODIFIED,
    EVENT_TYPE_MOVED,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

log = structlog.get_logger("wtwin_watch.ingest")

# Our own reading opens and closes files too: those events must not wake us.
_CHANGES = {
    EVENT_TYPE_CLOSED,
    EVENT_TYPE_CREATED,
    EVENT_TYPE_DELETED,
    EVENT_TYPE_MODIFIED,
    EVENT_TYPE_MOVED,
}


class _Handler(FileSystemEventHandler):
    def __init__(self, hint: Callable[[], None]) -> None:
        self._hint = hint

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type in _CHANGES:
            self._hint()


@dataclass(frozen=True, slots=True)
class _Wish:
    """Folders that a source wants to be watched, and who is called back."""

    roots: tuple[Path, ...]
    hint: Callable[[], None]


class FileEvents:
    """Watches folders and calls back, from a thread of its own, when something in them changes.

    Watches are set up by one more thread, since that takes long in a large tree and for ever on a file
    system that hangs.
    """

    def __init__(self) -> None:
        self._observer: BaseObserver | None = None
        self._watched: dict[tuple[str, Path], tuple[int, ObservedWatch]] = {}
        self._useless = False
        self._wishes: dict[str, _Wish] = {}
        self._news = threading.Condition()
        self._setter: threading.Thread | None = None
        self._closed = False

    def watch(self, name: str, roots: Iterable[Path], hint: Callable[[], None]) -> None:
        """Watch ``roots`` for the source ``name`` soon; those not there are passed over. Never waits.

        A folder that was deleted and made again is another one, and is watched anew.
        """
        wish = _Wish(tuple(roots), hint)
        if self._useless or not wish.roots:
            return
        with self._news:
            self._wishes[name] = wish
            if self._setter is None:
                self._setter = threading.Thread(
                    target=self._set_up, name="file events", daemon=True
                )
                self._setter.start()
            self._news.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Wait until what was asked for is set up; whether it came to that."""
        with self._news:
            return self._news.wait_for(lambda: not self._wishes, timeout_s)

    def close(self) -> None:
        """Stop watching."""
        with self._news:
            self._closed = True
            self._news.notify_all()
        if self._observer is not None:
            self._observer.stop()

    def _set_up(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._wishes or self._closed)
                if self._closed:
                    return
                name, wish = next(iter(self._wishes.items()))
            try:
                self._watch(name, wish)
            except OSError as error:
                self._useless = True
                log.warning("file events unavailable, polling alone", error=str(error))
            with self._news:
                if self._wishes.get(name) is wish or self._useless:
                    self._wishes.pop(name, None)
                self._news.notify_all()

    def _watch(self, name: str, wish: _Wish) -> None:
        for root in wish.roots:
            if self._useless or self._closed or not root.is_dir():
                continue
            folder = root.stat().st_ino
            known = self._watched.get((name, root))
            if known is not None and known[0] == folder:
                continue
            observer = self._started()
            if known is not None:
                self._forget(observer, root, known[1])
            watch = observer.schedule(_Handler(wish.hint), str(root), recursive=True)
            self._watched[name, root] = folder, watch

    def _started(self) -> BaseObserver:
        """The observer: made when it is needed, since a machine allows but a few of them."""
        if self._observer is None:
            observer = Observer()
            observer.daemon = True
            observer.start()
            self._observer = observer
        return self._observer

    def _forget(self, observer: BaseObserver, root: Path, watch: ObservedWatch) -> None:
        """Give up a watch; other sources that shared it set it up again when they are looked at."""
        with suppress(KeyError):
            observer.unschedule(watch)
        for key in [key for key in self._watched if key[1] == root]:
            del self._watched[key]
