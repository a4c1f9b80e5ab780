"""Reading on in a W&B history: new rows, rewinds, forks, exports, sparse steps."""

import math

import pytest

from tests.support.wandb_history import CREATED_UNIX, KeptHistory, Watcher, losses_of
from wtwin_adapters.wandb_api_history import COPIED, unix_time
from wtwin_watch.model import Restart


def rows(count, start=0.0):
    return [{"loss": start + n} for n in range(count)]


def test_what_is_new_costs_one_request_however_much_there_was():
    history = KeptHistory()
    history.log(*rows(5_000))
    watcher = Watcher(history)
    watcher.look()
    history.asked.clear()

    history.log(*rows(100, 7.0))
    (batch,) = watcher.look()

    assert len(batch.points) == 100
    assert history.asked == {"page": 1}
    assert watcher.losses() == losses_of(history.rows)


def test_nothing_new_leaves_the_cursor_as_it_is():
    history = KeptHistory()
    history.log(*rows(10))
    watcher = Watcher(history)
    watcher.look()
    before = watcher.cursor

    (batch,) = watcher.look()

    assert not batch.points
    assert batch.cursor == before


def test_a_run_that_has_logged_nothing_has_no_points_yet():
    history = KeptHistory()
    watcher = Watcher(history)
    assert [batch.points for batch in watcher.look()] == [[]]

    history.log(*rows(3))
    watcher.look()

    assert watcher.losses() == [(0, 0), (1, 1), (2, 2)]


def test_a_thousand_rows_over_ten_million_steps_take_few_requests():
    history = KeptHistory()
    history.log(*rows(1_000), gap=10_000)
    watcher = Watcher(history)
    watcher.look()

    assert len(watcher.losses()) == 1_000
    assert history.asked["page"] < 30


def test_after_a_rewind_the_run_goes_on_from_there():
    history = KeptHistory()
    history.log(*rows(1_200))
    watcher = Watcher(history)
    watcher.look()

    history.rewind(599)
    assert all(not batch.points for batch in watcher.look())
    history.log(*rows(50, 7.0))
    (batch,) = watcher.look()

    assert batch.restart == Restart("steps go back from 1199 to 600", 600.0)
    assert watcher.losses() == losses_of(history.rows)


def test_a_rewind_that_was_overtaken_since_is_seen():
    history = KeptHistory()
    history.log(*rows(1_200))
    watcher = Watcher(history)
    watcher.look()

    history.rewind(899)
    history.log(*rows(2_500, 7.0))
    watcher.look()

    assert [b.restart.step for b in watcher.batches if b.restart] == [900.0]
    assert watcher.losses() == losses_of(history.rows)


def test_a_rewind_costs_what_was_logged_since():
    history = KeptHistory()
    history.log(*rows(30_000))
    watcher = Watcher(history, limit=50_000)
    watcher.look()
    history.asked.clear()

    history.rewind(29_000)
    history.log(*rows(100, 7.0))
    watcher.look()

    assert history.asked["page"] <= 4
    assert watcher.losses() == losses_of(history.rows)


def test_a_rewind_of_rows_without_times_reads_the_run_again():
    history = KeptHistory()
    history.log(*({"loss": 1.0, "_timestamp": None} for _ in range(100)))
    watcher = Watcher(history)
    watcher.look()

    history.rewind(49)
    history.log({"loss": 2.0, "_timestamp": None})
    watcher.look()

    assert [b.restart.step for b in watcher.batches if b.restart] == [0.0]
    assert watcher.losses() == losses_of(history.rows)


def test_a_run_that_resumes_goes_on():
    history = KeptHistory()
    history.log(*rows(100))
    watcher = Watcher(history, running=False)
    watcher.look()

    watcher.running = True
    history.log(*rows(100, 7.0))
    watcher.look()

    assert not any(batch.restart for batch in watcher.batches)
    assert watcher.losses() == losses_of(history.rows)


