from __future__ import annotations

import json
import logging
import math
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.training import FINITE_TO_RECOVER, healthy
from wtwin_watch.errors import SettingsError
from wtwin_watch.integrations import Watch
from wtwin_watch.integrations.actions import Act, Actions
from wtwin_watch.integrations.ranks import rank
from wtwin_watch.model import Family, Severity
from wtwin_watch.monitor import TrendMonitor


def falling(count: int) -> list[float]:
    """A loss that falls, with noise."""
    chance = random.Random(7)
    return [2.0 + 3.0 * step**-0.5 + chance.gauss(0.0, 0.02) for step in range(1, count + 1)]


def drifting(count: int, since: int) -> list[float]:
    """One that leaves its trend at step ``since``."""
    return [
        loss + max(0.0, 0.003 * (step - since)) for step, loss in enumerate(falling(count), start=1)
    ]


def feed(watch: Watch, losses: list[float], start: int = 1) -> None:
    for step, loss in enumerate(losses, start):
        watch.update(step, loss)


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)


# -- what is said ----------------------------------------------------------------------------------


def test_without_receivers_the_log_warns_of_an_alert_and_informs_of_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "wtwin_watch")
    watch = Watch(name="gpt")
    feed(watch, [*healthy(100), math.nan])
    (level, text) = told(caplog)[-1]
    assert level == logging.WARNING
    assert text.startswith("Critical: loss is not finite (gpt): Loss is NaN at step 101")

    feed(watch, healthy(FINITE_TO_RECOVER, start=101), start=102)

    assert told(caplog)[-1][0] == logging.INFO
    assert told(caplog)[-1][1].startswith("Resolved: loss is not finite (gpt)")


def test_the_state_returned_is_that_of_the_trend_detector() -> None:
    watch, reference = Watch(far=1e4), TrendMonitor(far=1e4)
    for step, loss in enumerate(drifting(600, since=500), start=1):
        said, expected = watch.update(step, loss), reference.update(float(step), loss)
        assert (said.step, said.l_obs) == (step, loss)
        if expected.Q > 0.0:  # before that it is neutral
            assert said == expected
    assert said.alert


def test_a_nan_is_an_alert_in_the_state_at_once() -> None:
    watch = Watch()
    feed(watch, healthy(80))
    assert watch.update(81, math.nan).alert
    assert [alert.family for alert in watch.firing] == [Family.NONFINITE]


def test_values_may_be_arrays_of_one_number() -> None:
    plain, arrays = Watch(), Watch()
    for step, loss in enumerate(falling(100), start=1):
        expected = plain.update(step, loss, lr=1e-3, grad_norm=1.0)
        said = arrays.update(
            np.int64(step), np.array([loss]), lr=np.float64(1e-3), grad_norm=np.float32(1.0)
        )
        assert said == pytest.approx(tuple(expected), nan_ok=True)


@pytest.mark.parametrize("loss", ["two", np.zeros(2), {"loss": 1.0}])
def test_what_is_no_number_is_an_error_that_says_so(loss: Any) -> None:
    with pytest.raises(TypeError, match="is not one number"):
        Watch().update(1, loss)


def test_steps_are_counted_where_they_are_not_given() -> None:
    class Optimizer:
        param_groups = [{"lr": 1e-3}, {"lr": 1e-2}]  # noqa: RUF012

    watch = Watch()
    for loss in falling(10):
        watch.step(loss, optimizer=Optimizer())
    assert watch.last_step == 10


