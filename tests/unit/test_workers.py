"""The threads that talk to sources: those that hang are given up, and come back when they can."""

import threading
import time

from wtwin_watch.ingest.workers import MOST_GIVEN_UP, Workers


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_pool_in_which_everything_hung_works_again_when_the_source_does():
    now = [0.0]
    outcomes = []
    started = threading.Semaphore(0)
    answer = threading.Event()
    workers = Workers("mount", 4, outcomes.append, lambda: now[0])

    def hang():
        started.release()
        answer.wait(30)

    while not workers.exhausted:
        for _ in range(4):
            workers.submit(hang)
        for _ in range(4):
            assert started.acquire(timeout=20)
        now[0] += 61
        assert len(workers.give_up(60)) == 4
    answer.set()
    wait_until(lambda: not workers.exhausted)
    ticket = workers.submit(lambda: "seen")
    wait_until(lambda: outcomes)

    assert [(outcome.ticket, outcome.value) for outcome in outcomes] == [(ticket, "seen")]
    workers.close()


def test_hung_threads_are_replaced_up_to_a_limit():
    now = [0.0]
    started = []
    answer = threading.Event()
    workers = Workers("mount", 1, lambda outcome: None, lambda: now[0])
    for n in range(MOST_GIVEN_UP + 1):
        workers.submit(lambda: (started.append(1), answer.wait(30)))
        wait_until(lambda n=n: len(started) == n + 1)
        now[0] += 61
        workers.give_up(60)
    workers.submit(lambda: started.append(1))

    assert workers.exhausted
    assert len(started) == MOST_GIVEN_UP + 1
    answer.set()
    wait_until(lambda: len(started) == MOST_GIVEN_UP + 2)
    workers.close()
