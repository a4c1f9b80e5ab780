import json
from dataclasses import replace
from pathlib import Path

import pytest

from wtwin_watch.cli import main
from wtwin_watch.demo import show
from wtwin_watch.demo.show import Result, clean_environment
from wtwin_watch.demo.verdict import Delivery

GOOD = Result(
    seed=7,
    healthy=False,
    rot_began_at=1000.0,
    deliveries=(Delivery("m1", 1002.0, "run.alert.firing", "loss", "csv", "a1"),),
    followed_to={"csv": 1200.0, "tensorboard": None},
    complaints=(),
    seconds=20.04,
    folder=None,
)
BAD = replace(GOOD, complaints=("tensorboard: no alert about the loss arrived",))


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch):
    """The demo, ended as is asked for; what it was called with is collected."""
    calls: list[tuple[int, bool, bool]] = []

    def ends_with(result: Result) -> list[tuple[int, bool, bool]]:
        def play(seed: int, healthy: bool, keep: bool, screen: object) -> Result:
            calls.append((seed, healthy, keep))
            return result

        monkeypatch.setattr(show, "play", play)
        return calls

    return ends_with


def test_all_as_it_should_be_is_exit_code_0(played, capsys: pytest.CaptureFixture[str]):
    calls = played(GOOD)

    assert main(["demo", "--seed", "7"]) == 0
    assert calls == [(7, False, False)]
    assert "as it should be" in capsys.readouterr().out


def test_what_is_missing_is_said_and_exit_code_1(played, capsys: pytest.CaptureFixture[str]):
    played(BAD)

    assert main(["demo"]) == 1
    said = capsys.readouterr().out
    assert "tensorboard: no alert about the loss arrived" in said
    assert "as it should be" not in said


def test_without_a_seed_each_demo_is_another_one(played):
    calls = played(GOOD)

    for _ in range(5):
        main(["demo", "--healthy", "--keep"])

    assert len({seed for seed, *_ in calls}) > 1
    assert {(healthy, keep) for _, healthy, keep in calls} == {(True, True)}


def test_kept_files_are_named(played, capsys: pytest.CaptureFixture[str]):
    played(replace(GOOD, folder=Path("/somewhere/kept")))

    main(["demo"])

    assert "/somewhere/kept" in capsys.readouterr().out


def test_a_program_gets_json_and_nothing_else_on_stdout(played, capsys: pytest.CaptureFixture[str]):
    played(BAD)

    assert main(["demo", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "ok": False,
        "seed": 7,
        "healthy": False,
        "complaints": ["tensorboard: no alert about the loss arrived"],
        "followed_to": {"csv": 1200.0, "tensorboard": None},
        "rot_began_at": 1000.0,
        "deliveries": [
            {
                "id": "m1",
                "at": 1002.0,
                "type": "run.alert.firing",
                "family": "loss",
                "source": "csv",
            }
        ],
        "seconds": 20.0,
        "folder": None,
    }


@pytest.mark.parametrize("seed", ["-1", "4294967296", "seven"])
def test_a_seed_that_is_none_is_asked_wrongly(played, seed: str):
    played(GOOD)

    assert main(["demo", "--seed", seed]) == 2


def test_the_watcher_of_the_demo_does_not_know_whom_the_user_tells():
    environ = {
        "PATH": "/bin",
        "HTTPS_PROXY": "http://proxy",
        "SLACK_BOT_TOKEN": "x",
        "SLACK_WEBHOOK_URL": "x",
        "WTWIN_WATCH_WEBHOOK_URL": "x",
        "WTWIN_WATCH_CONFIG": "x",
        "NOTIFY_SOCKET": "x",
        "WATCHDOG_USEC": "1",
    }

    assert clean_environment(environ) == {"PATH": "/bin", "HTTPS_PROXY": "http://proxy"}
