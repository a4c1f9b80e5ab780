"""What the daemon costs: the monitor's time a step, the program's memory, and append-to-message latency.

The daemon runs as its own process, as installed; the receiver is a webhook server in this one.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.report import Measure, main
from wtwin_watch.monitor import WTwinMonitor

PATIENCE_S = 300.0


def measure(quick: bool) -> Iterator[Measure]:
    """Yield each measure as it is known."""
    yield update_ratio(rounds=20 if quick else 60)
    yield memory_ratio(few=50_000 if quick else 100_000)
    yield latency(episodes=20 if quick else 100)


def losses(count: int, seed: int) -> list[float]:
    """A healthy loss: a power law with noise."""
    chance = random.Random(seed)
    return [2.0 + 3.0 * (i + 1) ** -0.5 + chance.gauss(0.0, 0.02) for i in range(count)]


def update_ratio(rounds: int) -> Measure:
    """Time of `WTwinMonitor.update` around step 100,000 as a multiple of that around step 1,000.

    Both monitors are timed in turn, in short stretches, and the fastest of each are compared: whatever else
    the machine does only makes a stretch slower.
    """
    stretch = 500
    early, late = WTwinMonitor(), WTwinMonitor()
    for step, loss in enumerate(losses(1_000, 1), 1):
        early.update(step, loss)
    for step, loss in enumerate(losses(100_000, 2), 1):
        late.update(step, loss)
    spent: dict[str, list[float]] = {"early": [], "late": []}
    tail = losses(200_000, 3)[-stretch:]
    for i in range(rounds):
        for name, monitor, start in (("early", early, 1_001), ("late", late, 100_001)):
            first = start + i * stretch
            began = time.perf_counter()
            for step, loss in enumerate(tail, first):
                monitor.update(step, loss)
            spent[name].append(time.perf_counter() - began)
    microseconds = min(spent["late"]) / stretch * 1e6
    return Measure(
        "WTwinMonitor.update at step 100,000 ÷ at step 1,000",
        min(spent["late"]) / min(spent["early"]),
        at_most=1.2,
        note=f"{microseconds:.1f} µs an update",
    )


class Receiver:
    """A webhook server on loopback that notes when which run's alert arrived."""

    def __init__(self) -> None:
        self.arrived: dict[str, float] = {}
        self.news = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                now = time.monotonic()
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with receiver.news:
                    if body["type"] == "run.alert.firing":
                        receiver.arrived.setdefault(body["data"]["run"], now)
                    receiver.news.notify_all()
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server.server_address[1]}/"

    def wait_for(self, part: str) -> float:
        """Wait for an alert of the run whose id contains ``part``; returns when it arrived."""

        def find() -> float | None:
            return next((at for run, at in self.arrived.items() if part in run), None)

        with self.news:
            if not self.news.wait_for(lambda: find() is not None, PATIENCE_S):
                raise TimeoutError(f"no alert of {part} within {PATIENCE_S:.0f} s")
            return find() or math.nan


@contextmanager
def daemon(folder: Path, receiver: Receiver) -> Iterator[subprocess.Popen[bytes]]:
    """The real program watching the CSV files of ``folder``. Each alert is a message of its own, at once."""
    settings = folder / "settings.toml"
    settings.write_text('[alerts]\ngroup_wait = "0s"\ngroup_window = "0s"\n')
    command = [
        *(sys.executable, "-m", "wtwin_watch", "run", "--csv", str(folder / "*.csv")),
        *("--config", str(settings)),
        *("--state", str(folder / "state.db"), "--webhook", receiver.url, "--quiet"),
    ]
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("WTWIN_WATCH_", "SLACK_"))
    }
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def write(path: Path, rows: list[float], first: int = 1) -> None:
    """Append rows to a log, whole lines in one write."""
    with path.open("a") as log:
        if first == 1:
            log.write("step,loss\n")
        log.write("".join(f"{first + i},{loss!r}\n" for i, loss in enumerate(rows)))


def resident_mib(pid: int) -> float:
    """Resident memory of a process, MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def memory_ratio(few: int) -> Measure:
    """Resident memory of the daemon when a log has grown ten times as long, as a multiple."""
    many = 10 * few
    curve = losses(many, 4)
    receiver = Receiver()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "run.csv", curve[:few])
        with daemon(folder, receiver) as process:
            readings = []
            for first, last, mark in ((1, few, "few"), (few + 1, many, "many")):
                if first > 1:
                    write(folder / "run.csv", curve[first - 1 : last], first)
                # A NaN in a file of its own, written last and read last, says that all is read.
                _settle(process.pid)
                write(folder / f"{mark}.csv", [2.0, 2.0, math.nan])
                receiver.wait_for(mark)
                readings.append(resident_mib(process.pid))
    return Measure(
        f"memory of the daemon at {many:,} points ÷ at {few:,}",
        readings[1] / readings[0],
        at_most=1.05,
        note=f"{readings[1]:.0f} MiB",
    )


def _settle(pid: int) -> None:
    """Wait until a process has used almost no processor time for a second."""
    deadline = time.monotonic() + PATIENCE_S
    used = _processor_s(pid)
    while time.monotonic() < deadline:
        time.sleep(1.0)
        before, used = used, _processor_s(pid)
        if used - before < 0.1 and used > 1.0:
            return
    raise TimeoutError("the daemon doesn't come to rest")


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def latency(episodes: int) -> Measure:
    """Seconds from the append of a NaN to its message, 95th percentile, file events on."""
    receiver = Receiver()
    chance = random.Random(5)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i in range(episodes):
            write(folder / f"run{i:03}.csv", losses(50, i))
        with daemon(folder, receiver):
            write(folder / "ready.csv", [2.0, 2.0, math.nan])
            receiver.wait_for("ready")
            waits = []
            for i in range(episodes):
                time.sleep(chance.uniform(0.0, 0.5))
                appended = time.monotonic()
                write(folder / f"run{i:03}.csv", [math.nan], first=51)
                waits.append(receiver.wait_for(f"run{i:03}") - appended)
    waits.sort()
    return Measure(
        "append to message, local file with file events, p95",
        waits[math.ceil(0.95 * len(waits)) - 1],
        at_most=2.0,
        unit="s",
        note=f"median {statistics.median(waits):.2f} s, {episodes} alerts",
    )


if __name__ == "__main__":
    sys.exit(main("daemon", measure))
