"""Which processes another one has started, and whether they are still there."""

from __future__ import annotations

from pathlib import Path


def _state_and_parent(pid: int) -> tuple[str, int] | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state, parent = stat.rpartition(")")[2].split()[:2]
    return state, int(parent)


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    known = _state_and_parent(pid)
    return known is None or known[0] == "Z"


def descendants(pid: int) -> list[int]:
    """The processes that ``pid`` and those it started have started, and that are alive."""
    numbers = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    known = {number: _state_and_parent(number) for number in numbers}
    found = [pid]
    for parent in found:
        found += [n for n, facts in known.items() if facts and facts[1] == parent and not gone(n)]
    return found[1:]
