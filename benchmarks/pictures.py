"""The pictures of the documentation: three made-up losses, each with a failure of its own.

    python -m benchmarks.pictures            writes docs/plots/*.png

Every loss is a power law with noise from a generator whose seed is fixed.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wtwin_watch.cli import main as wtwin_watch

FOLDER = Path(__file__).parents[1] / "docs" / "plots"
SEED = 20


def losses() -> dict[str, list[float]]:
    """One loss a picture, by the picture's name."""
    rng = np.random.default_rng(SEED)

    def healthy(points: int, noise: float) -> np.ndarray:
        step = np.arange(1, points + 1)
        return 2.0 + 8.0 * step**-0.35 + rng.normal(0.0, noise, points)

    drift = healthy(6000, 0.03)
    drift[5000:] += np.linspace(0.0, 0.35, 1000)
    spike = healthy(9000, 0.03)
    spike[6000:6060] += np.linspace(1.8, 0.0, 60)
    diverging = healthy(4000, 0.03)
    diverging[3600:] *= np.exp(np.linspace(0.0, 3.0, 400))
    diverging[3800:] = math.nan
    return {"drift": drift.tolist(), "spike": spike.tolist(), "divergence": diverging.tolist()}


def main(args: Sequence[str] | None = None) -> None:
    """Write each loss as a log beside nothing else, and draw what ``monitor --plot`` makes of it."""
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    folder = parser.parse_args(args).folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        for name, loss in losses().items():
            log = Path(made) / f"{name}.csv"
            rows = "".join(f"{step},{value:.6g}\n" for step, value in enumerate(loss, start=1))
            log.write_text("step,loss\n" + rows)
            picture = folder / f"{name}.png"
            wtwin_watch(["monitor", str(log), "--plot", str(picture)])


if __name__ == "__main__":
    main()
