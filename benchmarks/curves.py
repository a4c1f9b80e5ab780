"""Loss curves to measure detectors on: real ones from the given corpus, and simulated ones."""

from __future__ import annotations

import csv
import gzip
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PYTHIA = "runs/pythia_clean_143k_full.csv.gz"


def shared() -> Path | None:
    """Return the folder of given logs, or None where WTWIN_WATCH_CORPUS doesn't name it."""
    folder = os.environ.get("WTWIN_WATCH_CORPUS")
    return Path(folder) if folder else None


@dataclass(frozen=True)
class Log:
    """One curve: steps, losses, learning rates where logged; what it is a log of, and its label."""

    name: str
    kind: str
    label: str
    steps: Floats
    losses: Floats
    lrs: Floats | None

    def __len__(self) -> int:
        return len(self.losses)


def read(path: Path, kind: str = "", label: str = "", column: str = "loss") -> Log:
    """Read a log; rows without a loss are left out, NaN is kept."""
    opener = gzip.open if path.suffix == ".gz" else open
    steps, losses, lrs = [], [], []
    with opener(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row[column]:
                steps.append(float(row["step"]))
                losses.append(float(row[column]))
                lrs.append(float(row.get("lr") or math.nan))
    has_lr = bool(lrs) and not math.isnan(lrs[0])
    return Log(
        path.name, kind, label, np.array(steps), np.array(losses), np.array(lrs) if has_lr else None
    )


def corpus(folder: Path, labels: tuple[str, ...] = ("clean",)) -> Iterator[Log]:
    """Read the logs of the corpus with these labels."""
    with (folder / "corpus" / "index.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["label"] in labels and row["granularity"] != "eval":
                yield read(folder / "corpus" / row["file"], row["kind"], row["label"])


def sigma_before(losses: Floats, onset: int) -> float:
    """Return the noise of a point before ``onset``: MAD of the last 400 differences, as sigma."""
    differences = np.diff(losses[max(0, onset - 400) : onset])
    mad = float(np.median(np.abs(differences - np.median(differences))))
    return 1.4826 * mad / math.sqrt(2.0)


def bound(gamma: float, sigma: float, delta: float, duration: float) -> float:
    """Return the delay of an oracle for a ramp of ``delta`` over ``duration`` points, then flat."""
    log_gamma = math.log(gamma)
    slope = delta / duration
    n = (6.0 * log_gamma * sigma**2 / slope**2) ** (1.0 / 3.0)
    if n <= duration:
        return float(n)
    rest = log_gamma - duration * delta**2 / (6.0 * sigma**2)
    return duration + 2.0 * sigma**2 * rest / delta**2


SCHEDULES = ("const", "cosine", "cosine0", "linear", "wsd", "wsdexp", "step", "staircase")


def simulated(seed: int, index: int) -> tuple[str, Floats]:
    """Make a clean curve; return the family of its noise, and the losses of steps 1, 2, ….

    The multi-power law (Luo et al. 2025) under a random schedule, with noise that is white, mildly or
    strongly correlated, Gaussian, heavy-tailed or contaminated.
    """
    rng = np.random.default_rng((seed, index))
    points = int(math.exp(rng.uniform(math.log(1500), math.log(30_000))))
    schedule = str(rng.choice(SCHEDULES))
    clean = _curve(rng, points, schedule)
    sigma = math.exp(rng.uniform(math.log(0.005), math.log(0.1)))
    t = np.arange(points)
    scale = sigma * (1.0 + 0.5 * np.exp(-t / (0.05 * points)))
    tail = str(rng.choice(["gauss", "gauss", "t4", "contaminated"]))
    noise = (
        rng.standard_t(4, points) / math.sqrt(2.0) if tail == "t4" else rng.standard_normal(points)
    )
    if tail == "contaminated":
        hit = rng.random(points) < 0.01
        noise[hit] += np.abs(5.0 * rng.standard_normal(int(hit.sum())))
    phi = float(rng.choice([0.0, 0.0, 0.0, 0.3, 0.7, 0.95]))
    family = "white" if phi == 0.0 else "hard" if phi == 0.95 else "mild"
    if phi:
        noise = _ema(noise, phi) * math.sqrt(1.0 - phi**2)
    if rng.random() < 0.15:
        scale = np.where(
            t > rng.uniform(0.2, 0.8) * points, scale * rng.choice([0.5, 0.7, 1.4, 2.0]), scale
        )
    losses = clean + scale * noise
    smooth = rng.random()
    if smooth < 0.08:
        losses = np.convolve(
            np.concatenate([np.full(9, losses[0]), losses]), np.full(10, 0.1), "valid"
        )
        family = "mild" if family == "white" else family
    elif smooth < 0.14:
        keep = float(rng.choice([0.9, 0.98]))
        losses = losses[0] + (1.0 - keep) * _ema(losses - losses[0], keep)
        family = "hard"
    return family, losses


def _ema(values: Floats, keep: float) -> Floats:
    """Return the sums s_t = keep · s_(t-1) + v_t."""
    sums = np.empty_like(values)
    s = 0.0
    for i, v in enumerate(values.tolist()):
        s = keep * s + v
        sums[i] = s
    return sums


def _curve(rng: np.random.Generator, points: int, schedule: str) -> Floats:
    grid = min(points, 600)
    share = (np.arange(grid) + 1.0) / grid
    warm = rng.uniform(0.002, 0.03)
    if schedule == "const":
        lr = np.ones(grid)
    elif schedule in ("cosine", "cosine0"):
        low = 0.1 if schedule == "cosine" else 0.0
        lr = low + (1.0 - low) * 0.5 * (1.0 + np.cos(np.pi * share))
    elif schedule == "linear":
        lr = 1.0 - share
    elif schedule == "wsd":
        lr = np.clip((1.0 - share) / 0.2, 0.0, 1.0)
    elif schedule == "wsdexp":
        lr = np.where(share < 0.8, 1.0, 0.05 ** ((share - 0.8) / 0.2))
    elif schedule == "step":
        lr = np.where(share < 0.5, 1.0, np.where(share < 0.75, 0.3, 0.1))
    else:
        lr = np.ones(grid)
    lr = np.maximum(lr, 1e-4) * np.minimum(1.0, share / warm)
    low, amplitude, alpha = rng.uniform(0.3, 3.2), rng.uniform(0.36, 1.2), rng.uniform(0.3, 0.65)
    b, c, beta = rng.uniform(215, 560), rng.uniform(1.5, 2.7), rng.uniform(0.48, 0.72)
    gamma, total = rng.uniform(0.58, 0.68), rng.uniform(5.0, 21.0)
    # The law's constants are those of a peak rate of some 3e-4; how many steps a point has, follows.
    s1 = np.cumsum(lr) / lr.sum() * total
    lr = lr * rng.uniform(2e-4, 5e-4)
    drop = np.maximum(0.0, -np.diff(lr, prepend=lr[0]))
    loss = low + amplitude * (s1 + 0.05) ** -alpha
    for k in np.flatnonzero(drop):
        later = slice(k, grid)
        x = np.maximum(lr[k], 1e-7) ** -gamma * (s1[later] - s1[k])
        loss[later] -= b * drop[k] * (1.0 - (c * x + 1.0) ** -beta)
    curve = np.interp(np.arange(points) + 1.0, share * points, loss)
    if schedule == "staircase":
        epochs = int(rng.integers(2, 7))
        epoch = np.floor(np.arange(points) / points * epochs)
        curve = curve - 0.05 * (curve[0] - curve[-1]) * epoch
    return np.asarray(curve, dtype=np.float64)
