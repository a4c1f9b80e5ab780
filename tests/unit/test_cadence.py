"""When the steps of a run have stopped coming, told from how they came before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wtwin_watch.ingest.cadence import LEARNT_AFTER, Cadence, most_between


def regular(times=10, gap_s=10.0, steps=1, interval_s=2.0):
    """A cadence that saw ``steps`` new steps every ``gap_s``; and the time at its end."""
    cadence = Cadence()
    cadence.begin(0.0)
    for n in range(1, times + 1):
        look(cadence, gap_s * (n - 1), gap_s * n - interval_s, interval_s)
        cadence.came(gap_s * n, interval_s, steps)
    return cadence, gap_s * times


def look(cadence, begin, end, interval_s=2.0):
    """Look in vain from ``begin`` to ``end``."""
    moment = begin
    while (moment := moment + interval_s) <= end:
        cadence.looked(moment, interval_s)


def test_the_longest_pause_is_the_longest_time_between_two_arrivals():
    cadence, end = regular(times=5, gap_s=10.0)
    look(cadence, end, end + 98.0)
    cadence.came(end + 100.0, 2.0, 1)

    assert cadence.longest_pause_s == pytest.approx(100.0)
    assert cadence.idle_s == 0.0


def test_a_run_with_short_pauses_is_given_five_minutes():
    cadence, _ = regular(times=2 * LEARNT_AFTER, gap_s=1.0, interval_s=1.0)

    assert cadence.patience_s(300.0, 1.0) == 300.0


def test_a_run_with_long_pauses_is_given_four_times_the_longest():
    cadence, end = regular(times=LEARNT_AFTER, gap_s=10.0)
    look(cadence, end, end + 198.0)
    cadence.came(end + 200.0, 2.0, 1)

    assert cadence.patience_s(300.0, 2.0) == pytest.approx(800.0)


def test_a_run_whose_pauses_were_not_seen_yet_is_given_22_step_times_more_than_its_longest_pause():
    cadence, _ = regular(times=10, gap_s=30.0)

    assert cadence.patience_s(300.0, 2.0) == pytest.approx(30.0 + 22.0 * 30.0 + 3 * 2.0)


def test_steps_that_come_by_the_bufferful_are_counted_one_by_one():
    cadence, _ = regular(times=10, gap_s=30.0, steps=30)

    assert cadence.patience_s(300.0, 2.0) == 300.0


def test_it_stalls_at_the_last_look_that_is_in_time():
    cadence, end = regular(times=LEARNT_AFTER, gap_s=2.0)
    look(cadence, end, end + 296.0)
    assert not cadence.stalls(300.0, 2.0)

    cadence.looked(end + 298.0, 2.0)

    assert cadence.stalls(300.0, 2.0)


def test_a_run_whose_steps_came_less_than_three_times_is_not_judged():
    cadence, end = regular(times=2, gap_s=2.0)
    look(cadence, end, end + 10_000.0)

    assert not cadence.stalls(300.0, 2.0)


def test_time_in_which_it_was_not_seen_is_no_pause():
    cadence, end = regular(times=LEARNT_AFTER, gap_s=2.0)
    cadence.blind()
    cadence.came(end + 50_000.0, 2.0, 25_000)
    assert cadence.longest_pause_s == pytest.approx(2.0)
    cadence.blind()
    cadence.looked(end + 100_000.0, 2.0)

    assert cadence.idle_s == 0.0


def test_of_a_long_time_between_two_looks_little_counts():
    cadence, end = regular(times=LEARNT_AFTER, gap_s=2.0)
    cadence.looked(end + 50_000.0, 2.0)

    assert cadence.idle_s == most_between(2.0) == 66.0


def test_the_time_before_a_rewind_is_no_pause():
    cadence, end = regular(times=LEARNT_AFTER, gap_s=2.0)
    look(cadence, end, end + 998.0)
    cadence.came(end + 1_000.0, 2.0, 1, rewound=True)

    assert cadence.longest_pause_s == pytest.approx(2.0)


def test_a_long_pause_is_forgotten_after_40_000_steps():
    cadence, end = regular(times=5, gap_s=2.0)
    look(cadence, end, end + 998.0)
    cadence.came(end + 1_000.0, 2.0, 1)
    for n in range(1, 20_001):
        cadence.came(end + 1_000.0 + 2.0 * n, 2.0, 1)
    assert cadence.longest_pause_s == pytest.approx(1_000.0)
    for n in range(20_001, 40_002):
        cadence.came(end + 1_000.0 + 2.0 * n, 2.0, 1)

    assert cadence.longest_pause_s == pytest.approx(2.0)


def test_pauses_are_learnt_from_the_times_in_a_history_but_not_a_night_off():
    cadence = Cadence()
    cadence.recall([0.0, 10.0, 20.0, 30.0, 330.0, 340.0, 50_000.0, 50_010.0, 50_020.0])

    assert cadence.longest_pause_s == 300.0


def test_a_run_whose_history_tells_a_thousand_times_is_given_no_more_than_others():
    cadence = Cadence()
    cadence.recall([60.0 * n for n in range(LEARNT_AFTER + 1)])
    cadence.begin(0.0)
    for n in range(1, 4):
        cadence.came(60.0 * n, 2.0, 1)

    assert cadence.patience_s(100.0, 2.0) == pytest.approx(240.0)


@given(st.lists(st.tuples(st.floats(0.0, 500.0), st.integers(0, 50)), max_size=60))
def test_a_cadence_that_was_stored_goes_on_as_the_one_that_was_not(events):
    one, moment, interval_s = Cadence(), 0.0, 10.0
    one.begin(0.0)
    for gap_s, steps in events:
        moment += gap_s
        other = Cadence.restore(one.snapshot())
        other.seen_at = one.seen_at
        for cadence in (one, other):
            if steps:
                cadence.came(moment, interval_s, steps)
            else:
                cadence.looked(moment, interval_s)
        assert one == other


@given(
    st.lists(st.tuples(st.floats(0.1, 200.0), st.integers(1, 50)), min_size=3, max_size=60),
    st.floats(1.0, 60.0),
)
def test_a_run_is_never_called_stalled_within_five_minutes_less_two_looks(events, interval_s):
    cadence, moment = Cadence(), 0.0
    cadence.begin(0.0)
    for gap_s, steps in events:
        moment += gap_s
        cadence.came(moment, interval_s, steps)
    idle = 0.0
    while not cadence.stalls(300.0, interval_s):
        moment += interval_s
        cadence.looked(moment, interval_s)
        idle += interval_s
        assert idle < 10_000.0

    # The times between looks are differences of large numbers, rounded each.
    assert idle > 300.0 - 2.0 * interval_s - 1e-6
