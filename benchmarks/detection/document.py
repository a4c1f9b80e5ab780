"""The report of the detection benchmark: Markdown, and a picture beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.detection.comparison import Comparison, detected, grouped, median_ratio
from benchmarks.detection.matching import STEADY_POINTS, Trial
from benchmarks.detection.ramps import Ramp
from benchmarks.intervals import bootstrap, rate_interval
from benchmarks.report import Measure

RIVAL_GROUP = "Other methods"
ALARM_GROUP = "False alarms"
OURS = "**this monitor, far = 10⁵**"
OURS_MATCHED = "this monitor, `far` set likewise"
HEAD = """\
# How well failures are seen

Written by

    WTWIN_WATCH_CORPUS=/path/to/logs python -m benchmarks.detection --report {path}

which takes some 10 minutes on two cores, prints the same numbers, and exits with 1 where a target is
missed. What is said here of the trend monitor is measured at its default `far` = 100,000, as it is
delivered; [detectors](detectors.md) explains it. Brackets hold 95 % intervals: exact Poisson intervals
of counts, Wilson intervals of shares, else by a bootstrap that draws whole runs (in Pythia: places), for what
lies in one run stands or falls together.

![Share of rises seen over delay, and false alarms by kind of log]({picture})

## On what

- **Simulated runs.** The multi-power law (Luo et al. 2025) under eight learning-rate schedules, 1,500
  to 30,000 points, with noise that is Gaussian, heavy-tailed or contaminated by outliers, and *white*,
  *mildly* correlated (AR .3 and .7, means of 10) or *hard* (AR .95, exponentially smoothed logs). Seeds
  are fixed.
- **Real logs.** Public training curves that one reader labelled clean, {points} points in all. Rises
  are added to those of 1,000 points and more, at most eight of one origin. They are not part of this
  repository.
- **Pythia-14M**, a log of 143,000 points with nearly white noise of sigma .02: the one long log.
- **nano-GPT**, the published experiments of W-Twin, with failures from step 2,000 on. Their text is
  made up and their loss stationary, so they are an easy case.

Rises are added to clean logs. The oracle knows level, slope and noise, and needs n = (6 ln(10⁵) σ² /
slope²)^⅓ points for a ramp, on average, at one false alarm in 100,000 points. A rise that isn't seen
within its horizon (twice its length and 2,000 points) counts as seen at the horizon. An alarm that is
on when the rise begins earns nothing.
"""
RIVALS = """\
## Other methods at the same false-alarm rate

Each method has one threshold left open. It is set to one alarm in 100,000 points of a pool of clean
runs, and tried on others. Once the pool is the real logs: for each origin its threshold is set by the
logs of all other origins. Once it is {simulated}, with all three kinds of noise. An alarm that stays on
counts again every 1,000 points; sums begin anew at an alarm; Pythia's real spike isn't counted. No
method is told the noise. “Alarms” are given in 100,000 points at the frozen thresholds: in all real
clean logs, and in a settled loss with white Gaussian noise. A rate is “not kept” where one of the two
is surely above one (the lower end of its interval): such a threshold says nothing at the rate that was
asked for, and the targets are for the best rival that kept its own. The best that didn't is given
beside it.

