"""What a row of W&B history means, and which points it makes."""

import math
from collections import Counter

import pytest

from wtwin_adapters.wandb_api_rows import Gatherer, Row, Taken, flat, rows_of
from wtwin_watch.metrics import Names
from wtwin_watch.model import ROW_LOGGED, Restart


def gathered(rows, names=None, limit=1_000, taken=None):
    sink = Gatherer(taken or Taken(), names or Names(), limit)
    for row in rows_of(rows, sink.skipped):
        if not sink.offer(row):
            break
    return sink


def said(sink):
    return [(point.metric, point.step, point.value) for point in sink.points]


def test_a_nan_is_a_nan_however_it_is_spelt():
    sink = gathered(
        [
            {"_step": 0, "loss": math.nan},
            {"_step": 1, "loss": "NaN"},
            {"_step": 2, "loss": "Infinity"},
            {"_step": 3, "loss": "-Infinity"},
        ]
    )

    values = [point.value for point in sink.points]
    assert math.isnan(values[0])
    assert math.isnan(values[1])
    assert values[2:] == [math.inf, -math.inf]


def test_a_null_is_a_missing_value_and_the_row_is_told_all_the_same():
    sink = gathered([{"_step": 0, "loss": 1}, {"_step": 1, "loss": None}])

    assert said(sink) == [("loss", 0.0, 1.0), (ROW_LOGGED, 1.0, 0.0)]


def test_whole_numbers_are_numbers_and_truths_and_texts_are_none():
    sink = gathered([{"_step": 0, "loss": 2, "lr": "fast", "grad_norm": True}])

    assert said(sink) == [("loss", 0.0, 2.0)]
    assert sink.skipped == {"not a number": 2}


def test_a_number_beyond_a_float_is_no_number():
    assert gathered([{"_step": 0, "loss": 10**400}]).skipped == {"not a number": 1}


def test_rows_may_lack_metrics():
    sink = gathered(
        [{"_step": 0, "loss": 1.0}, {"_step": 1, "val_loss": 2.0}, {"_step": 2, "images": 3}]
    )

    assert said(sink) == [("loss", 0.0, 1.0), ("val_loss", 1.0, 2.0), (ROW_LOGGED, 2.0, 0.0)]


def test_a_step_that_comes_twice_counts_once():
    sink = gathered(
        [{"_step": 5, "loss": 1.0}, {"_step": 4, "loss": 2.0}, {"_step": 5, "loss": 1.0}]
    )

    assert said(sink) == [("loss", 4.0, 2.0), ("loss", 5.0, 1.0)]


def test_rows_without_a_step_are_skipped_and_counted():
    assert gathered([{"loss": 1.0}, None, {"_step": "x"}]).skipped == {"row without a step": 3}


def test_the_time_of_a_row_is_its_points():
    (point,) = gathered([{"_step": 0, "_timestamp": 1.5e9, "loss": 1.0}]).points

    assert point.wall_time == 1.5e9


def test_nested_values_have_dotted_names_and_media_are_left_out():
    row = {"train": {"loss": 1, "deep": {"lr": 0.5}}, "hist": {"_type": "histogram", "bins": [1]}}

    assert flat(row) == {"train.loss": 1.0, "train.deep.lr": 0.5}


@pytest.mark.parametrize("key", ["trainer/global_step", "train/global_step", "global_step"])
def test_the_step_of_training_is_taken_where_a_trainer_logs_it(key):
    sink = gathered([{"_step": 0, "loss": 1.0, key: 500}, {"_step": 1, "loss": 1.0, key: 1_000}])

    assert said(sink) == [("loss", 500.0, 1.0), ("loss", 1_000.0, 1.0)]
    assert sink.taken.step_name == key


def test_the_users_own_step_goes_before_it():
    sink = gathered([{"_step": 0, "loss": 1.0, "global_step": 5, "n": 7}], Names(step="n"))

    assert said(sink) == [("loss", 7.0, 1.0)]


def test_rows_without_the_step_of_training_are_skipped_and_counted():
    sink = gathered([{"_step": 0, "loss": 1.0, "global_step": 5}, {"_step": 1, "loss": 1.0}])

    assert said(sink) == [("loss", 5.0, 1.0)]
    assert sink.skipped == {"no step": 1}


def test_rows_before_the_first_loss_are_counted():
    sink = gathered([{"_step": 0, "lr": 1.0}, {"_step": 1, "loss": 1.0}])

    assert said(sink) == [("loss", 1.0, 1.0)]
    assert sink.skipped == {"no loss column": 1}


def test_a_step_of_training_that_goes_back_restarts_the_run_there():
    rows = [{"_step": n, "loss": 1.0, "global_step": g} for n, g in enumerate((100, 200, 150, 200))]

    first = gathered(rows)
    assert [step for _, step, _ in said(first)] == [100.0, 200.0]
    assert first.full

    second = gathered(rows, taken=Taken.load(first.taken.dump()))
    assert second.restart == Restart("steps go back from 200 to 150", 150.0)
    assert [step for _, step, _ in said(second)] == [150.0, 200.0]


def test_a_row_larger_than_the_limit_is_given_in_parts():
    rows = [{"_step": 0, "loss": 1.0, "lr": 2.0, "val_loss": 3.0}]

    first = gathered(rows, limit=2)
    second = gathered(rows, limit=2, taken=Taken.load(first.taken.dump()))

    assert said(first) + said(second) == [
        ("loss", 0.0, 1.0),
        ("lr", 0.0, 2.0),
        ("val_loss", 0.0, 3.0),
    ]


def test_a_row_is_told_from_another_by_what_is_read_of_it():
    def digest(**values):
        (row,) = rows_of([{"_step": 1, "_timestamp": 5.0, **values}], Counter())
        return row.digest(Names())

    assert digest(loss=1) == digest(loss=1.0, lr=None, image="x")
    assert len({digest(loss=1), digest(loss=2), digest(), digest(lr=1)}) == 4


def test_steps_that_are_no_whole_numbers_are_in_order_too():
    assert [row.step for row in rows_of([{"_step": 1.5}, {"_step": 1}], Counter())] == [1.0, 1.5]
    assert Row(1.5, None, {}).step == 1.5
