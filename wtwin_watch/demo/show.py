"""The demo itself: sets the stage, shows what the processes say, and judges what arrived.

Four processes: this one, a training that logs, a receiver of webhooks, and the watcher as anybody runs it,
which knows nothing of the other two but a folder and an address.
"""

from __future__ import annotations

import base64
import contextlib
import os
import queue
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wtwin_watch.demo import classifier, receiver
from wtwin_watch.demo.screen import Screen, sparkline
from wtwin_watch.demo.speech import heard
from wtwin_watch.demo.stage import Stage, stage
from wtwin_watch.demo.verdict import FIRING, Delivery, Facts, complaints
from wtwin_watch.errors import StoreError, WtwinWatchError
from wtwin_watch.store.status import read_status

SOURCES = ("csv", "tensorboard")
"""What the watcher calls the two sources: after their adapters."""
AT_MOST_S = 45.0
"""The show ends by then, whatever is missing."""
LATE_S = 15.0
"""How long after the last step what should arrive may arrive."""
SETTLE_S = 3.0
"""How long after the last step is waited for what should not arrive."""

_SETTINGS = """\
# The settings of anybody who has none, so that no other file is read.
"""
_CURVE_WIDTH = 36
_EVERY = 100
"""Steps between two lines about the training where nothing can be drawn over."""
_UNSAID = ("time", "level", "event", "id", "exception")
_HIDDEN_PREFIXES = ("WTWIN_WATCH_", "SLACK_", "NOTIFY_SOCKET", "WATCHDOG_", "JOURNAL_STREAM")


@dataclass(frozen=True, slots=True)
class Result:
    """How the demo ended. ``folder`` is where its files are, if they were kept."""

    seed: int
    healthy: bool
    rot_began_at: float | None
    deliveries: tuple[Delivery, ...]
    followed_to: Mapping[str, float | None]
    complaints: tuple[str, ...]
    seconds: float
    folder: Path | None

    @property
    def good(self) -> bool:
        """What should arrive arrived, and only that."""
        return not self.complaints


@dataclass(slots=True)
class _Scene:
    """What has happened so far."""

    healthy: bool
    losses: list[float] = field(default_factory=list)
    rot_began_at: float | None = None
    finished_at: float | None = None
    deliveries: list[Delivery] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    accidents: list[str] = field(default_factory=list)

    def over(self, now: float) -> bool:
        """Whether there is nothing left to wait for. ``now`` and ``finished_at`` by the monotonic clock."""
        if self.accidents:
            return True
        if self.finished_at is None or now < self.finished_at + SETTLE_S:
            return False
        told = {d.source for d in self.deliveries if d.type == FIRING}
        return self.healthy or told.issuperset(SOURCES) or now >= self.finished_at + LATE_S


def play(seed: int, healthy: bool, keep: bool, screen: Screen) -> Result:
    """Play the demo and return how it ended. About 25 s; in the main thread only.

    Its files are in a folder of their own, which is removed unless ``keep``. Every process it started has
    ended when it returns or raises; Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt.
    """
    started = time.monotonic()
    scene = _Scene(healthy)
    with _folder(keep) as folder, stage() as actors:
        wrong = "stay clean" if healthy else f"begin to rot at step {classifier.ROT_BEGINS + 1}"
        screen.say(
            "demo", f"a training of {classifier.STEPS} steps with seed {seed}, whose labels {wrong}"
        )
        _start(actors, folder, seed, healthy, screen)
        try:
            _listen(actors, scene, started, screen)
        finally:
            screen.end_live()
        # The watcher saves how far it read when it ends.
        actors.stop("watcher")
        followed = _followed(folder / "state.db")
    facts = Facts(scene.deliveries, scene.refusals, scene.rot_began_at, followed)
    return Result(
        seed=seed,
        healthy=healthy,
        rot_began_at=scene.rot_began_at,
        deliveries=tuple(scene.deliveries),
        followed_to=followed,
        complaints=(*scene.accidents, *complaints(facts, SOURCES, classifier.STEPS)),
        seconds=time.monotonic() - started,
        folder=folder if keep else None,
    )


