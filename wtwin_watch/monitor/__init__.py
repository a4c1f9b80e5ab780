"""The numeric core: streaming monitors of one run's loss. No I/O, clock, logging or threads.

``TrendMonitor`` judges a loss by its own trend, ``WTwinMonitor`` is the published W-Twin method;
``RunMonitor`` holds one of them and the rules for a run's other metrics.
Importing this package loads numpy and nothing else that isn't in the standard library, so that it can
sit inside a training loop.
"""

from wtwin_watch.monitor.baseline import BaseBaseline, PowerLawBaseline
from wtwin_watch.monitor.run import RunMonitor
from wtwin_watch.monitor.suggest import Suggestion, suggest
from wtwin_watch.monitor.trend import TrendMonitor
from wtwin_watch.monitor.wtwin import WTwinMonitor, WTwinState

__all__ = [
    "BaseBaseline",
    "PowerLawBaseline",
    "RunMonitor",
    "Suggestion",
    "TrendMonitor",
    "WTwinMonitor",
    "WTwinState",
    "suggest",
]
