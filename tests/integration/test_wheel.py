"""The wheel: what a person installs holds all that the program needs, migrations included."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The environment of a program that finds the unpacked wheel before anything else."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("WTWIN_", "SLACK_"))}
    return environment | {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}


def test_the_wheel_holds_three_typed_packages_the_migrations_and_the_deployable_files(wheel):
    names = zipfile.ZipFile(wheel).namelist()

    for package in ("wtwin_watch", "wtwin_adapters", "wtwin_notifiers"):
        assert f"{package}/py.typed" in names
    assert "wtwin_watch/store/migrations/versions/v0001_first.py" in names
    assert "wtwin_watch/store/migrations/env.py" in names
    shared = [name for name in names if "/share/wtwin-watch/" in name]
    assert any(name.endswith("wtwin-watch.service") for name in shared)
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))]


def test_an_installed_wheel_migrates_its_database_and_watches(installed, tmp_path):
    (tmp_path / "run.csv").write_text("step,loss\n1,2.0\n2,1.9\n3,nan\n")
    command = [
        *(sys.executable, "-m", "wtwin_watch", "run", "--once"),
        *("--csv", str(tmp_path / "run.csv"), "--state", str(tmp_path / "state.db")),
    ]

    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=installed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert "loss is not finite" in done.stdout
    where = subprocess.run(
        [sys.executable, "-c", "import wtwin_watch; print(wtwin_watch.__file__)"],
        cwd=tmp_path,
        env=installed,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert where.stdout.startswith(installed["PYTHONPATH"])
