"""`Watch`: one line in a training loop that judges its loss and tells people when it goes wrong."""

from __future__ import annotations

import json
import math
import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from wtwin_watch.alerting import lifecycle
from wtwin_watch.alerting.lifecycle import Alerts, Policy, Reason, Transition
from wtwin_watch.errors import SnapshotError
from wtwin_watch.integrations.options import detector_options
from wtwin_watch.integrations.ranks import rank as rank_here
from wtwin_watch.integrations.telling import LogTeller, Teller, log, sender, settings_for
from wtwin_watch.integrations.values import number
from wtwin_watch.metrics import Names
from wtwin_watch.model import Alert, AlertState, Detection, Family, Point, Run, RunKey, RunStatus
from wtwin_watch.monitor.options import DetectorOptions, TrendOptions
from wtwin_watch.monitor.run import RunMonitor
from wtwin_watch.monitor.wtwin import WTwinState

if TYPE_CHECKING:
    from wtwin_watch.settings import Settings

SOURCE = "training loop"
"""What the source of these runs is called in alerts and routes."""
FLUSH_S = 10.0
STATE_VERSION = 1

_NAMES = Names(
    loss="loss", lr="lr", grad_norm="grad_norm", val_loss="val_loss", throughput="throughput"
)
_FAMILIES = (Family.LOSS, Family.NONFINITE, Family.PROGRESS)

LogBack = Callable[[dict[str, float], float], object]


