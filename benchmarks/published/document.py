"""The report of the published table, in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from textwrap import fill

from benchmarks.published.experiments import GRADUAL, KINDS, LOGS, missing, published_set
from benchmarks.published.table import Judged, markdown
from benchmarks.report import Measure

TEXT = """\
# The published experiment, once more

Written by

    WTWIN_WATCH_CORPUS=/path/to/logs python -m benchmarks.published --report {path}

which prints the same numbers and exits with 1 where a target is missed. Without the given logs it judges
our own, which lie in `benchmarks/published/logs`; so do the tests.

**An easy case.** The text that these models learn is made up and the same everywhere, so the loss is
flat, with white noise, before anything goes wrong. Real training is neither: see [how well failures are
seen](detection.md) for real logs. On a flat loss a CUSUM that is set up fairly is as fast as our
monitor, or a little faster; what tells them apart is a loss that falls, whose noise is correlated, or
whose learning rate moves.

A cell holds how many of the failures were seen, and after how many steps: mean ± standard deviation. An
alert at or before step 2,000, where the failures begin, is no detection. In the row of clean runs: runs
with an alert at any step.

## Our logs

Trained by [`examples/train_real.py`](../examples/train_real.py): 842,496 parameters, context of 128
bytes, batches of 4, learning rate 3e-4 after a warm-up of 100 steps, falling in a line to a tenth at
step 3,000; all failures of a seed are forked from its healthy checkpoint at step 2,000. Progressive
failures are followed for 600 steps, others for 200, clean runs to step 3,000. The ramps rise over 1,000
steps, of label noise to half of the labels.

{there}

{ours}

{noise}

## The logs of the published experiment

Per-step logs of the published program itself, {given_count} runs. They aren't part of this repository.

{given}

## A run of one's own

    pip install '.[train]'
    python examples/train_real.py --mode progressive_label --ramp-profile linear --output run.csv
    wtwin-watch monitor run.csv

`--help` has every mode, ramp and setting; `--quick` takes seconds. The log grows a line a step, so the
daemon can watch it: `wtwin-watch --csv run.csv`. A failure can be forked from a healthy checkpoint
(`--checkpoint`, then `--fork`), and a run that was stopped goes on (`--resume`); both give the log of the
uninterrupted run, to the last digit on the same machine.

## What the published comparators got wrong

Both are inferred from the published logs, whose alert columns they reproduce in every row.

- **The threshold** compares a loss with the mean and standard deviation of the latest 50, the loss
  itself included, and wants more than 3 five times in a row. Of five equal losses above 45 equal ones
  none lies more than 2.97 standard deviations above the mean: a step alone, of whatever size, doesn't
  alert, unless the loss before it happened to be an outlier as well. The fair version takes the 50
  before. It sees a step that lasts, and a ramp by luck alone: a window of 50 rises with it.
- **The CUSUM** takes mean and deviation from the first 100 losses. Those are the learning rate's
  warm-up, in which the loss falls from 5.5 to 2: a later loss has to exceed about 4.3 to count at all.
  The fair version takes them from the losses 600 to 100 steps before (k = 0.5, h = 10).
- **W-Twin** is quoted with a warm-up of 100 steps, which its experiments set; the class's own default is
  50. With that the forecast is fitted to steps 51 to 60, where the loss is still above 3, and nothing is
  seen within 500 steps of the onset.
- Its delay isn't that of a detector at work: at the alert the loss has doubled. It alerts when the loss
  crosses what ten early losses promised, some 1.6 here, however long it had been near 0.8.

## Targets

{missed} of {judged} are missed. Brackets hold the 95 % interval of a mean, by Student's t. Where few runs are
trained, it is wide: what those runs say is preliminary. `--quick`, which continuous integration runs, fails
for a mean delay only where its whole interval misses the target.

| measure | value | target | | |
|---|---|---|---|---|
{targets}
"""
NOISE = """\
**Noise.** A point of our healthy runs scatters by {ours:.4f} nats, one of the published runs by
{given:.4f}: {ratio:.2f} times as much. Larger batches would scatter less and take longer; with these a
step costs 60 ms of one core. Delays in a ramp grow with the noise, for us and for a CUSUM. The targets
are those that the published logs gave, and aren't adapted."""
COMPLETE = "All {total} runs of the set: nine progressive, two abrupt, six other modes, 30 clean."
PARTIAL = """\
{done} of the {total} runs of the set (nine progressive, two abrupt, six other modes, 30 clean) are
trained so far: {kinds}. The others take some hours of one core; `python -m benchmarks.published --train`
goes on with them wherever it was stopped. Nothing is said here of runs that aren't there."""


def write(
    path: Path, measures: Sequence[Measure], ours: Sequence[Judged], given: Sequence[Judged]
) -> None:
    """Write it to ``path``."""
    lines = [
        f"| {m.name} | {m.shown} | {m.target} | {MARK[m.verdict]} | {m.note} |" for m in measures
    ]
    text = TEXT.format(
        path=path.as_posix(),
        there=there(ours),
        ours=markdown(ours),
        noise=NOISE.format(ours=sigma(ours), given=sigma(given), ratio=sigma(ours) / sigma(given)),
        given_count=len(given),
        given=markdown(given),
        missed=sum(m.verdict == "MISSED" for m in measures),
        judged=sum(m.verdict != "info" for m in measures),
        targets="\n".join(lines),
    )
    path.write_text(text, encoding="utf-8")


def sigma(judged: Sequence[Judged]) -> float:
    """Return the median noise of a point, of one log a seed."""
    return median({one.name.rsplit("_", 1)[1]: one.sigma for one in judged}.values())


MARK = {"ok": "met", "MISSED": "**missed**", "info": ""}


def there(ours: Sequence[Judged]) -> str:
    """Say which of our logs there are."""
    total = len(published_set())
    done = total - len(missing(LOGS, published_set()))
    if done == total:
        return COMPLETE.format(total=total)
    counts = Counter(one.kind for one in ours)
    gradual = sum(counts[kind] for kind in GRADUAL)
    others = ", ".join(
        f"{counts[kind]} {name}"
        for kind, name in KINDS.items()
        if counts[kind] and kind not in GRADUAL
    )
    said = PARTIAL.format(done=done, total=total, kinds=f"{gradual} progressive, {others}")
    return fill(" ".join(said.split()), 105, break_on_hyphens=False)
