"""File events hasten a look; they are never needed for one.

inotify is silent on NFS, Lustre and the like, and its watches are limited, so whatever goes wrong here is
said once and polling goes on alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
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


class FileEvents:
    """Watches folders and calls back, from a thread of its own, when something in them changes."""

    def __init__(self) -> None:
        self._observer: BaseObserver | None = None
        self._watched: dict[tuple[str, Path], tuple[int, ObservedWatch]] = {}
        self._useless = False

    def watch(self, name: str, roots: Iterable[Path], hint: Callable[[], None]) -> None:
        """Watch ``roots`` for the source ``name``; those watched already or not there are passed over.

        A folder that was deleted and made again is another one, and is watched anew.
        """
        for root in roots:
            if self._useless or not root.is_dir():
                continue
            try:
                folder = root.stat().st_ino
                known = self._watched.get((name, root))
                if known is not None and known[0] == folder:
                    continue
                observer = self._started()
                if known is not None:
                    self._forget(observer, root, known[1])
                watch = observer.schedule(_Handler(hint), str(root), recursive=True)
                self._watched[name, root] = folder, watch
            except OSError as error:
                self._useless = True
                log.warning("file events unavailable, polling alone", error=str(error))

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

    def close(self) -> None:
        """Stop watching."""
        if self._observer is not None:
            self._observer.stop()
