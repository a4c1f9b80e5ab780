import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "config" / "wtwin-watch.service"

pytestmark = pytest.mark.integration
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """A copy that starts a program this machine has, since the check looks for it."""
    program = shutil.which("true")
    assert program is not None
    copy = tmp_path / UNIT.name
    copy.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={program}", UNIT.read_text(), flags=re.M))
    return copy


def analyze(*args: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["systemd-analyze", *args], capture_output=True, text=True, timeout=120, check=False
    )


@needs_systemd
def test_systemd_finds_nothing_wrong_with_the_unit(unit: Path):
    done = analyze("verify", "--man=no", unit)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_systemd
def test_the_check_would_find_something_wrong(unit: Path):
    unit.write_text(unit.read_text().replace("WatchdogSec=2min", "WatchdogSec=soon"))

    assert "Failed to parse" in analyze("verify", "--man=no", unit).stderr


@needs_systemd
def test_the_service_is_hardened(unit: Path):
    done = analyze("security", "--offline=true", "--threshold=20", unit)

    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze can't judge a unit offline")
    assert done.returncode == 0, done.stdout[-500:]


def test_a_mistake_in_settings_or_command_is_not_tried_again():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(UNIT.read_text())
    service = unit["Service"]

    assert service["Type"] == "notify"
    assert service["Restart"] == "always"
    assert service["RestartPreventExitStatus"] == "2 78"
    assert service["ProtectSystem"] == "strict"
    assert service["ProtectHome"] == "read-only"
    assert service["NoNewPrivileges"] == "yes"
    assert "EnvironmentFile" not in service
