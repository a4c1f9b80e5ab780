"""Pictures of a run's loss: what was logged, what was expected, and what was told."""

from wtwin_watch.plot.drawing import available, draw, lacking
from wtwin_watch.plot.view import Mark, Moment, marks_of

__all__ = ["Mark", "Moment", "available", "draw", "lacking", "marks_of"]
