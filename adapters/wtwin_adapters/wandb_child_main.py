"""The process in which the genuine ``wandb`` client works, started and watched by `wandb_child`.

It reads one JSON object a line from stdin and answers each with one line on what was stdout. It ends
when stdin does, or its parent is gone, and takes the client's own helper process with it.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import tempfile
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from wtwin_adapters.wandb_api_rows import STEP

_LOOK_ROUND_S = 1.0
_OPEN_SCANS = 4
_PAGE_ROWS = 2_000
_WIDEST_PAGE = 1_000_000
_LISTED = ("name", "displayName", "sweepName", "state", "group", "tags", "createdAt", "heartbeatAt")


def main() -> None:
    """Answer requests until stdin ends."""
    # Whatever the client prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    folder = tempfile.mkdtemp(prefix="wtwin-watch-wandb-")
    for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR"):
        os.environ[name] = os.path.join(folder, name)
    requests: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests, os.getppid(), folder), daemon=True).start()
    client = _Client()
    while True:
        request = requests.get()
        answer = {"id": request["id"], **client.answer(request), "memory": _memory()}
        try:
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
        except OSError:
            _leave(folder)


def _listen(requests: SimpleQueue[dict[str, Any]], parent: int, folder: str) -> None:
    """Hand over what stdin brings. Ends the process with its helpers when nobody is there any more."""
    pending = b""
    try:
        while os.getppid() == parent:
            if not select.select([0], [], [], _LOOK_ROUND_S)[0]:
                continue
            piece = os.read(0, 1 << 16)
            if not piece:
                break
            *lines, pending = (pending + piece).split(b"\n")
            for line in lines:
                requests.put(json.loads(line))
    finally:
        _leave(folder)


def _leave(folder: str) -> None:
    for pid in _helpers():
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


class _Client:
    """The ``wandb.Api`` of this process and the scans that are open in it."""

    def __init__(self) -> None:
        self._api: Any = None
        self._had_helper = False
        """The client started its helper process, without which it answers nothing any more."""
        self._scans: OrderedDict[tuple[str, str], _Scan] = OrderedDict()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what is asked; a failure is an answer like any other."""
        try:
            if self._api is None:
                self._api = _api()
            if request["do"] == "hello":
                return self._hello()
            if request["do"] == "runs":
                return self._runs(**request["with"])
            return self._scan(**request["with"])
        # The client raises what it likes, and the caller has to hear of all of it.
        except Exception as error:
            return {"error": _told(error), "lost": self._had_helper and not _helpers()}
        finally:
            self._had_helper = self._had_helper or bool(_helpers())

    def _hello(self) -> dict[str, Any]:
        import wandb

        return {
            "base_url": self._api.settings["base_url"],
            "key": self._api.api_key,
            "version": wandb.__version__,
        }

    def _runs(self, project: str, filters: dict[str, Any], per_page: int) -> dict[str, Any]:
        # The list is kept in the Api object, and frozen there, until it is flushed.
        self._api.flush()
        runs = self._api.runs(project, filters=filters, order="+created_at", per_page=per_page)
        listed = []
        for run in runs:
            attrs = run._attrs
            facts = {name: attrs.get(name) for name in _LISTED}
            listed.append({**facts, "lines": attrs.get("historyLineCount"), "url": run.url})
        # It made a folder for each of them.
        shutil.rmtree(os.environ["WANDB_DIR"], ignore_errors=True)
        return {"runs": listed, "pages": 1 + len(listed) // per_page}

    def _scan(self, project: str, run: str, min_step: int, rows: int) -> dict[str, Any]:
        key = (project, run)
        scan = self._scans.pop(key, None)
        if scan is None or min_step < scan.start:
            scan = _Scan(self._api.run(f"{project}/{run}"), min_step)
        answer = scan.rows(min_step, rows)
        if answer["more"]:
            self._scans[key] = scan
        while len(self._scans) > _OPEN_SCANS:
            self._scans.popitem(last=False)
        return answer


class _Scan:
    """The rows of one run in the order of their steps, asked for piece by piece.

    It stays open between two requests, since opening one lets the client download the whole export.
    """

    def __init__(self, run: Any, min_step: int) -> None:
        last_step = run.lastHistoryStep
        self.start = min_step
        # Pages of the client are ranges of steps: in a sparse history a narrow one is mostly empty.
        lines = max(1, int(run._attrs.get("historyLineCount") or 1))
        width = max(_PAGE_ROWS, min(_WIDEST_PAGE, _PAGE_ROWS * (last_step + 1) // lines))
        self._rows: Iterator[dict[str, Any]] = iter(
            run.scan_history(min_step=min_step, page_size=width, use_cache=False)
        )
        self._ready: deque[dict[str, Any]] = deque()

    def rows(self, min_step: int, count: int) -> dict[str, Any]:
        """Give the next ``count`` rows from ``min_step`` on; they can be asked for again."""
        self.start = min_step
        ready = self._ready
        while ready and ready[0].get(STEP, min_step) < min_step:
            ready.popleft()
        more = True
        while len(ready) <= count:
            row = next(self._rows, None)
            if row is None:
                more = False
                break
            if row.get(STEP, min_step) >= min_step:
                ready.append(row)
        given = list(ready)[:count]
        return {"rows": given, "more": more or len(ready) > count}


def _api() -> Any:
    import wandb

    return wandb.Api(timeout=int(os.environ["WTWIN_WANDB_TIMEOUT_S"]))


def _told(error: Exception) -> dict[str, Any]:
    response = getattr(error, "response", None)
    status = getattr(response, "http_status", None) or getattr(response, "status_code", None)
    return {"type": type(error).__name__, "status": status, "text": str(error)[:500]}


def _helpers() -> list[int]:
    """Processes that this one started and that are alive; empty where the system doesn't tell."""
    own, found = os.getpid(), []
    with suppress(OSError):
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                with suppress(OSError, IndexError, ValueError):
                    stat = Path(entry.path, "stat").read_text(errors="replace")
                    state, parent = stat.rpartition(")")[2].split()[:2]
                    if int(parent) == own and state != "Z":
                        found.append(int(entry.name))
    return found


def _memory() -> int:
    """Resident bytes of this process and its helpers; 0 where the system doesn't tell."""
    pages = 0
    for pid in (os.getpid(), *_helpers()):
        with suppress(OSError, IndexError, ValueError):
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
