"""Which detector judges a run's loss, and its settings."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from wtwin_watch.monitor.trend import TrendMonitor
from wtwin_watch.monitor.wtwin import WTwinMonitor


@dataclass(frozen=True, slots=True)
class TrendOptions:
    """Settings of the trend detector; see `TrendMonitor`. Raises `ValueError` for settings that can't be.

    ``far``: mean points between two false alarms. ``min_effect``: rises below this share of the loss are
    ignored; None is 0.0005, and 0.00025 where the learning rate is logged.
    """

    far: float = 1e5
    min_effect: float | None = None

    def __post_init__(self) -> None:
        self.monitor()

    @property
    def name(self) -> str:
        """What the detector is called in settings and alerts."""
        return "trend"

    def monitor(self, history_limit: int | None = 0) -> TrendMonitor:
        """Make a monitor of these settings, by default one that keeps no history."""
        return TrendMonitor(**asdict(self), history_limit=history_limit)


@dataclass(frozen=True, slots=True)
class ClassicOptions:
    """Settings of the published W-Twin method as it watches runs; see `WTwinMonitor`.

    The warm-up is 100 steps, as in the published command and experiments (the class has 50). Raises
    `ValueError` for settings that can't be.
    """

    alpha: float = 2.0
    warmup_steps: float = 100
    n_consec: int = 5
    mad_window: int = 50
    tau: float = 1e-3
    calibration_frac: float = 0.10
    threshold_window: int = 200
    use_adaptive_T: bool = False

    def __post_init__(self) -> None:
        self.monitor()

    @property
    def name(self) -> str:
        """What the detector is called in settings and alerts."""
        return "classic"

    def monitor(self, history_limit: int | None = 0) -> WTwinMonitor:
        """Make a monitor of these settings, by default one that keeps no history."""
        return WTwinMonitor(**asdict(self), history_limit=history_limit)


DetectorOptions = TrendOptions | ClassicOptions
