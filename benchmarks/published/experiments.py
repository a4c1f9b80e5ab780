"""Which runs there are: their names, seeds and failures, and the order in which they are trained."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.curves import Log, read

ONSET = 2000
"""The last healthy step of a run that fails."""
CLEAN_TO, GRADUAL_TO, ABRUPT_TO = 3000, 2600, 2200
LOGS = Path(__file__).parent / "logs"
KINDS = {
    "proglabel_linear": "label noise, linear",
    "proglabel_quadratic": "label noise, quadratic",
    "proglabel_sigmoid": "label noise, sigmoid",
    "progweight": "weight noise",
    "weightcorrupt": "weights corrupted",
    "labelcorrupt": "labels corrupted",
    "lrspike": "learning rate 10 times its peak",
    "lrdrop": "learning rate a hundredth",
    "dropout": "dropout",
    "marginallr": "learning rate 3 times its peak",
    "divergentlr": "learning rate 100 times its peak",
    "none": "clean",
}
MODES = {
    "proglabel": "progressive_label",
    "progweight": "progressive_weight",
    "weightcorrupt": "weight_corrupt",
    "labelcorrupt": "label_corrupt",
    "lrspike": "lr_spike",
    "lrdrop": "lr_drop",
    "dropout": "dropout",
    "marginallr": "marginal_lr",
    "divergentlr": "divergent_lr",
    "none": "none",
}
GRADUAL = tuple(kind for kind in KINDS if kind.startswith("prog"))
LINEAR, ABRUPT, CLEAN = "proglabel_linear", "weightcorrupt", "none"
NAME = re.compile(r"(?P<kind>[a-z_]+)_seed(?P<seed>\d+)")


@dataclass(frozen=True)
class Experiment:
    """One run to train."""

    kind: str
    seed: int

    @property
    def name(self) -> str:
        """What its log is called."""
        return f"{self.kind}_seed{self.seed}"

    @property
    def mode(self) -> str:
        """Its mode in ``examples/train_real.py``."""
        return MODES[self.kind.split("_", maxsplit=1)[0]]

    @property
    def profile(self) -> str:
        """Its ramp."""
        return self.kind.split("_")[1] if "_" in self.kind else "linear"

    @property
    def stop_at(self) -> int:
        """Its last step."""
        if self.kind == CLEAN:
            return CLEAN_TO
        return GRADUAL_TO if self.kind in GRADUAL else ABRUPT_TO


def published_set() -> list[Experiment]:
    """Return the whole set, the most telling first: nine progressive, two abrupt, others, 30 clean."""
    telling = (LINEAR, ABRUPT, CLEAN, *GRADUAL[1:], "lrspike", "dropout", "labelcorrupt")
    first = [Experiment(kind, 42) for kind in telling]
    second = [Experiment(kind, 43) for kind in (LINEAR, ABRUPT, CLEAN)]
    second += [Experiment(kind, 42) for kind in KINDS if kind not in telling]
    third = [Experiment(kind, seed) for seed in (44, 45, 46) for kind in (LINEAR, CLEAN)]
    rest = [Experiment(CLEAN, seed) for seed in range(47, 72)]
    return [*first, *second, *third, Experiment("progweight", 43), *rest]


def kind_of(name: str) -> str:
    """Return the kind of a log by its name. Raises `ValueError` for a name that isn't one of ours."""
    found = NAME.fullmatch(name.split(".", maxsplit=1)[0])
    if found is None or found["kind"] not in KINDS:
        raise ValueError(
            f"{name} names no experiment; names are like proglabel_linear_seed42.csv.gz"
        )
    return found["kind"]


def logs(folder: Path) -> Iterator[tuple[str, Log]]:
    """Read the logs of a folder with their kinds, in the order of `KINDS`."""
    paths = sorted(folder.glob("*.csv.gz"))
    for kind in KINDS:
        for path in paths:
            if kind_of(path.name) == kind:
                yield kind, read(path, kind=kind, column="train_loss")


def missing(folder: Path, wanted: Iterable[Experiment]) -> list[Experiment]:
    """Return those whose log isn't there yet."""
    return [one for one in wanted if not (folder / f"{one.name}.csv.gz").exists()]
