"""The demo as anybody runs it: both ways to its end, and ended by force."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

DEMO = [sys.executable, "-m", "wtwin_watch", "demo"]
AT_MOST_S = 60


def test_a_rotting_run_is_told_once_for_each_of_its_logs_and_as_it_gets_worse(tmp_path: Path):
    done = _run(tmp_path, "--seed", "7", "--json")

    result = json.loads(done.stdout)
    assert (done.returncode, result["complaints"]) == (0, []), done.stderr
    for source in ("csv", "tensorboard"):
        first, *later = [d for d in result["deliveries"] if d["source"] == source]
        assert (first["type"], first["family"]) == ("run.alert.firing", "loss")
        # Information when it is first seen, a warning when it lasts, critical when it diverges.
        assert [(d["type"], d["family"]) for d in later] == [("run.alert.changed", "loss")] * len(
            later
        )
        assert len(later) <= 2
    assert all(d["at"] > result["rot_began_at"] for d in result["deliveries"])
    assert result["followed_to"] == {"csv": 1200.0, "tensorboard": 1200.0}
    assert list(tmp_path.iterdir()) == []


def test_a_healthy_run_is_followed_to_its_end_and_nobody_is_told(tmp_path: Path):
    done = _run(tmp_path, "--seed", "7", "--healthy", "--keep", "--json")

    result = json.loads(done.stdout)
    assert (done.returncode, result["complaints"]) == (0, []), done.stderr
    assert result["deliveries"] == []
    assert result["followed_to"] == {"csv": 1200.0, "tensorboard": 1200.0}
    assert [Path(result["folder"])] == list(tmp_path.iterdir())
    assert (tmp_path / result["folder"] / "runs" / "mixture" / "train.csv").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_leaves_no_process_and_no_file_behind_when_it_is_told_to_end(
    tmp_path: Path, number: signal.Signals
):
    with _started(tmp_path) as demo:
        processes = _processes(demo)

        demo.send_signal(number)

        assert demo.wait(AT_MOST_S) == 130
    assert [pid for pid in processes if _lives(pid)] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells a child of its parent's death"
)
def test_the_others_end_when_it_is_killed(tmp_path: Path):
    with _started(tmp_path) as demo:
        processes = _processes(demo)

        demo.kill()

    deadline = time.monotonic() + AT_MOST_S
    while any(map(_lives, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in processes if _lives(pid)] == []


def test_nobody_real_is_told_whatever_the_environment_and_the_settings_of_the_user_say(
    tmp_path: Path,
):
    settings = tmp_path / "config" / "wtwin-watch"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text("this is no TOML")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environ = {
        **_environ(temporary),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "SLACK_WEBHOOK_URL": "http://127.0.0.1:9/never",
        "WTWIN_WATCH_WEBHOOK_URL": "http://127.0.0.1:9/never",
        "WTWIN_WATCH_STATE": "/nowhere/at/all.db",
    }

    with subprocess.Popen(
        [*DEMO, "--seed", "7"], env=environ, stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        ready = next((line for line in demo.stdout if "watcher   ready" in line), None)
        demo.send_signal(signal.SIGINT)

    assert ready is not None


def _run(temporary: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DEMO, *arguments],
        env=_environ(temporary),
        capture_output=True,
        text=True,
        timeout=AT_MOST_S,
        check=False,
    )


def _started(temporary: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*DEMO, "--seed", "7"], env=_environ(temporary), stdout=subprocess.PIPE, text=True
    )


def _environ(temporary: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(temporary)}


def _processes(demo: subprocess.Popen[str]) -> list[int]:
    """Wait until the watcher follows the run; return the ids of the three other processes."""
    lines = list(_until(demo, "watcher   following"))
    return [int(pid) for line in lines for pid in re.findall(r"process (\d+),", line)]


def _until(demo: subprocess.Popen[str], words: str) -> Iterator[str]:
    assert demo.stdout is not None
    for line in demo.stdout:
        yield line
        if words in line:
            return
    raise AssertionError(f"the demo ended before it said {words!r}")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return not Path("/proc").exists()
    return state != "Z"
