"""Taking the present level of a run as the new normal."""

import json
import math

import numpy as np
import pytest

from tests.support.classic_series import benchmark_curve
from tests.support.curves import healthy, rows, series, with_rise
from wtwin_watch.metrics import Names
from wtwin_watch.model import Family
from wtwin_watch.monitor.options import ClassicOptions, TrendOptions
from wtwin_watch.monitor.run import RunMonitor


def brought_back(monitor, options):
    """The same monitor, after it was stored."""
    return RunMonitor.restore(json.loads(json.dumps(monitor.snapshot())), Names(), options)


def brief(detections):
    return [(d.family, d.kind, d.active) for d in detections]


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("after", [10, 60, 600], ids=lambda n: f"{n} points after")
@pytest.mark.parametrize("seed", range(2))
def test_an_accepted_level_is_told_no_more_and_a_further_rise_is(seed, after, stored):
    losses = with_rise(healthy(6000, seed), 1500, [0.3] * 3000 + [0.5])
    monitor = RunMonitor()
    assert monitor.feed(series(losses[: 1500 + after]))

    told = monitor.accept(Family.LOSS)
    if stored:
        monitor = brought_back(monitor, TrendOptions())
    same = monitor.feed(series(losses[1500 + after : 4500], first=1501 + after))
    further = monitor.feed(series(losses[4500:], first=4501))

    assert [(d.family, d.active, d.step) for d in told] == [(Family.LOSS, False, 1500.0 + after)]
    assert same == []
    assert further[0].active
    assert 4501 <= further[0].step <= 4510
    assert abs(further[0].onset_step - 4501) <= 8
    assert monitor.active == {Family.LOSS}


def test_a_drift_that_goes_on_after_it_was_accepted_is_told_again():
    losses = with_rise(healthy(4000), 1500, list(np.linspace(0.0, 2.0, 2500)))
    monitor = RunMonitor()
    assert monitor.feed(series(losses[:1800]))
    monitor.accept(Family.LOSS)

    found = monitor.feed(series(losses[1800:], first=1801))

    assert found[0].active
    assert found[0].step < 2500


def test_acceptance_goes_on_as_one_monitor_and_its_copy_do():
    losses = with_rise(healthy(3000), 1500, [0.3])
    monitor = RunMonitor()
    monitor.feed(series(losses[:1600]))
    monitor.accept(Family.LOSS)
    copy = brought_back(monitor, TrendOptions())

    for one in (monitor, copy):
        one.feed(series(losses[1600:], first=1601))

    assert copy.snapshot() == monitor.snapshot()


def test_the_classic_detector_fits_its_forecast_anew():
    losses = benchmark_curve("drift", 1, steps=1000)
    losses += [0.6 + 0.02 * math.sin(7.0 * i) for i in range(500)]
    options = ClassicOptions()
    monitor = RunMonitor(detector=options)
    monitor.feed(series(losses[:1000]))
    assert monitor.active == {Family.LOSS}

    told = monitor.accept(Family.LOSS)
    monitor = brought_back(monitor, options)

    assert brief(told) == [(Family.LOSS, "drift", False)]
    assert monitor.feed(series(losses[1000:], first=1001)) == []
    further = monitor.feed(series([1.2] * 60, first=1501))
    assert brief(further)[0] == (Family.LOSS, "drift", True)


def overfitting():
    """The validation loss rises from evaluation 250 on to a level where it stays, the loss falls."""
    count = 700
    val = with_rise(healthy(count, 1), 250, list(np.linspace(0, 0.6, 150)))
    train = np.array([3.0 - 0.002 * i for i in range(count)])
    return rows(
        loss=(train + np.random.default_rng(2).normal(0, 0.02, count)).tolist(), val_loss=val
    )


def test_a_validation_loss_can_be_accepted_as_well():
    points = overfitting()
    monitor = RunMonitor()
    assert brief(monitor.feed(points[:900])) == [(Family.LOSS, "overfit", True)]

    assert brief(monitor.accept(Family.LOSS)) == [(Family.LOSS, "overfit", False)]
    monitor = brought_back(monitor, TrendOptions())

    assert monitor.feed(points[900:]) == []


def test_a_slower_throughput_can_be_accepted_and_a_further_drop_is_told():
    speed = [100.0 + i % 3 for i in range(480)] + [50.0 + i % 3 for i in range(480)]
    speed += [20.0 + i % 3 for i in range(240)]
    points = rows(loss=healthy(1200), tokens_per_s=speed)
    monitor = RunMonitor(Names(throughput="tokens_per_s"))
    assert brief(monitor.feed(points[: 2 * 600])) == [(Family.PROGRESS, "throughput_drop", True)]

    assert brief(monitor.accept(Family.PROGRESS)) == [(Family.PROGRESS, "throughput_drop", False)]

    assert monitor.feed(points[2 * 600 : 2 * 960]) == []
    (again,) = monitor.feed(points[2 * 960 :])
    assert (again.kind, again.expected) == ("throughput_drop", 51.0)


@pytest.mark.parametrize(
    ("family", "tail"),
    [
        (Family.NONFINITE, [math.nan] * 3),
        (Family.LOSS, [0.0] * 10),
        (Family.LOSS, [2.14] * 400),
    ],
    ids=["NaN", "exactly zero", "frozen"],
)
def test_what_is_no_level_cannot_be_accepted_and_nothing_changes(family, tail):
    monitor = RunMonitor()
    monitor.feed(series([*healthy(400), *tail]))
    assert family in monitor.active
    before = monitor.snapshot()

    assert monitor.accept(family) is None
    assert monitor.snapshot() == before


@pytest.mark.parametrize("family", list(Family))
def test_where_nothing_is_wrong_there_is_nothing_to_accept(family):
    monitor = RunMonitor()
    assert monitor.accept(family) is None
    monitor.feed(series(healthy(400)))
    assert monitor.accept(family) is None


def test_a_frozen_loss_that_had_risen_keeps_its_alert_after_the_rise_is_accepted():
    losses = with_rise(healthy(1600), 1500, [0.5]) + [2.6] * 400
    monitor = RunMonitor()
    monitor.feed(series(losses))
    assert monitor.findings[0].kind == "frozen"

    monitor.accept(Family.LOSS)

    assert brief(monitor.findings) == [(Family.LOSS, "frozen", True)]
