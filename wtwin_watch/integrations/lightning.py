"""The callback for the Trainer of Lightning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from wtwin_watch.errors import SettingsError
from wtwin_watch.integrations.actions import Act, Actions, On
from wtwin_watch.integrations.watch import Watch
from wtwin_watch.metrics import Role, belief
from wtwin_watch.monitor.wtwin import WTwinState


class LightningCallback(Callback):  # type: ignore[misc]
    """Feeds a `Watch` with the loss of each step of the optimizer, and its learning rate.

    The loss is what ``training_step`` returns, by itself or as ``"loss"``; a step's is the mean over the
    batches whose gradients were accumulated for it. With ``every`` = n the mean over n steps is judged:
    reading a number waits for the GPU, which n saves. What ``training_step`` returns in manual
    optimization is taken in the same way; None is passed over. A validation loss is the metric that is
    logged under one of the usual names (``val_loss``); that of the sanity check is no point.

    ``watch``, ``stop_on_alert``, ``checkpoint_on_alert`` and ``log_back`` are as for
    `HuggingFaceCallback`; checkpoints are ``alert-step=N.ckpt`` in the trainer's ``default_root_dir``,
    and logging back takes place every ``log_every_n_steps``. What was learned lies in each checkpoint.
    """

    def __init__(
        self,
        watch: Watch | None = None,
        *,
        every: int = 1,
        stop_on_alert: On = False,
        checkpoint_on_alert: On = False,
        log_back: bool = False,
        **options: Any,
    ) -> None:
        if watch is not None and options:
            raise SettingsError([f"give {', '.join(options)} to the Watch, not to its callback"])
        if every < 1:
            raise SettingsError([f"every={every!r}: should be at least 1"])
        self.watch = Watch(**options) if watch is None else watch
        self._every = every
        self._actions = Actions(stop_on_alert, checkpoint_on_alert)
        self._log_back = log_back
        self._sum: Any = None
        self._batches = 0
        self._judged_at = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Learn which run this is, and where it goes on."""
        self.watch.chief = trainer.is_global_zero
        self.watch.name = self.watch.name or _name(trainer, pl_module)
        self.watch.rewind(trainer.global_step)
        self._sum, self._batches = None, 0
        self._judged_at = trainer.global_step

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Add the batch's loss, and judge when the optimizer has made its step."""
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if loss is not None and self.watch.chief:
            loss = loss.detach()
            self._sum = loss if self._sum is None else self._sum + loss
            self._batches += 1
        step = trainer.global_step
        if step - self._judged_at < self._every:
            return
        self._judged_at = step
        if self._sum is not None:
            # In automatic optimization Lightning has divided each loss by the number accumulated.
            share = trainer.accumulate_grad_batches if pl_module.automatic_optimization else 1
            mean = self._sum if share == self._batches else self._sum * (share / self._batches)
            self._sum, self._batches = None, 0
            said = self.watch.update(step, mean, lr=_rate(trainer))
            if self._log_back and step % trainer.log_every_n_steps < self._every:
                _hand_back(trainer, said)
        self._act(trainer)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Judge the validation loss."""
        if trainer.sanity_checking or not self.watch.chief:
            return
        metrics = trainer.callback_metrics
        known = {name: of for name in metrics if (of := belief(name)) and of[0] is Role.VAL_LOSS}
        if known:
            name = min(known, key=lambda name: (known[name][1], name))
            self.watch.update(trainer.global_step, val_loss=metrics[name])

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End what is open, and see it told."""
        self.watch.close()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """See what was found told, although the training fails."""
        self.watch.flush()

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return self.watch.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with what a checkpoint has, unless this watch has seen the run itself."""
        if not self.watch.points:
            self.watch.load_state_dict(state_dict)

    def _act(self, trainer: Trainer) -> None:
        if not self._actions.wanted:
            return
        act = _agreed(self._actions.decide(self.watch.firing), trainer)
        if act.save:
            name = f"alert-step={trainer.global_step}.ckpt"
            trainer.save_checkpoint(Path(trainer.default_root_dir) / name)
        if act.stop:
            trainer.should_stop = True


def _name(trainer: Trainer, module: LightningModule) -> str:
    logger = trainer.logger
    if logger is None or logger.name is None:
        return type(module).__name__
    parts = (str(logger.name), "" if logger.version is None else str(logger.version))
    return "/".join(part for part in parts if part)


def _rate(trainer: Trainer) -> float | None:
    return trainer.optimizers[0].param_groups[0]["lr"] if trainer.optimizers else None


def _hand_back(trainer: Trainer, said: WTwinState) -> None:
    values = {"wtwin/W": said.W, "wtwin/D": said.D, "wtwin/Q": said.Q}
    for logger in trainer.loggers:
        logger.log_metrics(values, step=trainer.global_step)


def _agreed(act: Act, trainer: Trainer) -> Act:
    """What the first process decides, in all: one that stopped alone would leave the others hanging."""
    reduce = trainer.strategy.reduce_boolean_decision
    return Act(reduce(act.stop, all=False), reduce(act.save, all=False))
