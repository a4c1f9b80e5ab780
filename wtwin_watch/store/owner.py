"""One daemon a database: a row that names the owner, with a heartbeat.

A daemon that was killed leaves its row behind. It is taken over at once where its process is known to be
gone (same boot, same process table), else when the heartbeat has been silent for `SILENT_S`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

HEARTBEAT_S = 5.0
SILENT_S = 60.0

Holder = Mapping[str, Any]


def this_process() -> Holder:
    """Identify this process so that another one can tell whether it still lives."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started": process_start(os.getpid()),
        "boot": _read("/proc/sys/kernel/random/boot_id"),
        "pids": _link("/proc/self/ns/pid"),
    }


def is_alive(
    holder: Holder,
    heartbeat_at: float,
    now: float,
    me: Holder,
    start_of: Callable[[int], str | None],
) -> bool:
    """Whether the daemon behind ``holder`` must be taken to be running."""
    comparable = all(holder.get(key) and holder.get(key) == me.get(key) for key in ("boot", "pids"))
    if comparable:
        return bool(start_of(holder["pid"]) == holder["started"])
    return abs(now - heartbeat_at) < SILENT_S  # ahead by more: its clock says nothing


def process_start(pid: int) -> str | None:
    """When a process began, in clock ticks since boot, or None where there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _link(path: str) -> str | None:
    try:
        return str(Path(path).readlink())
    except OSError:
        return None
