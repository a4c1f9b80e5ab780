"""The budget of requests to a W&B host."""

import pytest

from wtwin_adapters.wandb_api_budget import BURST, LONGEST_REST_S, PER_MINUTE, Budget
from wtwin_watch.testing import ManualClock


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def budget(clock):
    return Budget(PER_MINUTE, clock.monotonic, clock.advance)


def test_a_burst_goes_at_once_and_then_so_many_a_minute(budget, clock):
    began = clock.now
    for _ in range(BURST):
        assert budget.take(began)
    assert clock.now == began

    for _ in range(int(PER_MINUTE)):
        assert budget.take(began + 120)
    assert clock.now - began == pytest.approx(60, abs=1)


def test_a_wait_beyond_the_time_there_is_is_not_begun(budget, clock):
    for _ in range(BURST):
        budget.take(clock.now)
    began = clock.now

    assert not budget.take(began + 0.1)
    assert clock.now == began


def test_when_the_time_is_over_nothing_is_sent(budget, clock):
    assert not budget.take(clock.now - 1)


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_honoured(budget, clock, status):
    assert budget.note(status, {"Retry-After": "7"}) == 7

    assert not budget.take(clock.now + 6)
    assert budget.take(clock.now + 8)


def test_a_rest_of_an_hour_is_cut_to_a_minute(budget, clock):
    assert budget.note(429, {"Retry-After": "3600"}) == LONGEST_REST_S == 60

    clock.advance(60)
    assert budget.take(clock.now)


@pytest.mark.parametrize("said", [{}, {"Retry-After": "Tue, 01 Dec 2026 10:00:00 GMT"}])
def test_too_many_requests_without_a_number_is_a_short_rest(budget, said):
    assert budget.note(429, said) == 5


def test_the_limit_that_a_host_counts_down_is_kept_before_it_is_reached(budget, clock):
    assert budget.note(200, {"RateLimit-Remaining": "500", "RateLimit-Reset": "30"}) == 0
    assert budget.note(200, {"RateLimit-Remaining": "10", "RateLimit-Reset": "30"}) == 30

    assert budget.rest_s == pytest.approx(30)
    assert not budget.take(clock.now + 29)


@pytest.mark.parametrize("said", ["", "nan", "soon", "-5"])
def test_headers_that_make_no_sense_make_no_rest(budget, said):
    assert budget.note(200, {"RateLimit-Remaining": "0", "RateLimit-Reset": said}) == 0


def test_requests_of_another_hand_are_counted(budget, clock):
    budget.spend(BURST + 4)

    assert not budget.take(clock.now + 1)
    assert budget.take(clock.now + 2)


def test_of_several_limits_the_least_counts(budget, clock):
    budget.limit(60)
    budget.limit(600)
    for _ in range(BURST):
        budget.take(clock.now)

    assert not budget.take(clock.now + 0.9)
    assert budget.take(clock.now + 1)
