"""The callbacks in the real Trainer of transformers, which learns a line."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")

from tests.support.loops import BATCH, Line, examples  # noqa: E402
from tests.support.webhook_standin import WebhookStandIn  # noqa: E402
from wtwin_watch.errors import SettingsError  # noqa: E402
from wtwin_watch.integrations import HuggingFaceCallback, Watch, WTwinCallback  # noqa: E402
from wtwin_watch.metrics import Names, Role  # noqa: E402
from wtwin_watch.model import Point, Severity  # noqa: E402
from wtwin_watch.monitor import RunMonitor  # noqa: E402

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "wtwin_watch")


def trainer(
    folder: Path, model: Line, *callbacks: transformers.TrainerCallback, **arguments: Any
) -> transformers.Trainer:
    given: dict[str, Any] = {
        "output_dir": str(folder / "run-a"),
        "per_device_train_batch_size": BATCH,
        "learning_rate": 0.02,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    }
    return transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(**given | arguments),
        train_dataset=examples(1024),
        eval_dataset=examples(64, seed=2),
        callbacks=list(callbacks),
    )


class Recorder(transformers.TrainerCallback):  # type: ignore[misc]
    """What a tracker gets."""

    def __init__(self) -> None:
        self.logs: list[dict[str, Any]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        self.logs.append(dict(logs))


def titles(caplog: pytest.LogCaptureFixture) -> list[str]:
    ours = [record for record in caplog.records if record.name == "wtwin_watch"]
    return [record.getMessage().partition(":")[0] for record in ours]


def test_a_nan_that_the_trainer_hides_is_told_with_the_cure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    callback = HuggingFaceCallback()
    run = trainer(tmp_path, Line(nan_from=20), callback, max_steps=30)
    run.train()

    logged = [row["loss"] for row in run.state.log_history if "loss" in row]
    assert logged[-1] == 0.0  # what everybody else sees
    cure = "set logging_nan_inf_filter=False in TrainingArguments"
    told = [text for text in caplog.messages if cure in text]
    assert told[0].startswith("Critical: loss is not finite (run-a): Loss is NaN at step 20;")
    assert [text for text in told if not text.startswith("Critical")] == told[1:]
    assert len(told) == 2


def test_a_nan_that_is_logged_needs_no_cure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    arguments = {"max_steps": 30, "logging_nan_inf_filter": False}
    trainer(tmp_path, Line(nan_from=20), HuggingFaceCallback(), **arguments).train()
    assert titles(caplog) == ["Critical", "Resolved"]
    assert "logging_nan_inf_filter" not in caplog.text


def test_a_hidden_nan_is_found_behind_an_average_of_several_steps(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    arguments = {"max_steps": 60, "logging_steps": 5}
    trainer(tmp_path, Line(nan_from=28), HuggingFaceCallback(), **arguments).train()
    assert "set logging_nan_inf_filter=False in TrainingArguments" in caplog.text


def test_the_mean_of_the_whole_run_is_no_point(tmp_path: Path) -> None:
    callback = HuggingFaceCallback()
    run = trainer(tmp_path, Line(), callback, max_steps=20)
    run.train()
    assert "train_loss" in run.state.log_history[-1]
    assert callback.watch.points == 20


def test_labels_that_rot_are_told_to_a_receiver_in_the_words_of_the_daemon(
    tmp_path: Path,
) -> None:
    with WebhookStandIn() as hook:
        file = tmp_path / "config.toml"
        file.write_text(f'[[receiver]]\nnotifier = "webhook"\nurl = "{hook.hook_url}"\n')
        callback = HuggingFaceCallback(Watch(notify=file, name="gpt", project="llm"))
        run = trainer(tmp_path, Line(rots_from=150), callback, max_steps=200)
        run.train()

        assert callback.watch.points == 200
        firing = next(d.body["data"] for d in hook.deliveries if d.body["type"].endswith("firing"))

    names = Names(loss="loss", lr="learning_rate", grad_norm="grad_norm")
    points = [
        Point(name, float(row["step"]), row[name])
        for row in run.state.log_history
        if "loss" in row
        for name in ("learning_rate", "grad_norm", "loss")
    ]
    found = [one for one in RunMonitor(names).feed(points) if one.severity is not Severity.INFO]
    assert firing["summary"] == found[0].summary
    assert (firing["run"], firing["project"]) == ("gpt", "llm")
    assert 150 <= firing["step"] <= 200


def test_what_the_trainer_logs_plays_its_role(tmp_path: Path) -> None:
    callback = HuggingFaceCallback()
    arguments = {"max_steps": 20, "eval_strategy": "steps", "eval_steps": 10}
    trainer(tmp_path, Line(), callback, **arguments).train()
    assert callback.watch._monitor.roles == {
        Role.LOSS: "loss",
        Role.LR: "lr",
        Role.GRAD_NORM: "grad_norm",
        Role.VAL_LOSS: "val_loss",
    }


def test_each_logged_loss_is_one_point_whatever_it_is_the_mean_of(tmp_path: Path) -> None:
    callback = HuggingFaceCallback()
    arguments = {"max_steps": 20, "logging_steps": 4, "gradient_accumulation_steps": 2}
    run = trainer(tmp_path, Line(), callback, **arguments)
    run.train()
    assert callback.watch.points == 5
    assert callback.watch.last_step == run.state.global_step == 20


def test_a_training_resumed_in_another_process_goes_on_with_what_was_learned(
    tmp_path: Path,
) -> None:
    arguments = {"max_steps": 30, "save_strategy": "steps", "save_steps": 20}
    trainer(tmp_path, Line(), HuggingFaceCallback(), **arguments).train()

    second = HuggingFaceCallback()
    run = trainer(tmp_path, Line(), second, **arguments)
    run.train(resume_from_checkpoint=str(tmp_path / "run-a" / "checkpoint-20"))

    assert second.watch.points == 30
    stored = json.loads((tmp_path / "run-a" / "checkpoint-20" / "wtwin_watch.json").read_text())
    assert stored["step"] == 20


def test_a_training_resumed_in_the_same_process_tells_nothing_twice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    callback = HuggingFaceCallback()
    arguments = {"max_steps": 30, "save_strategy": "steps", "save_steps": 20}
    run = trainer(tmp_path, Line(nan_from=15), callback, **arguments)
    run.train()
    assert titles(caplog).count("Critical") == 1
    run.train(resume_from_checkpoint=str(tmp_path / "run-a" / "checkpoint-20"))
    assert titles(caplog).count("Critical") == 1


def test_scores_reach_the_trackers_where_that_is_asked_for(tmp_path: Path) -> None:
    tracker = Recorder()
    run = trainer(tmp_path, Line(), tracker, max_steps=80)
    callback = HuggingFaceCallback(log_back=True).attach(run)
    run.train()
    with_loss = [logs for logs in tracker.logs if "loss" in logs]
    assert all({"wtwin/W", "wtwin/D", "wtwin/Q"} <= logs.keys() for logs in with_loss)
    assert with_loss[-1]["wtwin/Q"] == 1.0
    assert with_loss[-1]["wtwin/W"] < 0.0
    assert callback.watch.points == 80


def test_nothing_is_logged_where_it_is_not_asked_for(tmp_path: Path) -> None:
    tracker = Recorder()
    trainer(tmp_path, Line(), HuggingFaceCallback(), tracker, max_steps=5).train()
    assert not [key for logs in tracker.logs for key in logs if key.startswith("wtwin")]


def test_logging_back_from_behind_the_trackers_is_an_error_with_the_cure(tmp_path: Path) -> None:
    run = trainer(tmp_path, Line(), HuggingFaceCallback(log_back=True), max_steps=5)
    with pytest.raises(SettingsError, match=r"attach\(trainer\)"):
        run.train()


def test_an_alert_stops_the_training_and_saves_a_checkpoint_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    callback = HuggingFaceCallback(stop_on_alert=True, checkpoint_on_alert=True)
    run = trainer(tmp_path, Line(nan_from=20), callback, max_steps=200)
    run.train()
    assert run.state.global_step == 20
    assert [path.name for path in (tmp_path / "run-a").iterdir()] == ["checkpoint-20"]


def test_an_alert_stops_nothing_by_itself(tmp_path: Path) -> None:
    run = trainer(tmp_path, Line(nan_from=10), HuggingFaceCallback(), max_steps=20)
    run.train()
    assert run.state.global_step == 20
    assert not list(tmp_path.glob("run-a/checkpoint-*"))


def test_options_belong_to_the_watch_that_is_given() -> None:
    with pytest.raises(SettingsError, match="give far to the Watch"):
        HuggingFaceCallback(Watch(), far=1e4)


# -- the callback that is published beside the package ---------------------------------------------


def test_the_published_callback_alerts_once_with_step_score_and_state(tmp_path: Path) -> None:
    alerts: list[tuple[int, float, Any]] = []
    callback = WTwinCallback(
        preset="custom",
        wtwin_config={"warmup_steps": 0, "tau": 1.0},
        on_alert=lambda step, score, state: alerts.append((step, score, state)),
        verbose=False,
    )
    trainer(tmp_path, Line(rots_from=130), callback, max_steps=160).train()

    summary = callback.wtwin_summary()
    assert summary["preset"] == "custom"
    assert summary["steps_monitored"] == 160
    assert summary["baseline_fitted"]
    [(step, score, state)] = alerts
    assert step == summary["first_alert"] == state.step
    assert 130 <= step <= 140
    assert score == state.W > 0.0


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("pretraining", (2000, 2.0, 7, False)),
        ("adaptive_pretraining", (2000, 2.0, 7, True)),
        ("finetuning", (200, 2.5, 7, False)),
        ("custom", (50, 2.0, 5, False)),
    ],
)
def test_the_published_presets_are_as_published(
    preset: str, expected: tuple[int, float, int, bool]
) -> None:
    monitor = WTwinCallback(preset=preset).monitor
    given = (monitor.warmup_steps, monitor.alpha, monitor.n_consec, monitor.use_adaptive_T)
    assert given == expected


def test_a_preset_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="there are pretraining, adaptive_pretraining"):
        WTwinCallback(preset="pretrain")
