"""The second process of the demo: a training that logs each step, as CSV and as TensorBoard events.

``python -m wtwin_watch.demo.training FOLDER SEED [--healthy]``
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from wtwin_watch.demo import classifier
from wtwin_watch.demo.events import EventWriter
from wtwin_watch.demo.speech import say

STEP_S = 0.013
"""How long a step takes at least, so that a person can follow."""
_SAY_EVERY = 10


def train(folder: Path, seed: int, healthy: bool, step_s: float = STEP_S) -> None:
    """Train to the end, logging into ``folder``: ``train.csv`` and an event file."""
    folder.mkdir(parents=True, exist_ok=True)
    events = EventWriter(folder)
    model = classifier.Classifier(seed)
    losses = []
    started = time.monotonic()
    with (folder / "train.csv").open("w", encoding="utf-8", buffering=1) as table:
        table.write("step,loss\n")
        for step in range(1, classifier.STEPS + 1):
            rotten = 0.0 if healthy else classifier.rotten_share(step)
            if rotten and step == classifier.ROT_BEGINS + 1:
                say("rot begins", step=step, at=time.time())
            loss = model.step(rotten)
            table.write(f"{step},{loss:.6f}\n")
            events.add(step, {"loss": loss}, time.time())
            losses.append(loss)
            if step % _SAY_EVERY == 0:
                say("step", step=step, loss=sum(losses) / len(losses), rotten=rotten)
                losses.clear()
            time.sleep(max(0.0, started + step * step_s - time.monotonic()))
    events.close()
    say("finished", step=classifier.STEPS)


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(prog="python -m wtwin_watch.demo.training")
    parser.add_argument("folder", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("--healthy", action="store_true")
    given = parser.parse_args()
    train(given.folder, given.seed, given.healthy)


if __name__ == "__main__":
    main()