def test_rows_that_a_fork_copied_from_its_parent_are_passed_over():
    history = KeptHistory()
    history.log(*({"loss": math.nan, "_timestamp": CREATED_UNIX - 3_600} for _ in range(500)))
    history.log(*rows(20))
    watcher = Watcher(history)
    watcher.look()

    assert watcher.losses() == losses_of(history.rows)[500:]
    assert watcher.skipped == {COPIED: 500}


def test_a_fork_without_rows_of_its_own_has_no_points_yet():
    history = KeptHistory()
    history.log(*({"loss": math.nan, "_timestamp": CREATED_UNIX - 3_600} for _ in range(500)))
    watcher = Watcher(history)
    watcher.look()
    assert watcher.points == []

    history.log(*rows(20))
    watcher.look()
    assert watcher.losses() == losses_of(history.rows)[500:]


def test_an_offline_run_that_was_sent_later_is_no_fork():
    history = KeptHistory()
    history.log(*({"loss": 1.0, "_timestamp": CREATED_UNIX - 3_600} for _ in range(500)))
    watcher = Watcher(history, running=False)
    watcher.look()

    assert len(watcher.losses()) == 500


def test_of_a_machine_whose_clock_is_behind_only_what_was_there_at_first_is_passed_over():
    history = KeptHistory()
    history.log(*({"loss": 1.0, "_timestamp": CREATED_UNIX - 3_600} for _ in range(10)))
    watcher = Watcher(history)
    watcher.look()

    history.log(*({"loss": 2.0, "_timestamp": CREATED_UNIX - 3_500} for _ in range(10)))
    watcher.look()

    assert watcher.losses() == losses_of(history.rows)[10:]


def test_exported_rows_are_read_by_the_client_and_new_ones_are_not():
    history = KeptHistory()
    history.log(*rows(3_000))
    history.export()
    history.log(*rows(10, 7.0))
    watcher = Watcher(history)
    watcher.look()
    assert watcher.losses() == losses_of(history.rows)
    history.asked.clear()

    history.log(*rows(10, 8.0))
    watcher.look()

    assert watcher.losses() == losses_of(history.rows)
    assert history.asked == {"page": 1}


@pytest.mark.parametrize("new", [0, 50])
def test_rows_that_are_exported_between_two_polls_are_not_taken_for_a_rewind(new):
    history = KeptHistory()
    history.log(*rows(100))
    watcher = Watcher(history)
    watcher.look()

    history.log(*rows(new, 7.0))
    history.export()
    history.log(*rows(new, 8.0))
    watcher.look()

    assert not any(batch.restart for batch in watcher.batches)
    assert watcher.losses() == losses_of(history.rows)


def test_another_run_under_the_same_id_is_read_anew():
    history = KeptHistory()
    history.log(*rows(100))
    watcher = Watcher(history)
    watcher.look()

    history.rewind(-1)
    history.created = "2026-11-30T12:00:01"
    history.log(*rows(100, 7.0))
    watcher.look()

    assert [b.restart for b in watcher.batches if b.restart] == [
        Restart("another run was logged under the same id", None)
    ]
    assert watcher.losses() == losses_of(history.rows)


def test_where_no_more_requests_may_be_sent_reading_goes_on_later():
    history = KeptHistory()
    history.log(*rows(300), gap=1_000_000)
    history.leaves = 8
    watcher = Watcher(history, limit=100)

    assert len(watcher.look()) > 10
    assert len(watcher.losses()) == 300


def test_points_say_where_reading_stands_and_what_steps_are():
    history = KeptHistory()
    history.log(*rows(3))

    (batch,) = Watcher(history).look()

    assert (batch.position, batch.step_name) == ("step 2", "_step")


@pytest.mark.parametrize(
    ("text", "unix"),
    [
        ("2026-11-30T12:00:00", CREATED_UNIX),
        ("2026-11-30T12:00:00Z", CREATED_UNIX),
        ("2026-11-30T13:00:00+01:00", CREATED_UNIX),
        ("2026-11-30T12:00:00.5", CREATED_UNIX + 0.5),
        ("soon", None),
        (None, None),
    ],
)
def test_times_are_utc_unless_they_say_otherwise(text, unix):
    assert unix_time(text) == unix
