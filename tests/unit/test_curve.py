"""What is kept of a run's loss for its picture."""

import json
import math

import numpy as np
import pytest

from wtwin_watch.errors import SnapshotError
from wtwin_watch.metrics import Names
from wtwin_watch.model import Point
from wtwin_watch.monitor.curve import COLUMNS, Curve, feed
from wtwin_watch.monitor.options import TrendOptions
from wtwin_watch.monitor.run import RunMonitor
from wtwin_watch.monitor.wtwin import WTwinState


def curve_of(losses, limit=COLUMNS):
    curve = Curve(limit)
    for start in range(0, len(losses), 100):
        pairs = [(float(start + i), loss) for i, loss in enumerate(losses[start : start + 100])]
        curve.add(pairs, (), 0.1)
    return curve


def test_a_short_run_is_kept_point_by_point():
    curve = curve_of([3.0, 2.0, math.nan, 1.0])

    assert curve.step.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert curve.mean.tolist()[:2] == [3.0, 2.0]
    assert math.isnan(curve.mean[2])
    assert curve.lost.tolist() == [0.0, 0.0, 1.0, 0.0]


def test_a_long_run_takes_no_more_than_its_columns_and_keeps_its_extremes():
    losses = [2.0] * 100_000
    losses[5_000], losses[77_777] = 9.0, 0.5

    curve = curve_of(losses)

    assert len(curve) <= COLUMNS * 3 // 2
    assert (curve.high.max(), curve.low.min()) == (9.0, 0.5)
    assert curve.step[-1] == 99_999.0


def test_the_end_of_a_long_run_is_finer_than_its_beginning():
    curve = curve_of([2.0] * 100_000)

    gaps = np.diff(curve.step)
    assert gaps[:10].min() > 500
    assert gaps[-20:].max() <= 100


def test_what_was_expected_stands_beside_what_was_seen():
    curve = Curve()
    learning = WTwinState(1.0, 2.0, 7.0, 0.0, 0.0, 4.0, 0.0, False)
    judged = WTwinState(2.0, 2.5, 2.0, 5.0, 1.0, 4.0, 1.0, True)

    curve.add([(1.0, 2.0), (2.0, 2.5)], [learning, judged], 0.25)

    assert math.isnan(curve.expected[0])
    assert (curve.expected[1], curve.score[1], curve.sigma[1]) == (2.0, 1.0, 0.25)


def test_a_stretch_that_is_logged_again_replaces_the_first():
    curve = curve_of([3.0, 2.0, 1.0])

    curve.rewind(1.0)
    curve.add([(1.0, 5.0)], (), 0.1)

    assert curve.mean.tolist() == [3.0, 5.0]
    curve.rewind(None)
    assert len(curve) == 0


def test_it_goes_on_where_it_was_stored():
    losses = np.linspace(3.0, 2.0, 700).tolist()
    curve = curve_of(losses)

    back = Curve.restore(json.loads(json.dumps(curve.snapshot())))

    for other in (curve, back):
        other.add([(700.0, 2.5)], (), 0.1)
    assert back.snapshot() == curve.snapshot()


@pytest.mark.parametrize("stored", [{}, {"version": 2}, {"version": 1, "columns": "AAAA"}])
def test_a_form_it_does_not_know_is_said_to_be_so(stored):
    with pytest.raises(SnapshotError, match="curve"):
        Curve.restore(stored)


def test_feeding_through_it_finds_what_feeding_finds():
    rng = np.random.default_rng(1)
    losses = 2 + 8 * np.arange(1, 2001) ** -0.35 + rng.normal(0, 0.02, 2000)
    losses[1500:] += 0.5
    points = [Point("loss", float(i), float(x)) for i, x in enumerate(losses)]
    options, names = TrendOptions(), Names()
    plain, drawn = RunMonitor(names, options), RunMonitor(names, options, history_limit=1)
    curve = Curve()

    assert feed(drawn, points, curve) == plain.feed(points)
    assert curve.step[-1] == 1999.0
    known = ~np.isnan(curve.expected)
    assert known.any()
    # The loss when it jumped: the forecast stays there.
    assert abs(curve.expected[known][-1] - 2.618) < 0.02
    assert np.nanmax(curve.score) > 0.0
