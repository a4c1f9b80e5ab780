"""What the parts of the watcher expect of each other: sources, notifiers, clocks, and their plugins.

An adapter is a class that an entry point of the group ``wtwin_watch.adapters`` names; an instance of it
is a source. A notifier class stands in the group ``wtwin_watch.notifiers``; an instance is a receiver's
connection. Both import `wtwin_watch.model`, `.metrics`, `.secrets`, `.protocols` and `.errors`, no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from wtwin_watch.metrics import Names
from wtwin_watch.model import Batch, Cursor, Notification, Receipt, Run


class Clock(Protocol):
    """Time as the parts see it: ``time`` in unix seconds, ``monotonic`` for durations."""

    def time(self) -> float:
        """Unix seconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...


class Options(BaseModel):
    """Base of a plugin's own settings: frozen, and an unknown key is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def no_digest(self) -> str | None:
        """Why a receiver with these options can have no digest, as the end of a sentence; None: it can."""
        return None


class SourceOptions(Options):
    """What every source takes: the names of metrics where they aren't the usual ones."""

    step: str | None = None
    loss: str | None = None
    lr: str | None = None
    grad_norm: str | None = None
    val_loss: str | None = None
    throughput: str | None = None

    @property
    def names(self) -> Names:
        """The names given for roles."""
        return Names(self.step, self.loss, self.lr, self.grad_norm, self.val_loss, self.throughput)

    @property
    def no_runs(self) -> str:
        """What a person is told where the source has no run yet; with a source's place it says more."""
        return "there is no run yet"


class Source(Protocol):
    """One configured place where runs are logged.

    Its methods are called from several threads, but one run is fetched by one thread at a time.
    A source keeps no state about a run that a later `fetch` with the same cursor would miss.
    """

    def runs(self) -> Iterable[Run]:
        """List the runs there are now. Raises `SourceError` where the place can't be read."""
        ...

    def fetch(self, run: Run, cursor: Cursor | None, limit: int) -> Batch:
        """Return at most ``limit`` points logged after ``cursor``, oldest first.

        Steps may repeat after a resume; the monitor drops those it has seen. Costs what is new, not
        what is there. Raises `SourceError`.
        """
        ...

    def roots(self) -> Sequence[Path]:
        """Folders whose file events mean there may be something new; empty for a remote source."""
        ...

    def close(self) -> None:
        """Let go of files, connections and children. Called once, from any thread."""
        ...


@runtime_checkable
class ConsoleSource(Protocol):
    """A source that also has the console output of its runs."""

    def last_lines(self, run: Run, count: int) -> Sequence[str]:
        """Return the last ``count`` lines that ``run`` printed, oldest first; fewer where there are fewer.

        Asked once, by a worker, when a run has failed. Raises `SourceError` where they can't be had; the
        alert then comes without them.
        """
        ...


class Notifier(Protocol):
    """A connection to one receiver."""

    min_interval_s: float
    """At least this long between two sends, seconds."""

    def send(self, notification: Notification) -> Receipt:
        """Deliver, or raise `DeliveryError` saying whether trying again can help.

        Returns within half a minute whatever the other side does.
        """
        ...

    def describe(self) -> str:
        """Say where it goes, without anything secret: ``Slack channel C012AB3CD``."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


@runtime_checkable
class Renewing(Protocol):
    """A notifier whose receiver forgets an alert that it isn't reminded of."""

    renew_every_s: float
    """At least so often what fires is to be told again, seconds."""

    def renew(self, firing: Sequence[Notification]) -> None:
        """Remind of all that fires and was told, none or many. Raises `DeliveryError`.

        Their ``previous`` is the receipt of what was last told of each.
        """
        ...


@runtime_checkable
class Coalescing(Protocol):
    """A notifier that can tell of several alerts at once, for a receiver that takes messages slowly."""

    together_from: int
    """So many alerts that wait to be told for the first time are told together."""

    def send_together(self, notifications: Sequence[Notification]) -> Receipt:
        """Deliver several first notifications as one; the receipt is that of each. As `Notifier.send`."""
        ...


@runtime_checkable
class Illustrating(Protocol):
    """A notifier that can show a picture beside what it told."""

    wants_pictures: bool

    def illustrate(self, notification: Notification, receipt: Receipt, picture: bytes) -> None:
        """Show a PNG beside ``notification``, whose receipt this is. Raises `DeliveryError`; tried once.

        Called from a thread of its own, also while `Notifier.send` is under way.
        """
        ...


@dataclass(frozen=True, slots=True)
class Recognition:
    """What an adapter makes of a path on disk."""

    format: str
    """For a person and for ``inspect --json``: ``csv``, ``tsv``, ``jsonl``, ``tensorboard``."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options that open this path as a source of the adapter."""
    refused: str | None = None
    """Why it can't be watched, though it was recognised."""


@runtime_checkable
class Adapter(Protocol):
    """The class behind an adapter: called with a source's name and its validated options."""

    Options: ClassVar[type[SourceOptions]]
    interval_s: ClassVar[float]
    """Default seconds between two looks."""
    extra: ClassVar[str | None]
    """The optional dependency group it needs (``wandb``), or None."""

    def __call__(self, name: str, options: Any) -> Source:
        """Open a source. Reads nothing yet."""
        ...


class FileAdapter(Adapter, Protocol):
    """An adapter whose sources are files or folders, which it can recognise by their content."""

    def recognise(self, path: Path) -> Recognition | None:
        """Say what ``path`` is to this adapter, or None if it isn't one of its own."""
        ...


@runtime_checkable
class OwningAdapter(Protocol):
    """A file adapter whose runs have more files than those that it reads, such as what they printed."""

    @staticmethod
    def owns(path: Path) -> bool:
        """Whether the file ``path`` belongs to a run that this adapter reads: then it is no log by itself.

        Asked about the files below a folder that it recognised. Never raises.
        """
        ...


class NotifierPlugin(Protocol):
    """The class behind a kind of notifier: called with a receiver's name and its validated options."""

    Options: ClassVar[type[Options]]

    def __call__(self, name: str, options: Any) -> Notifier:
        """Make the connection's object. Sends nothing yet."""
        ...
