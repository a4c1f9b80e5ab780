"""The rule for a loss that is no number."""

import math

import pytest

from wtwin_watch.errors import SnapshotError
from wtwin_watch.monitor.rules import NonFiniteRule, Turn


def turns(values):
    rule = NonFiniteRule()
    return rule, [rule.update(step, value) for step, value in enumerate(values, 1)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_the_first_bad_loss_alerts(bad):
    rule, said = turns([2.0, 1.9, bad, bad])
    assert said == [None, None, Turn.BEGAN, None]
    assert (rule.onset, rule.last_healthy, rule.last_bad, rule.bad_points) == (3, 2, 4, 2)


def test_the_very_first_loss_may_be_the_bad_one():
    rule, said = turns([math.nan])
    assert said == [Turn.BEGAN]
    assert rule.last_healthy is None


def test_64_finite_losses_in_a_row_end_it():
    _, said = turns([math.nan] + [1.0] * 64)
    assert said == [Turn.BEGAN] + [None] * 63 + [Turn.ENDED]


def test_63_finite_losses_and_a_bad_one_do_not():
    _, said = turns(([math.inf] + [1.0] * 63) * 3)
    assert said == [Turn.BEGAN] + [None] * 191


def test_a_second_episode_has_its_own_steps():
    rule, said = turns([math.nan] + [1.0] * 70 + [math.inf])
    assert said.count(Turn.BEGAN) == 2
    assert (rule.onset, rule.last_healthy, rule.bad_points) == (72, 71, 1)


@pytest.mark.parametrize("state", [{}, {"version": 2}, {"version": 1, "active": True}])
def test_a_state_of_another_form_is_refused(state):
    with pytest.raises(SnapshotError):
        NonFiniteRule.restore(state)
