"""The errors of wtwin-watch. The class says who can act; the text what happened, to what, and the cure.

::

    WtwinWatchError
    ├── UsageError      the person at the command line asked for something that can't be   (exit 2)
    ├── SettingsError   the settings are wrong; carries every mistake with file and line    (exit 78)
    ├── SourceError     a source, or one run of it, can't be read now                       (exit 69)
    ├── DeliveryError   a notification was not delivered; says whether trying again can help
    ├── SnapshotError   a stored monitor state can't be read by this version
    └── StoreError      the database can't be opened, or is held by another daemon        (exit 69)
        ├── OwnershipLost   another daemon has taken the database over
        └── StateDamaged    the file is no database any more; only --fresh helps
"""

from __future__ import annotations


class WtwinWatchError(Exception):
    """Anything this program says about its own work."""

    exit_code = 1


class UsageError(WtwinWatchError):
    """The command was asked wrongly, or was given something it can't read. ``mistakes`` is one text each."""

    exit_code = 2

    def __init__(self, *mistakes: str) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = list(mistakes)


class SettingsError(WtwinWatchError):
    """The settings hold mistakes. ``mistakes`` is one text each, with file and line number."""

    exit_code = 78

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class SourceError(WtwinWatchError):
    """A source, or one run of it, can't be read now. The caller tries again later.

    ``retry_after_s``: how long the source asked to be left alone, in seconds.
    """

    exit_code = 69

    def __init__(self, text: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class DeliveryError(WtwinWatchError):
    """A notification was not delivered.

    ``permanent``: trying again can't help, a person has to change something.
    ``retry_after_s``: how long the receiver asked to be left alone, in seconds.
    """

    def __init__(
        self, text: str, *, permanent: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(text)
        self.permanent = permanent
        self.retry_after_s = retry_after_s


class SnapshotError(WtwinWatchError):
    """A stored monitor state has a form that this version doesn't read."""


class StoreError(WtwinWatchError):
    """The database can't be opened, migrated or written, or another daemon holds it."""

    exit_code = 69


class OwnershipLost(StoreError):
    """Another daemon has taken the database over, so this one must stop writing and end."""


class StateDamaged(StoreError):
    """The state is no database, or is damaged beyond use; starting anew is the only cure."""
