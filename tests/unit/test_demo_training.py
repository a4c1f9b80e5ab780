import json
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from wtwin_watch.demo.classifier import ROT_BEGINS, STEPS
from wtwin_watch.demo.training import train


def test_both_logs_hold_every_step_and_the_same_losses(tmp_path: Path):
    train(tmp_path / "run", seed=1, healthy=False, step_s=0.0)

    header, *rows = (tmp_path / "run" / "train.csv").read_text().splitlines()
    table = np.array([row.split(",") for row in rows], dtype=float)
    [path] = (tmp_path / "run").glob("events.out.tfevents.*")
    _, *events = EventFileLoader(str(path)).Load()
    assert header == "step,loss"
    assert table[:, 0].tolist() == list(range(1, STEPS + 1))
    assert [event.step for event in events] == list(range(1, STEPS + 1))
    losses = [event.summary.value[0].tensor.float_val[0] for event in events]
    # The table has 6 decimals, the events 24 binary digits.
    assert losses == pytest.approx(table[:, 1].tolist(), abs=1e-6)


@pytest.mark.parametrize(("healthy", "rotten"), [(False, True), (True, False)])
def test_it_says_how_it_goes_and_when_the_labels_begin_to_rot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], healthy: bool, rotten: bool
):
    train(tmp_path, seed=1, healthy=healthy, step_s=0.0)

    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    steps = [line for line in said if line["said"] == "step"]
    assert [line["step"] for line in steps] == list(range(10, STEPS + 1, 10))
    assert [line["step"] for line in said if line["said"] == "rot begins"] == (
        [ROT_BEGINS + 1] if rotten else []
    )
    assert (steps[-1]["rotten"] > 0) is rotten
    assert said[-1] == {"said": "finished", "step": STEPS}