def watcher_command(folder: Path, port: int) -> list[str]:
    """The arguments that start the watcher, after the interpreter."""
    runs = str(folder / "runs")
    return [
        *("-m", "wtwin_watch", "run"),
        *("--csv", runs, "--tensorboard", runs, "--interval", "1s"),
        *("--webhook", f"http://127.0.0.1:{port}{receiver.PATH}"),
        *("--state", str(folder / "state.db"), "--config", str(folder / "config.toml")),
        *("--log-format", "json"),
    ]


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without what would make the watcher tell somebody real, or read other settings."""
    return {name: value for name, value in environ.items() if not name.startswith(_HIDDEN_PREFIXES)}


@contextlib.contextmanager
def _folder(keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="wtwin-watch-demo-"))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _start(actors: Stage, folder: Path, seed: int, healthy: bool, screen: Screen) -> None:
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    clean = clean_environment(os.environ)
    signed = {**clean, receiver.SECRET_VARIABLE: secret}
    (folder / "runs").mkdir()
    (folder / "config.toml").write_text(_SETTINGS, encoding="utf-8")

    pid = actors.start("receiver", ["-m", "wtwin_watch.demo.receiver"], signed)
    said = heard(actors.first_line("receiver"))
    if said is None:
        raise WtwinWatchError("the demo's receiver did not start")
    screen.say(
        "receiver", f"process {pid}, waits for signed webhooks on port {said['port']} of loopback"
    )
    training = ["-m", "wtwin_watch.demo.training", str(folder / "runs" / "mixture"), str(seed)]
    # Its matrices are small: more threads would only take turns.
    pid = actors.start(
        "training", training + ["--healthy"] * healthy, {**clean, "OMP_NUM_THREADS": "1"}
    )
    screen.say(
        "training", f"process {pid}, logs train.csv and an event file into {folder / 'runs'}"
    )
    pid = actors.start("watcher", watcher_command(folder, said["port"]), signed)
    screen.say("watcher", f"process {pid}, knows that folder and the receiver's address")
    actors.listen()


def _listen(actors: Stage, scene: _Scene, started: float, screen: Screen) -> None:
    """Take what the processes say until there is nothing left to wait for."""
    while not scene.over(time.monotonic()):
        if time.monotonic() > started + AT_MOST_S:
            scene.accidents.append(f"it took longer than {AT_MOST_S:.0f} s")
            return
        with contextlib.suppress(queue.Empty):
            line = actors.lines.get(timeout=0.1)
            if line.text is None:
                _note_end(line.speaker, scene)
            elif (said := heard(line.text)) is None:
                screen.say(line.speaker, line.text, good=False)
            else:
                _HEARERS[line.speaker](said, scene, screen)


def _note_end(speaker: str, scene: _Scene) -> None:
    if speaker != "training" or scene.finished_at is None:
        scene.accidents.append(f"the {speaker} ended too early")


def _hear_training(said: Mapping[str, Any], scene: _Scene, screen: Screen) -> None:
    if said["said"] == "step":
        scene.losses.append(said["loss"])
        text = (
            f"step {said['step']:>4}  loss {said['loss']:.3f}  wrong labels {said['rotten']:>3.0%}"
        )
        screen.live("training", f"{text}  {_curve(scene)}")
        if not screen.lively and said["step"] % _EVERY == 0:
            screen.say("training", text)
    elif said["said"] == "rot begins":
        scene.rot_began_at = said["at"]
        screen.say("training", f"step {said['step']}: from here on labels rot")
    elif said["said"] == "finished":
        scene.finished_at = time.monotonic()
        screen.end_live()
        curve = f"  {_curve(scene)}" if screen.lively else ""
        screen.say("training", f"finished at step {said['step']}{curve}")
        screen.say("demo", f"waits {SETTLE_S:g} s for what should not arrive")


def _hear_receiver(said: Mapping[str, Any], scene: _Scene, screen: Screen) -> None:
    if said["said"] == "refused":
        scene.refusals.append(said["reason"])
        screen.say("receiver", f"refused a delivery: {said['reason']}", good=False)
    elif said["said"] == "delivery":
        delivery = Delivery.read(said["id"], said["at"], said["payload"])
        scene.deliveries.append(delivery)
        text = f"got {delivery.type} from {delivery.source}, signature good"
        screen.say("receiver", text, good=not scene.healthy)
        screen.say("receiver", f"{delivery.title}. {delivery.summary}")


def _hear_watcher(said: Mapping[str, Any], scene: _Scene, screen: Screen) -> None:
    """Show a log line of the watcher as it is, but for what says nothing here."""
    fields = {k: v for k, v in said.items() if k not in _UNSAID and v is not None}
    words = [
        str(said.get("event", "")),
        *(f"{name}={_short(value)}" for name, value in fields.items()),
    ]
    screen.say("watcher", "  ".join(words), good=None if said.get("level") == "info" else False)


def _curve(scene: _Scene) -> str:
    return sparkline(scene.losses, _CURVE_WIDTH)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


_HEARERS = {
    "training": _hear_training,
    "receiver": _hear_receiver,
    "watcher": _hear_watcher,
}


def _followed(state: Path) -> dict[str, float | None]:
    try:
        runs = read_status(str(state), time.time()).runs
    except StoreError:
        return {}
    return {run.run.key.source: run.last_step for run in runs}