def test_a_remark_is_evidence_for_the_alerts_of_its_kind(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch()
    watch.remarks["nonfinite"] = "a filter hides it"
    feed(watch, [*healthy(80), math.nan])
    assert watch.firing[0].detection.evidence[-1] == "a filter hides it"
    assert "Evidence: a filter hides it." in told(caplog)[-1][1]


# -- what reaches the training ---------------------------------------------------------------------


def test_a_monitor_that_fails_is_said_to_and_the_training_goes_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(name="gpt")
    feed(watch, healthy(5))
    monkeypatch.setattr(TrendMonitor, "update", lambda *_: 1 / 0)
    feed(watch, healthy(5), start=6)
    assert [text for _, text in told(caplog)] == [
        "watching gpt has ended: its monitor failed",
    ]
    assert watch.status == "its monitor failed"


def test_scores_are_handed_back_after_each_point() -> None:
    logged: list[tuple[dict[str, float], float]] = []
    watch = Watch(log_back=lambda values, step: logged.append((values, step)))
    said = [watch.update(step, loss) for step, loss in enumerate(falling(100), start=1)]
    assert [step for _, step in logged] == list(range(1, 101))
    assert logged[-1][0] == {"wtwin/W": said[-1].W, "wtwin/D": said[-1].D, "wtwin/Q": said[-1].Q}


def test_where_handing_back_fails_it_ends_and_the_training_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls = []

    def fail(values: dict[str, float], step: float) -> None:
        calls.append(step)
        raise RuntimeError("the tracker is gone")

    watch = Watch(log_back=fail)
    feed(watch, falling(10))
    assert calls == [1]
    assert "log_back failed" in told(caplog)[0][1]
    assert watch.points == 10


# -- several processes -----------------------------------------------------------------------------


class Unread:
    def __float__(self) -> float:
        raise AssertionError("another rank has no need to wait for this number")


def test_other_ranks_do_nothing_and_read_no_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    watch = Watch()
    assert not watch.update(1, Unread()).alert
    assert watch.points == 0


def test_a_rank_that_is_given_overrules_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_PROCID", "3")
    watch = Watch(rank=0)
    watch.chief = False  # as a framework may say
    feed(watch, healthy(3))
    assert watch.points == 2 + 1


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, 0),
        ({"RANK": "2", "LOCAL_RANK": "0"}, 2),
        ({"LOCAL_RANK": "1"}, 1),
        ({"SLURM_PROCID": "5"}, 5),
        ({"OMPI_COMM_WORLD_RANK": "4"}, 4),
        ({"PMI_RANK": "6"}, 6),
        ({"RANK": "", "SLURM_PROCID": "0"}, 0),
        ({"RANK": "none"}, 0),
    ],
)
def test_the_rank_is_read_from_what_launchers_set(environ: dict[str, str], expected: int) -> None:
    assert rank(environ) == expected


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"fra": 1e4}, "fra: no option of Watch or of a detector; did you mean 'far'?"),
        ({"far": 1e4, "alpha": 2.0}, "alpha: belongs to the detector 'classic', not to 'trend'"),
        ({"detector": "classic", "far": 1e4}, "far: belongs to the detector 'trend'"),
        ({"detector": "magic"}, "detector='magic': there are 'trend' and 'classic'"),
        ({"far": 1.0}, "one false alarm in 1 points: give 10 to 1e+12 points"),
        ({"far": "soon"}, "can't read 'soon' as a false-alarm rate"),
        ({"n_consec": 0}, "detector 'classic': "),
        ({"notify": 3}, "notify=3: give the path of a settings file"),
        ({"notify": "missing.toml"}, "missing.toml can't be read: No such file"),
    ],
)
def test_wrong_settings_are_told_when_the_watch_is_made(options: dict[str, Any], text: str) -> None:
    with pytest.raises(SettingsError) as error:
        Watch(**options)
    assert text in str(error.value)


def test_an_option_of_the_published_method_asks_for_it() -> None:
    assert Watch(alpha=2.5)._detector.name == "classic"
    assert Watch(far="1 per 20000 points")._detector.far == 20000.0


def test_a_mistake_in_the_settings_file_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[alerts]\ncooldwn = "5m"\n[[receiver]]\nnotifier = "terminal"\n')
    with pytest.raises(SettingsError, match=r"config\.toml:2: .*did you mean 'cooldown'"):
        Watch(file)


def test_the_sources_of_a_daemons_file_need_not_be_within_reach(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[detector]\nfar = 5e4\n[[source]]\nadapter = "not installed here"\n'
        '[[receiver]]\nnotifier = "terminal"\n'
    )
    watch = Watch(file)
    assert watch._detector.far == 5e4
    assert Watch(file, far=1e6)._detector.far == 1e6


def test_nothing_is_told_before_the_run_has_min_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[alerts]\nmin_steps = 50\n[[receiver]]\nnotifier = "terminal"\n')
    with Watch(file, name="gpt") as watch:
        feed(watch, [2.0, 1.9, math.nan, *healthy(46)])
        assert watch.flush()
        assert "gpt" not in capsys.readouterr().out
        feed(watch, healthy(1), start=50)
        assert watch.flush()
        assert "loss is not finite (gpt)" in capsys.readouterr().out


# -- resuming --------------------------------------------------------------------------------------


def test_a_watch_goes_on_from_a_checkpoint_as_if_it_had_never_stopped() -> None:
    losses = drifting(700, since=500)
    whole, first = Watch(), Watch()
    expected = [whole.update(step, loss) for step, loss in enumerate(losses, start=1)]
    feed(first, losses[:540])
    stored = json.loads(json.dumps(first.state_dict()))

    second = Watch()
    second.load_state_dict(stored)
    said = [second.update(step, loss) for step, loss in enumerate(losses[540:], start=541)]

    assert said == expected[540:]
    assert [alert.kind for alert in second.firing] == [alert.kind for alert in whole.firing]
    assert second.points == 700


