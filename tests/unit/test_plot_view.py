"""What a picture shows: which part of the run, on which scale, named in which corner."""

import math

import numpy as np
import pytest

from tests.support.records import make_alert
from wtwin_watch.model import AlertState
from wtwin_watch.monitor.curve import Curve
from wtwin_watch.plot.view import Mark, Moment, free_corner, marks_of, view


def curve_of(losses, expected=None):
    curve = Curve(None)
    curve.add([(float(i), float(x)) for i, x in enumerate(losses)], (), 0.1)
    return curve


FALLING = np.linspace(3.0, 2.0, 10_000)


def test_without_a_mark_all_of_the_run_is_shown():
    left, right = view(curve_of(FALLING), []).x

    assert left <= 0.0
    assert right >= 9999.0


def test_a_short_episode_fills_a_good_part_of_the_picture():
    marks = [Mark(9800.0, Moment.ONSET), Mark(9820.0, Moment.ALERT)]

    left, right = view(curve_of(FALLING), marks).x

    assert 0.1 < (9999.0 - 9800.0) / (right - left) < 0.2


def test_an_episode_that_is_over_is_shown_with_what_came_after():
    marks = [Mark(5000.0, Moment.ONSET), Mark(5010.0, Moment.ALERT), Mark(5100.0, Moment.RESOLVED)]

    left, right = view(curve_of(FALLING), marks).x

    assert 4000.0 < left < 4700.0
    assert 5110.0 < right < 5500.0


def test_a_jump_of_one_point_is_shown_with_a_stretch_to_compare_with():
    marks = [Mark(9999.0, Moment.ONSET), Mark(9999.0, Moment.ALERT)]

    left, _ = view(curve_of(FALLING), marks).x

    assert left < 9980.0


def test_few_columns_are_drawn_and_none_of_the_extremes_is_lost():
    losses = FALLING.copy()
    losses[7777] = 2.9

    seen = view(curve_of(losses), [])

    assert len(seen.step) <= 121
    assert np.nanmax(seen.high[seen.step > 7000]) == pytest.approx(2.9)


def test_the_steep_beginning_does_not_flatten_what_matters():
    losses = 2.0 + 8.0 * np.arange(1, 5001) ** -0.5
    losses[4000:] += 0.5
    marks = [Mark(4000.0, Moment.ONSET)]

    low, high = view(curve_of(losses), marks).y

    assert low < 2.1
    assert 2.6 < high < 4.0


def test_a_divergence_over_decades_is_drawn_in_logarithms():
    losses = np.concatenate([np.full(500, 2.0), np.geomspace(2.0, 1e4, 500)])

    seen = view(curve_of(losses), [Mark(500.0, Moment.ONSET)])

    assert seen.logarithmic
    assert seen.y[0] < 2.0
    assert seen.y[1] > 1e4


def test_a_loss_below_zero_is_never_drawn_in_logarithms():
    assert not view(curve_of([1.0, -1.0, 100.0]), []).logarithmic


def test_losses_that_are_no_number_are_marked_where_they_are():
    assert view(curve_of([2.0, math.nan, 2.0, math.inf]), []).lost.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("losses", [[], [math.nan], [2.0], [2.0, 2.0], [0.0] * 9])
def test_any_run_has_limits_that_can_be_drawn(losses):
    seen = view(curve_of(losses), [Mark(1.0, Moment.ALERT)])

    for low, high in (seen.x, seen.y, seen.score_limits):
        assert math.isfinite(low)
        assert low < high < math.inf


def test_names_stand_where_the_curve_is_not():
    falling, rising = view(curve_of(FALLING), []), view(curve_of(FALLING[::-1]), [])

    assert free_corner(falling, []) in {(False, False), (True, True)}
    assert free_corner(rising, []) in {(True, False), (False, True)}


def test_the_marks_of_an_alert_are_its_onset_its_alert_and_its_end():
    alert = make_alert(state=AlertState.RESOLVED, resolved_step=2400.0)

    assert marks_of(alert) == [
        Mark(2205.0, Moment.ONSET),
        Mark(2210.0, Moment.ALERT),
        Mark(2400.0, Moment.RESOLVED),
    ]