class Watch:
    """Watches one training run from inside its loop, by the monitors and alerts of the daemon.

    ``notify`` says who is told: a settings file of the daemon (its receivers, routes, ``[alerts]`` and
    ``[detector]`` are read), or `Settings`; without it alerts go to the logger ``wtwin_watch``, as
    warnings. ``name``, ``project`` and ``url`` name the run to those who are told. ``detector`` and
    ``options`` (``far=``, ``alpha=`` …) are the parameters of the detector. ``log_back`` is called with
    ``wtwin/W``, ``wtwin/D`` and ``wtwin/Q`` and the step after each judged point: ``wandb.log``.

    Of several processes of one training only the first watches, and `update` does nothing in the others.
    ``rank`` overrules what torch.distributed or the environment say, where each process is a run of its own.

    Wrong settings raise `SettingsError` here. From then on nothing that a receiver does reaches the
    training: sending is the business of a thread in the background.
    """

    def __init__(
        self,
        notify: str | os.PathLike[str] | Settings | None = None,
        *,
        name: str | None = None,
        project: str = "",
        url: str | None = None,
        detector: str | None = None,
        log_back: LogBack | None = None,
        rank: int | None = None,
        **options: Any,
    ) -> None:
        base: DetectorOptions = TrendOptions()
        self._policy, self._min_points = Policy(), 0
        self._teller: Teller = LogTeller()
        if notify is not None:
            settings = settings_for(notify)
            base = settings.detector.options()
            self._policy = Policy(settings.alerts.for_s, settings.alerts.cooldown_s)
            self._min_points = settings.alerts.min_steps
            self._teller = sender(settings)
        self._detector = detector_options(base, detector, options)
        self._log_back = log_back
        self._rank = rank
        self._chief: bool | None = None
        self.name = name
        self._project, self._url = project, url
        self.remarks: dict[str, str] = {}
        """What is to be added to the evidence of an alert of a kind, such as how its cause is hidden."""
        self._begin()

    def _begin(self) -> None:
        self._monitor = RunMonitor(_NAMES, self._detector, history_limit=1)
        self._alerts: Alerts = {}
        self._quiet = self._min_points > 0
        self._pending = self._quiet
        self._broken = False
        self._lr: float | None = None
        self._steps = 0
        self._nothing = WTwinState(math.nan, math.nan, math.nan, 0.0, 0.0, 0.0, 0.0, False)

    # -- in the loop -------------------------------------------------------------------------------

    def update(
        self,
        step: float,
        loss: Any = None,
        *,
        lr: Any = None,
        grad_norm: Any = None,
        val_loss: Any = None,
        throughput: Any = None,
    ) -> WTwinState:
        """Judge what was measured at ``step``; return what is said of the loss.

        Before there is a forecast the state is neutral: ``l_pred`` is NaN, D, Q, T and W are 0.
        Each value is a number, or a tensor or array of one. A validation loss may come by itself. A step
        that is lower than the one before says that the run goes on from there (`rewind` says it before).
        Costs some tens of microseconds, and the transfer of a tensor that lies on another device.
        """
        if not self.chief or self._broken:
            return self._nothing
        step = float(step)
        points = []
        if lr is not None and (rate := number(lr)) != self._lr:
            self._lr = rate
            points.append(Point("lr", step, rate))
        if grad_norm is not None:
            points.append(Point("grad_norm", step, number(grad_norm)))
        if val_loss is not None:
            points.append(Point("val_loss", step, number(val_loss)))
        if throughput is not None:
            points.append(Point("throughput", step, number(throughput)))
        if loss is not None:
            points.append(Point("loss", step, number(loss)))
            self._steps = int(step) if math.isfinite(step) else self._steps
        try:
            found = self._monitor.feed(points)
        except Exception:
            log.exception("watching %s has ended: its monitor failed", self.run.name)
            self._broken = True
            return self._nothing
        if found or self._pending:
            self._follow(found, time.time())
        state = self._state(step, points)
        if self._log_back is not None and loss is not None:
            self._hand_back(self._log_back, state)
        return state

    def step(
        self, loss: Any, *, optimizer: Any = None, grad_norm: Any = None, val_loss: Any = None
    ) -> WTwinState:
        """`update` at the next step, with the learning rate of ``optimizer``'s first parameter group.

        For a PyTorch loop: once for each step of the optimizer. Where gradients are accumulated over
        several batches, ``loss`` is their mean.
        """
        lr = None if optimizer is None else optimizer.param_groups[0]["lr"]
        return self.update(self._steps + 1, loss, lr=lr, grad_norm=grad_norm, val_loss=val_loss)

    def rewind(self, step: float) -> None:
        """Take note that the run goes on behind ``step``, from a checkpoint: later steps come once more.

        Behind step 0 it begins anew: what was learned is forgotten, and open alerts end.
        """
        if step < self._steps:
            from_step = step + 1 if step > 0 else None
            ended = self._monitor.restart(from_step, "the training began again")
            self._follow(ended, time.time())
            self._lr = None
        self._steps = int(step)

    @property
    def chief(self) -> bool:
        """Whether this process is the one that watches. Asked at the first step, and then known."""
        if self._chief is None:
            rank = rank_here(os.environ) if self._rank is None else self._rank
            self._chief = rank == 0
        return self._chief

    @chief.setter
    def chief(self, chief: bool) -> None:
        # A framework says it; a rank that was given knows better.
        self._chief = chief if self._rank is None else self._rank == 0

    @property
    def firing(self) -> list[Alert]:
        """The alerts that fire now, those that nobody is told of left out."""
        return [
            alert
            for alert in self._alerts.values()
            if alert.state is AlertState.FIRING and not alert.quiet
        ]

    @property
    def run(self) -> Run:
        """The run as those who are told know it."""
        name = self.name or Path(sys.argv[0]).stem or "training"
        key = RunKey(SOURCE, name)
        return Run(key, name, self._project, RunStatus.RUNNING, self._url)

    @property
    def points(self) -> int:
        """How many losses were judged."""
        return self._monitor.points

    @property
    def last_step(self) -> float | None:
        """The step of the latest loss."""
        return self._monitor.last_step

    @property
    def status(self) -> str:
        """What can be said of the run now, and if nothing, why: a sentence for a person."""
        return "its monitor failed" if self._broken else self._monitor.status

    # -- its end -----------------------------------------------------------------------------------

    def flush(self, timeout_s: float = FLUSH_S) -> bool:
        """Wait until all is told, at most ``timeout_s`` seconds; whether that was so."""
        return self._teller.flush(timeout_s)

    def close(self, timeout_s: float = FLUSH_S) -> None:
        """End what is open, since nothing is observed any more, and wait until that is told.

        The end of the program does the waiting as well, but can't know that the training is over.
        """
        why = "The training ended, so this is no longer observed."
        now = time.time()
        alerts, told = lifecycle.close(self._alerts, _FAMILIES, why, Reason.RUN_ENDED, now)
        self._alerts = alerts
        self._tell(told)
        self._teller.close(timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what it knows, in a checkpoint ------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return all that is to be known of the run to go on watching it: JSON-able."""
        return {
            "version": STATE_VERSION,
            "monitor": self._monitor.snapshot(),
            "alerts": json.loads(json.dumps([asdict(one) for one in self._alerts.values()])),
            "told": self._teller.state(),
            "step": self._steps,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken. One that can't be read is told, and the watch begins anew."""
        from pydantic import TypeAdapter, ValidationError

        self._begin()
        try:
            if state["version"] != STATE_VERSION:
                raise SnapshotError(f"its version is {state['version']!r}")
            monitor = RunMonitor.restore(state["monitor"], _NAMES, self._detector)
            alerts = TypeAdapter(list[Alert]).validate_python(state["alerts"])
            self._teller.recall(state["told"])
            self._steps = int(state["step"])
        except (SnapshotError, ValidationError, KeyError, TypeError, ValueError) as error:
            log.warning(
                "the watch begins anew: the state in the checkpoint can't be read: %s", error
            )
            return
        self._monitor = monitor
        self._alerts = {alert.family: alert for alert in alerts}
        self._quiet = self._quiet and monitor.points < self._min_points
        self._pending = self._waits

    # -- what follows from a point -----------------------------------------------------------------

    def _follow(self, found: Sequence[Detection], now: float) -> None:
        if self.remarks:
            found = [self._with_remark(one) for one in found]
        key = self.run.key
        self._alerts, told = lifecycle.step(
            key, self._alerts, found, now, self._policy, _new_id, self._quiet
        )
        if self._quiet and self._monitor.points >= self._min_points:
            self._quiet = False
            self._alerts, more = lifecycle.end_of_backlog(
                self._alerts, now, self._policy, old=False
            )
            told += more
        self._alerts, late = lifecycle.advance(self._alerts, now, self._policy)
        self._pending = self._waits
        self._tell([*told, *late])

    @property
    def _waits(self) -> bool:
        """Whether time or the number of points may change an alert."""
        return self._quiet or any(a.state is AlertState.PENDING for a in self._alerts.values())

    def _with_remark(self, found: Detection) -> Detection:
        remark = self.remarks.get(found.kind)
        if remark is None or not found.active:
            return found
        return replace(found, evidence=(*found.evidence, remark))

    def _tell(self, transitions: Sequence[Transition]) -> None:
        run = self.run
        for one in transitions:
            if one.event is None:
                continue
            try:
                self._teller.tell(one.event, one.alert, run)
            except Exception:
                # Such as a limit on threads: it must not cost the training.
                log.exception("%s: an alert could not be told", run.name)

    def _state(self, step: float, points: Sequence[Point]) -> WTwinState:
        states = self._monitor.judged
        if states and states[-1].step == step:
            return states[-1]
        loss = points[-1].value if points and points[-1].metric == "loss" else math.nan
        wrong = not self._monitor.active.isdisjoint((Family.LOSS, Family.NONFINITE))
        return self._nothing._replace(step=step, l_obs=loss, alert=wrong)

    def _hand_back(self, log_back: LogBack, state: WTwinState) -> None:
        values = {"wtwin/W": state.W, "wtwin/D": state.D, "wtwin/Q": state.Q}
        try:
            log_back(values, state.step)
        except Exception:
            log.exception("W, D and Q are no longer logged: log_back failed")
            self._log_back = None


def _new_id() -> str:
    return uuid.uuid4().hex