def test_an_alert_that_is_open_in_a_checkpoint_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "wtwin_watch")
    first = Watch(name="gpt")
    feed(first, [*healthy(80), math.nan])
    second = Watch(name="gpt")
    second.load_state_dict(first.state_dict())
    feed(second, [math.nan, *healthy(FINITE_TO_RECOVER, start=81)], start=82)
    titles = [text.partition(":")[0] for _, text in told(caplog)]
    assert titles == ["Critical", "Resolved"]


@pytest.mark.parametrize("state", [{}, {"version": 99}, {"version": 1, "monitor": {}}])
def test_a_state_that_cannot_be_read_begins_anew_and_says_so(
    state: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    watch = Watch()
    watch.load_state_dict(state)
    feed(watch, healthy(5))
    assert "the watch begins anew" in told(caplog)[0][1]
    assert watch.points == 5


def test_going_back_to_a_checkpoint_tells_nothing_twice(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch()
    feed(watch, [*healthy(80), math.nan])
    watch.rewind(70)
    feed(watch, [*healthy(10, start=70), math.nan], start=71)
    assert len([text for _, text in told(caplog) if text.startswith("Critical")]) == 1


def test_beginning_again_at_step_0_ends_what_was_open(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "wtwin_watch")
    watch = Watch()
    feed(watch, [*healthy(80), math.nan])
    watch.rewind(0)
    assert watch.firing == []
    assert watch.points == 0
    assert "The log starts anew (the training began again)" in told(caplog)[-1][1]


def test_closing_ends_what_is_open(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "wtwin_watch")
    with Watch() as watch:
        feed(watch, [*healthy(80), math.nan])
    assert told(caplog)[-1][1].endswith("The training ended, so this is no longer observed.")
    assert watch.firing == []


def test_a_watch_can_be_sent_to_another_process_before_the_training(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[[receiver]]\nnotifier = "terminal"\n')
    watch = pickle.loads(pickle.dumps(Watch(file, name="gpt")))
    feed(watch, healthy(5))
    assert watch.points == 5


# -- acting ----------------------------------------------------------------------------------------


def test_nothing_is_done_about_an_alert_unless_asked_for() -> None:
    watch = Watch()
    feed(watch, [*healthy(80), math.nan])
    assert not Actions(False, False).wanted
    assert Actions(False, False).decide(watch.firing) == Act(False, False)


def test_a_checkpoint_is_asked_for_once_an_alert_and_the_end_until_it_comes() -> None:
    watch = Watch()
    feed(watch, [*healthy(80), math.nan])
    actions = Actions(True, "warning")
    assert actions.decide(watch.firing) == Act(True, True)
    assert actions.decide(watch.firing) == Act(True, False)


def test_what_is_less_grave_than_asked_for_stops_nothing() -> None:
    watch = Watch()
    for step, loss in enumerate(drifting(600, since=500), start=1):
        watch.update(step, loss)
        if watch.firing and watch.firing[0].severity is not Severity.INFO:
            break
    assert watch.firing[0].severity is Severity.WARNING
    assert Actions(True, False).decide(watch.firing) == Act(False, False)
    assert Actions("warning", False).decide(watch.firing) == Act(True, False)


def test_a_severity_that_there_is_not_is_an_error_that_names_the_option() -> None:
    with pytest.raises(SettingsError, match="stop_on_alert='grave': give True, False or one of"):
        Actions("grave", False)


# -- importing -------------------------------------------------------------------------------------


def test_importing_the_package_imports_numpy_alone() -> None:
    heavy = ["torch", "transformers", "lightning", "pydantic", "sqlalchemy", "structlog", "scipy"]
    code = (
        "import sys; from wtwin_watch.integrations import Watch; Watch().update(1, 2.0);"
        f" print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("HuggingFaceCallback", "transformers", "transformers"),
        ("WTwinCallback", "transformers", "transformers"),
        ("LightningCallback", "lightning", "lightning"),
    ],
)
def test_a_framework_that_is_missing_is_told_with_the_command_that_installs_it(
    name: str, module: str, extra: str
) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None; sys.modules['{module}.pytorch'] = None\n"
        f"from wtwin_watch.integrations import {name}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = done.stderr.splitlines()[-1]
    assert f"{name} needs the module {module!r}" in said or f"{module}.pytorch" in said
    assert "install it with: pip install" in said
    assert f"[{extra}]" in said
