"""`WTwinCallback` as it is published beside the W-Twin package, for those who have it in their training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from wtwin_watch.integrations.telling import log
from wtwin_watch.monitor import WTwinMonitor, WTwinState

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "pretraining": {"warmup_steps": 2000, "n_consec": 7},
    "adaptive_pretraining": {"warmup_steps": 2000, "n_consec": 7, "use_adaptive_T": True},
    "finetuning": {"warmup_steps": 200, "alpha": 2.5, "n_consec": 7},
    "custom": {},
}
SAY_EVERY = 10

OnAlert = Callable[[int, float, WTwinState], object]


class WTwinCallback(TrainerCallback):  # type: ignore[misc]
    """The published method on what a Trainer logs; `HuggingFaceCallback` is the one for new work.

    ``preset`` and ``wtwin_config`` are parameters of `WTwinMonitor`, whose steps count *logged* losses.
    ``on_alert(step, W, state)`` is called once, at the first alert; without it the log warns. ``verbose``
    logs W at every tenth loss, as information. `monitor` and `wtwin_summary` are as published.

    What differs: a loss of 0 is a loss, the ``train_loss`` of the whole run is none, an unknown preset is
    an error, other processes than the first do nothing, and it speaks through the logger ``wtwin_watch``.
    """

    def __init__(
        self,
        preset: str = "pretraining",
        wtwin_config: Mapping[str, Any] | None = None,
        on_alert: OnAlert | None = None,
        verbose: bool = True,
    ) -> None:
        if preset not in PRESETS:
            raise ValueError(f"preset {preset!r}: there are {', '.join(PRESETS)}")
        self.preset = preset
        self.monitor = WTwinMonitor(**{**PRESETS[preset], **(wtwin_config or {})})
        self.on_alert = on_alert or _warn
        self.verbose = verbose
        self._logged = 0
        self._alerted = False

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Judge the loss that is logged, if one is."""
        if not logs or "loss" not in logs or not state.is_world_process_zero:
            return
        self._logged += 1
        said = self.monitor.update(self._logged, float(logs["loss"]))
        if self.verbose and self._logged % SAY_EVERY == 0:
            score = f"W {said.W:+.3f}" if self.monitor.ready else self.monitor.status
            log.info("step %d: loss %.4f, %s", state.global_step, said.l_obs, score)
        if said.alert and not self._alerted:
            self._alerted = True
            self.on_alert(state.global_step, said.W, said)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Sum up."""
        if state.is_world_process_zero:
            log.info("W-Twin: %s", self.wtwin_summary())

    def wtwin_summary(self) -> dict[str, Any]:
        """Return the preset, how many losses were judged, at which one it alerted, and what it judges by."""
        return {
            "preset": self.preset,
            "steps_monitored": self._logged,
            "first_alert": self.monitor.first_alert_step(),
            "baseline_fitted": self.monitor.baseline.is_fitted,
        }


def _warn(step: int, score: float, state: WTwinState) -> None:
    log.warning(
        "W-Twin alert at step %d: W %.3f, loss %.4f, forecast %.4f",
        step,
        score,
        state.l_obs,
        state.l_pred,
    )
