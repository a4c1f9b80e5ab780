"""The columns of the published table, and ours: each says where it gives its first alert.

The published threshold and CUSUM are inferred from the alert columns of the published logs, which they
reproduce in every row. Both are handicapped, so each has a fair version beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from benchmarks.curves import Floats, Log
from wtwin_watch.monitor import TrendMonitor, WTwinMonitor

Bools = NDArray[np.bool_]
WINDOW, SIGMAS, IN_A_ROW = 50, 3.0, 5
CALIBRATION, SLACK, LIMIT = 100, 0.5, 5.0
FAR_BACK, LATELY, FAIR_LIMIT = 600, 100, 10.0


def classic(log: Log, warmup_steps: int) -> float | None:
    """W-Twin, with the published settings but for the warm-up."""
    monitor = WTwinMonitor(warmup_steps=warmup_steps, history_limit=0)
    for step, loss in zip(log.steps.tolist(), log.losses.tolist(), strict=True):
        monitor.update(step, loss)
    return monitor.first_alert_step()


def ours(log: Log, with_lr: bool) -> float | None:
    """The trend monitor as delivered, told the learning rate or not."""
    monitor = TrendMonitor(history_limit=0)
    monitor.update_many(log.steps, log.losses, log.lrs if with_lr else None)
    return monitor.first_alert_step()


def threshold_published(losses: Floats) -> Bools:
    """More than 3 sd above the mean of the latest 50, five in a row; the current loss is one of the 50.

    So it can't alert on a step: five equal losses above 45 equal ones are 2.97 sd above the mean.
    """
    return _threshold(losses, last=0)


def threshold_fair(losses: Floats) -> Bools:
    """The same, with the 50 losses before the current one."""
    return _threshold(losses, last=1)


def _threshold(losses: Floats, last: int) -> Bools:
    spans = sliding_window_view(losses, WINDOW)
    spans = spans[: len(spans) - last]
    mean, sd = spans.mean(axis=1), np.maximum(spans.std(axis=1, ddof=1), 1e-8)
    above = np.zeros(len(losses), dtype=np.bool_)
    start = WINDOW - 1 + last
    above[start:] = losses[start:] - mean > SIGMAS * sd
    alarms = np.zeros_like(above)
    alarms[IN_A_ROW - 1 :] = sliding_window_view(above, IN_A_ROW).all(axis=1)
    return alarms


def cusum_published(losses: Floats) -> Bools:
    """Page's CUSUM, k = 0.5, h = 5, in units of mean and sd of the first 100 losses.

    Those are of the learning rate's warm-up, in which the loss falls by several nats: what comes after lies
    far below their mean, and has to rise above it to count.
    """
    first = losses[:CALIBRATION]
    return _cusum((losses - first.mean()) / max(first.std(), 1e-8), CALIBRATION, LIMIT)


def cusum_fair(losses: Floats) -> Bools:
    """Page's CUSUM, k = 0.5, h = 10, in units of mean and sd of the losses from 600 to 100 before."""
    width = FAR_BACK - LATELY
    z = np.zeros(len(losses))
    if len(losses) > FAR_BACK:
        spans = sliding_window_view(losses[: len(losses) - LATELY], width)[: len(losses) - FAR_BACK]
        sd = np.maximum(spans.std(axis=1), 1e-8)
        z[FAR_BACK:] = (losses[FAR_BACK:] - spans.mean(axis=1)) / sd
    return _cusum(z, FAR_BACK, FAIR_LIMIT)


def _cusum(z: Floats, start: int, limit: float) -> Bools:
    alarms = np.zeros(len(z), dtype=np.bool_)
    total = 0.0
    for i, value in enumerate(z.tolist()):
        if i >= start:
            total = max(0.0, total + value - SLACK)
            alarms[i] = total > limit
    return alarms


def _first(alarms: Callable[[Floats], Bools], log: Log) -> float | None:
    found = np.flatnonzero(alarms(log.losses))
    return float(log.steps[found[0]]) if len(found) else None


CLASSIC, DEFAULT, OURS, OURS_LR = (
    "W-Twin, warm-up 100",
    "W-Twin, default 50",
    "ours",
    "ours, with lr",
)
DETECTORS: dict[str, Callable[[Log], float | None]] = {
    CLASSIC: partial(classic, warmup_steps=100),
    DEFAULT: partial(classic, warmup_steps=50),
    "threshold, published": partial(_first, threshold_published),
    "threshold, fair": partial(_first, threshold_fair),
    "CUSUM, published": partial(_first, cusum_published),
    "CUSUM, fair": partial(_first, cusum_fair),
    OURS: partial(ours, with_lr=False),
    OURS_LR: partial(ours, with_lr=True),
}
"""By the head of the column: the step of the first alert of a log, or None."""