Those compared: the published W-Twin, without its confidence Q, which could only silence it; the z-score
of W&B's automations (window 30); z of the last 100 and 1,000 points, five in a row; CUSUM of the loss
less an exponentially weighted mean, sizes cut at five sigma; CUSUM against mean and sd of the points
from 600 to 100 back; a power law with free exponent and floor, refitted at every point to all but the
first quarter and the latest tenth, and CUSUM of what is left; and, from [river](https://riverml.xyz),
Page-Hinkley (delta of a tenth of a sigma) and ADWIN, which looks at every point and keeps the newer
part of its window. Several come in two forms; the best row of each table is the best rival, chosen
afterwards, in its favour. This monitor is compared as delivered, and once more with `far` set in the
same way as the others' thresholds.
"""
LIMITS = """\
## Limits

- Nothing here is new to its makers: the formulas were chosen while some of these logs were at hand.
  Other logs will do worse. Pythia is one log, so its intervals speak of places in it, and not of other
  long runs.
- The oracle assumes white noise. In the short logs a part of the delay is the noise's correlation.
- A threshold that real logs give to a sum against a slow mean is low, because the loss of most of them
  falls and hides the noise from it. With it a CUSUM is about as fast as this monitor in the steady late
  part of Pythia, or faster, and alarms far too often where a loss has settled. Simulated runs of all
  kinds give thresholds that hold, and long delays.
- The thresholds that real logs set to the others rest on one to three alarms, so they are themselves
  uncertain, and the column “alarms” shows where they weren't kept.
- In a run that still falls by many sigma, its own fall takes back a step or a slow rise within a few
  thousand points. Such an alert ends as a spike or transient; how often is in the tables of falling
  runs and of the other long logs.
- Real logs are few: no false alarm in {points} points leaves a rate of up to {upper:.1f} in 100,000
  possible.
- A loss that stops falling is information, and is seen late or not at all.
- Learning-rate restarts, gaps and rollbacks are measured and have no target; a restart still alerts in
  many cases.
"""


def write(path: Path, measures: Sequence[Measure], comparisons: Sequence[Comparison]) -> None:
    """Write the report to ``path`` and the picture beside it, with the same name."""
    picture = path.with_suffix(".png")
    draw(picture, measures, comparisons)
    path.write_text(text(path, measures, comparisons), encoding="utf-8")


def text(path: Path, measures: Sequence[Measure], comparisons: Sequence[Comparison]) -> str:
    """Return the report in Markdown."""
    missed = [measure for measure in measures if not measure.kept]
    judged = [measure for measure in measures if measure.verdict != "info"]
    parts = [
        HEAD.format(
            path=path.as_posix(),
            picture=path.with_suffix(".png").name,
            points=f"{comparisons[0].matched.points:,}",
        ),
        f"## Targets\n\n{len(judged) - len(missed)} of {len(judged)} are met."
        + (" Missed:\n" if missed else "\n"),
    ]
    if missed:
        parts.append(table(missed))
    groups = dict.fromkeys(
        measure.group for measure in measures if not measure.group.startswith(RIVAL_GROUP)
    )
    for group in groups:
        parts.append(f"## {group}\n")
        parts.append(table(measure for measure in measures if measure.group == group))
    pools = sorted({comparison.pool for comparison in comparisons})
    parts.append(RIVALS.format(simulated=pools[-1]))
    for comparison in comparisons:
        parts.append(f"### {comparison.where}, thresholds set by {comparison.pool}\n")
        parts.append(methods(comparison))
        summary = [measure for measure in measures if is_summary(measure, comparison)]
        if summary:
            parts.append(table(summary))
    real = [m for m in measures if m.group == ALARM_GROUP and "language" in m.name]
    upper = real[0].interval[1] if real and real[0].interval else float("nan")
    parts.append(LIMITS.format(points=points_of(real), upper=upper))
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def is_summary(measure: Measure, comparison: Comparison) -> bool:
    """Whether a measure sets the best rivals of this comparison against ours."""
    group = measure.group == f"{RIVAL_GROUP}, set by {comparison.pool}"
    return group and measure.name.startswith(f"{comparison.where}: delay of")


def points_of(measures: Sequence[Measure]) -> str:
    """Return how many points a rate was measured on, as its note says."""
    return measures[0].note.split(" in ")[-1].split(" points")[0] if measures else "no"


def table(measures: Iterable[Measure]) -> str:
    """Return measures as a table."""
    rows = ["| measure | value | target | | |", "|---|---|---|---|---|"]
    for measure in measures:
        verdict = {"info": "", "ok": "met", "MISSED": "**missed**"}[measure.verdict]
        rows.append(
            f"| {measure.name} | {measure.shown} | {measure.target} | {verdict} | {measure.note} |"
        )
    return "\n".join(rows) + "\n"


def methods(comparison: Comparison) -> str:
    """Return how each method did, the fastest first; ours at the head."""
    rows = [
        "| method | detected | median delay ÷ oracle's | alarms, clean logs | alarms, steady noise | rate |",
        "|---|---|---|---|---|---|",
        row(OURS, comparison.ours),
        row(OURS_MATCHED, comparison.matched.ramps, comparison.matched),
    ]
    for trial in ranked(comparison):
        rows.append(row(trial.name, trial.ramps, trial))
    return "\n".join(rows) + "\n"


def row(name: str, ramps: list[Ramp], trial: Trial | None = None) -> str:
    """Return one method's row."""
    groups = grouped(ramps)
    share, late = bootstrap(groups, detected), bootstrap(groups, median_ratio)
    alarms, kept = "as above | |", ""
    if trial is not None:
        rates = ((trial.alarms, trial.points), (trial.steady_alarms, STEADY_POINTS))
        alarms = " | ".join(rate(count, points) for count, points in rates) + " |"
        kept = "kept" if trial.kept else "**not kept**"
    return (
        f"| {name} | {detected(ramps):.0%} [{share[0]:.0%}, {share[1]:.0%}]"
        f" | {median_ratio(ramps):.2f} [{late[0]:.2f}, {late[1]:.2f}] | {alarms} {kept} |"
    )


def rate(count: int, points: int) -> str:
    """Return a count in 100,000 points, with its interval."""
    low, high = rate_interval(count, points)
    return f"{count / points * 1e5:.2g} [{low:.2g}, {high:.2g}]"


def ranked(comparison: Comparison) -> list[Trial]:
    """Return the rivals, that with the least delay first."""
    return sorted(
        comparison.trials, key=lambda trial: (median_ratio(trial.ramps), -detected(trial.ramps))
    )


# -- the picture -----------------------------------------------------------------------------------

SHOWN = 4
"""So many of the best rivals are drawn, beside the published method and the z-score of 30."""
ALWAYS = ("W-Twin as published", "z of 30 (W&B automation)")
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#a6761d")
OWN_COLOUR = "#000000"


def draw(path: Path, measures: Sequence[Measure], comparisons: Sequence[Comparison]) -> None:
    """Draw how many rises each method has seen after how long, and the false alarms of ours."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    wheres = list(dict.fromkeys(comparison.where for comparison in comparisons))
    pools = list(dict.fromkeys(comparison.pool for comparison in comparisons))
    figure = Figure(figsize=(13.0, 4.2 * len(pools)), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(len(pools), len(wheres) + 1)
    shown = list(
        dict.fromkeys(
            trial.name for comparison in comparisons for trial in ranked(comparison)[:SHOWN]
        )
    )[: len(COLOURS) - len(ALWAYS)]
    colours = dict(zip([*ALWAYS, *(n for n in shown if n not in ALWAYS)], COLOURS, strict=False))
    for comparison in comparisons:
        axes = figure.add_subplot(
            grid[pools.index(comparison.pool), wheres.index(comparison.where)]
        )
        draw_delays(axes, comparison, colours)
    draw_alarms(
        figure.add_subplot(grid[:, len(wheres)]),
        [m for m in measures if m.group == ALARM_GROUP],
    )
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=5, fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Software": None})


def draw_delays(axes: Any, comparison: Comparison, colours: dict[str, str]) -> None:
    """Draw, for each method, the share of rises seen over the delay in units of the oracle's."""
    axes.set_xscale("log")
    for trial in comparison.trials:
        if trial.name in colours:
            axes.plot(*seen_by(trial.ramps), color=colours[trial.name], lw=1.3, label=trial.name)
    axes.plot(*seen_by(comparison.ours), color=OWN_COLOUR, lw=2.4, label="this monitor, far = 1e5")
    axes.axvline(1.0, color="#999999", lw=0.8, ls=":")
    axes.set(
        xlim=(0.4, 30.0),
        ylim=(0.0, 1.0),
        xticks=(0.5, 1, 2, 5, 10, 20),
        xticklabels=("½", "1", "2", "5", "10", "20"),
        xlabel="delay ÷ the oracle's",
        ylabel="share of rises seen",
    )
    axes.minorticks_off()
    axes.set_title(f"{comparison.where}; set by {comparison.pool}", fontsize=10)
    axes.grid(color="#eeeeee")


def seen_by(ramps: Sequence[Ramp]) -> tuple[list[float], list[float]]:
    """Return delays in units of the oracle's, and the share of all ramps seen by then."""
    delays = sorted(ramp.ratio for ramp in ramps if ramp.delay is not None)
    x = np.repeat(np.array([0.01, *delays, 1000.0]), 2)[1:]
    y = np.repeat(np.arange(len(delays) + 1) / len(ramps), 2)
    return x[: len(y)].tolist(), y.tolist()


def draw_alarms(axes: Any, rates: Sequence[Measure]) -> None:
    """Draw the rates of false alarms with their intervals, and the targets."""
    names = [measure.name.removeprefix("false alarms, ") for measure in rates]
    for i, measure in enumerate(rates):
        low, high = measure.interval or (measure.value, measure.value)
        axes.plot([low, high], [i, i], color="#0072b2", lw=2)
        axes.plot([measure.value], [i], "o", color="#0072b2")
        if measure.at_most is not None:
            axes.plot([measure.at_most], [i], "|", color="#d55e00", ms=16, mew=2)
    axes.set_xscale("symlog", linthresh=1.0)
    axes.set(
        xlim=(-0.05, 3000.0),
        xticks=(0, 1, 10, 100, 1000),
        xticklabels=("0", "1", "10", "100", "1000"),
        yticks=range(len(names)),
        xlabel="false alarms in 100,000 points (bar: target)",
    )
    axes.set_yticklabels([name.replace(", ", ",\n") for name in names], fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="x", color="#eeeeee")
    axes.set_title("False alarms, with 95 % intervals", fontsize=10)
