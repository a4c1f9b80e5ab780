"""The training of the demo, judged by the watcher's own monitor and alert rules without waiting."""

import copy
import math

import pytest

from wtwin_watch.alerting import lifecycle
from wtwin_watch.alerting.lifecycle import Policy
from wtwin_watch.demo.classifier import ROT_BEGINS, STEPS, Classifier, rotten_share
from wtwin_watch.demo.training import STEP_S
from wtwin_watch.metrics import Names
from wtwin_watch.model import Event, Family, Point, RunKey
from wtwin_watch.monitor.run import ClassicOptions, RunMonitor

POLICY = Policy(for_s=1.0)


@pytest.mark.parametrize("seed", range(16))
def test_the_rot_is_told_once_and_a_healthy_training_never(seed: int):
    healthy = Classifier(seed)
    beginning = [healthy.step() for _ in range(ROT_BEGINS)]
    rotting = copy.deepcopy(healthy)

    clean = beginning + [healthy.step() for _ in range(ROT_BEGINS, STEPS)]
    rotten = beginning + [
        rotting.step(rotten_share(step)) for step in range(ROT_BEGINS + 1, STEPS + 1)
    ]

    assert _told(clean) == []
    [(event, family, step)] = _told(rotten)
    assert (event, family) == (Event.FIRING, Family.LOSS)
    assert ROT_BEGINS < step < ROT_BEGINS + 250


def test_the_loss_falls_from_guessing_to_almost_the_overlap_of_the_parts():
    model = Classifier(7)

    losses = [model.step() for _ in range(STEPS)]

    assert losses[0] == pytest.approx(math.log(6), abs=0.4)
    assert 0.15 < losses[-1] < 0.4


def test_the_same_seed_gives_the_same_training_and_another_one_another():
    first, second, other = (
        [model.step(0.3) for _ in range(5)]
        for model in (Classifier(3), Classifier(3), Classifier(4))
    )

    assert first == second
    assert first != other


def test_wrong_labels_leave_the_batches_as_they_are():
    healthy, rotting = Classifier(5), Classifier(5)
    rotting.step(0.5)
    healthy.step()
    batches = [model._batch(0.0) for model in (healthy, rotting)]

    assert (batches[0][0] == batches[1][0]).all()
    assert (batches[0][1] == batches[1][1]).all()


@pytest.mark.parametrize(("share", "wrong"), [(0.0, 0), (0.25, 64), (0.75, 192), (1.0, 256)])
def test_a_share_of_the_labels_is_wrong_none_right_by_chance(share: float, wrong: int):
    inputs, clean = Classifier(9)._batch(0.0)
    same_inputs, labels = Classifier(9)._batch(share)

    assert (inputs == same_inputs).all()
    assert (labels != clean).sum() == wrong
    assert set(labels.tolist()) <= set(range(6))


def test_labels_rot_from_half_way_on_ever_more_up_to_three_in_four():
    shares = [rotten_share(step) for step in range(1, STEPS + 1)]

    assert set(shares[:ROT_BEGINS]) == {0.0}
    assert shares[ROT_BEGINS] > 0
    assert shares == sorted(shares)
    assert shares[-1] == 0.75


def _told(losses: list[float]) -> list[tuple[Event, Family, int]]:
    """What people are told of this curve, and at which step, if a step takes as long as in the demo."""
    monitor = RunMonitor(Names(), ClassicOptions())
    run, alerts, told = RunKey("csv", "mixture"), {}, []
    for step, loss in enumerate(losses, 1):
        now = step * STEP_S
        detections = monitor.feed([Point("loss", step, loss)])
        alerts, changes = lifecycle.step(run, alerts, detections, now, POLICY, lambda: "id")
        alerts, later = lifecycle.advance(alerts, now, POLICY)
        told += [
            (change.event, change.alert.family, step)
            for change in (*changes, *later)
            if change.event is not None
        ]
    return told
