"""The benchmark of kills: its plan holds what it says, and its judge sees what goes wrong."""

import random
from collections import Counter

import pytest

from benchmarks.crash.plan import AFTER_FETCH, FIRING, POINTS, RESOLVED, lives
from benchmarks.crash.verdict import Delivery, Episode, Notice, judge

EPISODES = [Episode("a", 40.0, 105.0), Episode("a", 120.0, 185.0)]
NOTICES = [
    Notice("1", "hook", "a", 40.0, FIRING),
    Notice("2", "hook", "a", 40.0, RESOLVED),
    Notice("3", "hook", "a", 120.0, FIRING),
    Notice("4", "hook", "a", 120.0, RESOLVED),
]


def judged(*deliveries, noted_in=None):
    """Judge deliveries to one receiver, given as (key, life) or (key, life, answered)."""
    taken = [Delivery("hook", key, life, *rest or (True,)) for key, life, *rest in deliveries]
    return judge(EPISODES, ["hook"], NOTICES, taken, noted_in or {})


def faults(told):
    return (told.missing, told.disorderly, told.unknown, told.new_keys, told.unexplained)


@pytest.mark.parametrize(("kills", "runs", "episodes"), [(500, 50, 4), (24, 6, 2), (13, 10, 1)])
def test_half_of_the_lives_end_at_points_and_each_run_goes_wrong_and_is_well_again(
    kills, runs, episodes
):
    planned = lives(kills, runs, episodes, random.Random(1))

    points = Counter(life.point for life in planned)
    assert len(planned) == kills
    assert points.pop(None) == kills - kills // 2
    assert set(points) == set(POINTS)
    assert max(points.values()) - min(points.values()) <= 1
    for run in range(runs):
        turns = [turn.event for life in planned for turn in life.turns if turn.run == run]
        assert turns == [FIRING, RESOLVED] * episodes


def test_a_point_about_an_event_has_one_in_its_life_and_one_after_a_fetch_has_rows():
    for life in lives(500, 50, 4, random.Random(2)):
        if life.point == AFTER_FETCH:
            assert life.growing
            assert life.fault == "after-fetch:1"
        elif life.point is not None:
            assert life.fault == f"{life.point}:{life.turns[0].event}"


def test_a_run_that_is_wrong_logs_nothing_that_could_make_it_well():
    wrong = set()
    for life in lives(500, 50, 4, random.Random(3)):
        for turn in life.turns:
            (wrong.add if turn.event == FIRING else wrong.discard)(turn.run)
        assert not wrong & set(life.growing)


def test_a_plan_with_fewer_episodes_than_its_points_need_is_refused():
    with pytest.raises(ValueError, match="10 kills want an event, and there are 2"):
        lives(24, 1, 1, random.Random(4))


def test_all_told_once_in_order_is_without_fault():
    told = judged(("1", 0), ("2", 0), ("3", 1), ("4", 2))

    assert faults(told) == (0, 0, 0, 0, 0)
    assert (told.notifications, told.deliveries) == (4, 4)


def test_what_never_arrived_is_counted():
    assert judged(("1", 0), ("2", 0), ("3", 1)).missing == 1


def test_an_end_before_its_beginning_and_an_old_word_after_a_new_one_are_disorder():
    assert judged(("2", 0), ("1", 0), ("3", 1), ("4", 1)).disorderly == 1
    assert judged(("1", 0, False), ("2", 0), ("1", 0), ("3", 1), ("4", 1)).disorderly == 1


def test_a_delivery_of_what_did_not_happen_is_counted():
    assert judged(("1", 0), ("2", 0), ("9", 0), ("3", 1), ("4", 1)).unknown == 1


def test_a_repetition_after_a_lost_answer_is_explained():
    told = judged(("1", 0, False), ("1", 0), ("2", 0), ("3", 1), ("4", 1))

    assert faults(told) == (0, 0, 0, 0, 0)
    assert told.after_lost_answer == {"hook": 1}


def test_a_repetition_in_the_next_life_is_explained_where_the_answer_was_not_noted():
    told = judged(("1", 0), ("1", 1), ("2", 1), ("3", 1), ("4", 1), noted_in={"1": 1})

    assert faults(told) == (0, 0, 0, 0, 0)
    assert told.after_kill == {"hook": 1}


@pytest.mark.parametrize(("life", "noted"), [(0, 0), (1, 0)])
def test_a_repetition_is_a_fault_in_the_same_life_and_once_the_answer_was_noted(life, noted):
    told = judged(("1", 0), ("1", life), ("2", 1), ("3", 1), ("4", 1), noted_in={"1": noted})

    assert told.unexplained == 1


def test_the_same_told_under_another_key_is_a_fault():
    again = Notice("1b", "hook", "a", 40.0, FIRING)
    taken = [Delivery("hook", key, 0, True) for key in ("1", "1b", "2", "3", "4")]

    assert judge(EPISODES, ["hook"], [*NOTICES, again], taken, {}).new_keys == 1
