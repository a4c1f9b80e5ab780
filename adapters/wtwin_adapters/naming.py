"""Which names of a log are read, beyond what `wtwin_watch.metrics` says of a single name."""

from __future__ import annotations

from wtwin_watch.metrics import Names, Role, belief, wanted

NO_LOSS = "no loss column"
"""Why rows give no points where nothing in them is a loss."""
ROW_NUMBER = "row number"
"""The name of steps where no column counts them."""
VAL_LOSS = "val_loss"
"""The name of a loss of validation that is logged under that of training."""

_LONGEST = 256


def usable(name: str, names: Names) -> bool:
    """Whether a metric is read: a monitor may want it, and its name can be shown and stored."""
    return len(name) <= _LONGEST and wanted(name, names) and name.isprintable()


def is_loss(name: str, names: Names) -> bool:
    """Whether a metric makes a log worth watching: a loss, or what the user called so."""
    known = belief(name)
    return name in (names.loss, names.val_loss) or (
        known is not None and known[0] in (Role.LOSS, Role.VAL_LOSS)
    )
