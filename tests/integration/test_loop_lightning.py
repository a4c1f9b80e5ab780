"""The callback in the real Trainer of Lightning, which learns a line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
lightning = pytest.importorskip("lightning.pytorch", reason="lightning is not installed")

from lightning.pytorch.loggers import CSVLogger  # noqa: E402

from tests.support.loops import BATCH, Line, examples  # noqa: E402
from tests.support.webhook_standin import WebhookStandIn  # noqa: E402
from wtwin_watch.errors import SettingsError  # noqa: E402
from wtwin_watch.integrations import LightningCallback, Watch  # noqa: E402
from wtwin_watch.metrics import Role  # noqa: E402

pytestmark = [
    pytest.mark.integration,
    # Lightning's hints about workers, loggers and the like, and what it uses of torch.
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


class Module(lightning.LightningModule):  # type: ignore[misc]
    """Returns its loss as a dict; keeps the losses for the test to compare with."""

    def __init__(self, model: Line, plain: bool = False) -> None:
        super().__init__()
        self.model = model
        self.plain = plain
        self.losses: list[float] = []

    def training_step(self, batch: dict[str, Any], _: int) -> Any:
        loss = self.model(**batch)["loss"]
        self.losses.append(loss.item())
        return loss if self.plain else {"loss": loss, "other": loss * 0.0}

    def validation_step(self, batch: dict[str, Any], _: int) -> None:
        self.log("val_loss", self.model(**batch)["loss"])

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.02)


class ByHand(Module):
    """Steps its optimizer itself, every second batch; the others return nothing."""

    def __init__(self, model: Line) -> None:
        super().__init__(model)
        self.automatic_optimization = False

    def training_step(self, batch: dict[str, Any], at: int) -> Any:
        loss = self.model(**batch)["loss"]
        if at % 2 == 0:
            return None
        self.optimizers().zero_grad()
        self.manual_backward(loss)
        self.optimizers().step()
        self.losses.append(loss.item())
        return loss


def fit(
    folder: Path, module: Module, callback: LightningCallback, steps: int, **options: Any
) -> Any:
    resumed = options.pop("ckpt_path", None)
    given: dict[str, Any] = {
        "default_root_dir": str(folder),
        "max_steps": steps,
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "accelerator": "cpu",
    }
    trainer = lightning.Trainer(**given | options, callbacks=[callback])
    train = torch.utils.data.DataLoader(examples(1024), batch_size=BATCH, shuffle=False)
    held_out = torch.utils.data.DataLoader(examples(64, seed=2), batch_size=BATCH)
    trainer.fit(module, train, held_out, ckpt_path=resumed)
    return trainer


def judged(callback: LightningCallback, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note each loss that reaches the watch."""
    seen: list[Any] = []
    update = callback.watch.update

    def noted(step: float, loss: Any = None, **others: Any) -> Any:
        if loss is not None:
            seen.append((step, float(loss)))
        return update(step, loss, **others)

    monkeypatch.setattr(callback.watch, "update", noted)
    return seen


