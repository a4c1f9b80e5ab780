"""The callback for the Trainer of Hugging Face transformers, and for those that build on it."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from wtwin_watch.errors import SettingsError
from wtwin_watch.integrations.actions import Act, Actions, On
from wtwin_watch.integrations.telling import log
from wtwin_watch.integrations.watch import Watch

if TYPE_CHECKING:
    from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments

STATE_FILE = "wtwin_watch.json"
_HIDDEN = (
    "the Trainer hides a loss that is not finite: it logs 0 or an average in its place, because"
    " logging_nan_inf_filter is on; to see it set logging_nan_inf_filter=False in TrainingArguments"
)
_SHOWS_HIDDEN = ("nonfinite", "zero", "grad_nonfinite")
"""The kinds of alert behind which there may be a loss that the Trainer didn't log."""
_OF_THE_WHOLE_RUN = ("train_runtime", "train_loss")


class HuggingFaceCallback(TrainerCallback):  # type: ignore[misc]
    """Feeds a `Watch` with what the Trainer logs: each ``loss`` with its learning rate and gradient norm.

    So a point is the mean over ``logging_steps`` steps; 1 sees the most. ``eval_loss`` is the validation
    loss. The ``train_loss`` that the Trainer logs at the end is the mean of the whole run, and no point.

    ``watch`` is a `Watch`; or give the options of one. ``stop_on_alert`` ends the training in an orderly
    way, ``checkpoint_on_alert`` saves one checkpoint an alert: True where it is critical, ``"warning"`` from
    there on. ``log_back`` adds ``wtwin/W``, ``wtwin/D`` and ``wtwin/Q`` to what the Trainer's trackers get;
    it needs `attach` in place of ``callbacks=``, since trackers come before other callbacks.

    What it has learned lies in each checkpoint, and a training that is resumed from there goes on with it.
    """

    def __init__(
        self,
        watch: Watch | None = None,
        *,
        stop_on_alert: On = False,
        checkpoint_on_alert: On = False,
        log_back: bool = False,
        **options: Any,
    ) -> None:
        if watch is not None and options:
            raise SettingsError([f"give {', '.join(options)} to the Watch, not to its callback"])
        self.watch = Watch(**options) if watch is None else watch
        self._actions = Actions(stop_on_alert, checkpoint_on_alert)
        self._log_back = log_back
        self._attached = False
        self._filtered = False
        self._told = False

    def attach(self, trainer: Trainer) -> HuggingFaceCallback:
        """Add this callback to ``trainer`` before all others, so that ``log_back`` reaches its trackers."""
        trainer.callback_handler.callbacks.insert(0, self)
        self._attached = True
        return self

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Learn which run this is, and where it goes on."""
        if self._log_back and not self._attached:
            raise SettingsError(
                [
                    "log_back: trackers come before the callbacks=[…] of a Trainer; write"
                    " HuggingFaceCallback(log_back=True).attach(trainer) in place of that"
                ]
            )
        watch = self.watch
        watch.chief = state.is_world_process_zero
        watch.name = watch.name or state.trial_name or args.run_name or Path(args.output_dir).name
        self._filtered = bool(args.logging_nan_inf_filter)
        watch.remarks = dict.fromkeys(_SHOWS_HIDDEN, _HIDDEN) if self._filtered else {}
        if state.global_step and not watch.points:
            self._recall(_checkpoint(args, state) / STATE_FILE)
        watch.rewind(state.global_step)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Judge what is logged."""
        if not logs or any(key in logs for key in _OF_THE_WHOLE_RUN):
            return
        if "loss" in logs:
            said = self.watch.update(
                state.global_step,
                self._loss(logs),
                lr=logs.get("learning_rate"),
                grad_norm=logs.get("grad_norm"),
                val_loss=logs.get("eval_loss"),
            )
            if self._log_back and self.watch.chief:
                logs |= {"wtwin/W": said.W, "wtwin/D": said.D, "wtwin/Q": said.Q}
        elif "eval_loss" in logs:
            self.watch.update(state.global_step, val_loss=logs["eval_loss"])
        else:
            return
        self._say_what_is_hidden()
        if self._actions.wanted:
            act = _agreed(self._actions.decide(self.watch.firing), args)
            control.should_training_stop |= act.stop
            control.should_save |= act.save

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Put what was learned into the checkpoint that was just written."""
        if not self.watch.chief:
            return
        path = _checkpoint(args, state) / STATE_FILE
        try:
            path.write_text(json.dumps(self.watch.state_dict()), encoding="utf-8")
        except OSError as error:
            log.warning("what was learned of the run is not in its checkpoint: %s", error)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """End what is open, and see it told."""
        self.watch.close()

    def _loss(self, logs: Mapping[str, Any]) -> Any:
        """The loss; what the filter makes of one that isn't finite, where that is certain, is NaN."""
        loss = logs["loss"]
        hidden = self._filtered and loss == 0.0 and math.isnan(logs.get("grad_norm") or 0.0)
        return math.nan if hidden else loss

    def _say_what_is_hidden(self) -> None:
        if self._told or not self._filtered:
            return
        if any(alert.kind in _SHOWS_HIDDEN for alert in self.watch.firing):
            self._told = True
            log.warning("%s: %s", self.watch.run.name, _HIDDEN)

    def _recall(self, path: Path) -> None:
        """Go on with what the checkpoint has; one without it is an ordinary one."""
        if not self.watch.chief or not path.is_file():
            return
        try:
            self.watch.load_state_dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            log.warning("the watch begins anew: %s can't be read: %s", path.name, error)


def _checkpoint(args: TrainingArguments, state: TrainerState) -> Path:
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"


def _agreed(act: Act, args: TrainingArguments) -> Act:
    """What the first process decides, in all: one that stopped alone would leave the others hanging."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return act
    import torch

    shared = torch.tensor([act.stop, act.save], dtype=torch.uint8, device=args.device)
    distributed.broadcast(shared, src=0)
    return Act(*map(bool, shared.tolist()))