@pytest.mark.parametrize("plain", [False, True])
def test_each_step_is_judged_by_its_loss(
    tmp_path: Path, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, callback = Module(Line(), plain), LightningCallback()
    seen = judged(callback, monkeypatch)
    fit(tmp_path, module, callback, 12)
    assert seen == [(step, pytest.approx(loss)) for step, loss in enumerate(module.losses, 1)]
    assert callback.watch._monitor.roles[Role.LR] == "lr"


def test_labels_that_rot_are_told_to_a_receiver(tmp_path: Path) -> None:
    with WebhookStandIn() as hook:
        file = tmp_path / "config.toml"
        file.write_text(f'[[receiver]]\nnotifier = "webhook"\nurl = "{hook.hook_url}"\n')
        callback = LightningCallback(notify=file, name="gpt")
        fit(tmp_path, Module(Line(rots_from=150)), callback, 200)
        first = hook.deliveries[0].body
    assert first["type"] == "run.alert.firing"
    assert first["data"]["family"] == "loss"
    assert 150 <= first["data"]["step"] <= 200
    assert hook.types[-1] == "run.alert.resolved"


def test_a_nan_is_told_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fit(tmp_path, Module(Line(nan_from=20)), LightningCallback(name="gpt"), 25)
    assert "Critical: loss is not finite (gpt): Loss is NaN at step 20;" in caplog.text


def test_accumulated_batches_are_one_point_of_their_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, callback = Module(Line()), LightningCallback()
    seen = judged(callback, monkeypatch)
    fit(tmp_path, module, callback, 8, accumulate_grad_batches=4)
    means = [sum(module.losses[at : at + 4]) / 4 for at in range(0, 32, 4)]
    assert seen == [(step, pytest.approx(mean)) for step, mean in enumerate(means, 1)]


def test_with_every_n_steps_their_mean_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, callback = Module(Line()), LightningCallback(every=5)
    seen = judged(callback, monkeypatch)
    fit(tmp_path, module, callback, 20)
    means = [sum(module.losses[at : at + 5]) / 5 for at in range(0, 20, 5)]
    assert seen == [(5 * n, pytest.approx(mean)) for n, mean in enumerate(means, 1)]


def test_manual_optimization_is_judged_by_what_a_step_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, callback = ByHand(Line()), LightningCallback()
    seen = judged(callback, monkeypatch)
    fit(tmp_path, module, callback, 8)
    assert seen == [(step, pytest.approx(loss)) for step, loss in enumerate(module.losses, 1)]


def test_the_validation_loss_is_a_point_but_not_that_of_the_sanity_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    callback = LightningCallback()
    update, seen = callback.watch.update, []

    def noted(step: float, loss: Any = None, **others: Any) -> Any:
        if "val_loss" in others:
            seen.append(step)
        return update(step, loss, **others)

    monkeypatch.setattr(callback.watch, "update", noted)
    trainer = fit(tmp_path, Module(Line()), callback, 20, val_check_interval=10)
    assert trainer.num_sanity_val_steps > 0
    assert seen == [10, 20]


def test_a_resumed_training_goes_on_with_what_was_learned(tmp_path: Path) -> None:
    first = fit(tmp_path, Module(Line()), LightningCallback(), 20)
    first.save_checkpoint(tmp_path / "at-20.ckpt")
    second = LightningCallback()
    fit(tmp_path, Module(Line()), second, 30, ckpt_path=str(tmp_path / "at-20.ckpt"))
    assert second.watch.points == 30
    assert second.watch.last_step == 30


def test_an_alert_stops_and_saves_where_that_is_asked_for(tmp_path: Path) -> None:
    callback = LightningCallback(stop_on_alert=True, checkpoint_on_alert="warning")
    trainer = fit(tmp_path, Module(Line(nan_from=20)), callback, 200)
    assert trainer.global_step == 20
    assert [path.name for path in tmp_path.glob("*.ckpt")] == ["alert-step=20.ckpt"]


def test_scores_reach_the_logger_where_that_is_asked_for(tmp_path: Path) -> None:
    logs = {}
    for log_back in (True, False):
        logger = CSVLogger(tmp_path, name=f"back-{log_back}", version="v1")
        callback = LightningCallback(log_back=log_back)
        trainer = fit(tmp_path, Module(Line()), callback, 40, logger=logger, log_every_n_steps=10)
        logger.save()
        file = Path(trainer.logger.log_dir) / "metrics.csv"
        logs[log_back] = file.read_text() if file.exists() else ""
        assert callback.watch.run.name == f"back-{log_back}/v1"
    header, *rows = logs[True].splitlines()
    assert {"wtwin/W", "wtwin/D", "wtwin/Q"} <= set(header.split(","))
    at = header.split(",").index("step")
    assert [
        row.split(",")[at] for row in rows if row.split(",")[header.split(",").index("wtwin/W")]
    ] == ["10", "20", "30", "40"]
    assert "wtwin" not in logs[False]


def test_a_training_that_fails_leaves_its_alert_open_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(Module):
        def training_step(self, batch: dict[str, Any], at: int) -> Any:
            if at == 25:
                raise RuntimeError("out of memory")
            return super().training_step(batch, at)

    callback = LightningCallback()
    with pytest.raises(RuntimeError, match="out of memory"):
        fit(tmp_path, Failing(Line(nan_from=20)), callback, 40)
    assert [alert.kind for alert in callback.watch.firing] == ["nonfinite"]


def test_wrong_options_are_errors() -> None:
    with pytest.raises(SettingsError, match="every=0: should be at least 1"):
        LightningCallback(every=0)
    with pytest.raises(SettingsError, match="give far to the Watch"):
        LightningCallback(Watch(), far=1e4)


def test_other_ranks_read_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    callback = LightningCallback(rank=1)
    seen = judged(callback, monkeypatch)
    fit(tmp_path, Module(Line()), callback, 5)
    assert seen == []
    assert math.isnan(callback.watch.update(6, 1.0).l_obs)
