"""Rows of JSON Lines logs."""

import json
import math

import pytest

from tests.support.writers import Log, skipped_of, values
from wtwin_watch.model import Point


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path / "run.jsonl")


def test_each_line_is_a_row(log):
    log.write('{"step": 1, "loss": 0.5, "lr": 1}\n{"step": 2, "lr": 0.1, "loss": 0.25}\n')

    (batch,) = log.read()

    assert batch.points == [
        Point("loss", 1.0, 0.5),
        Point("lr", 1.0, 1.0),
        Point("lr", 2.0, 0.1),
        Point("loss", 2.0, 0.25),
    ]
    assert (batch.step_name, batch.position) == ("step", "row 2")


def test_nested_objects_are_joined_by_slashes(log):
    log.write('{"step": 1, "train": {"loss": 0.5, "more": {"x": 1}}, "eval": {"loss": 0.75}}\n')

    assert sorted(log.points()) == [Point("eval/loss", 1.0, 0.75), Point("train/loss", 1.0, 0.5)]


def test_nan_and_infinity_are_points_however_they_are_written(log):
    values = ["NaN", '"NaN"', "Infinity", "-Infinity", '"inf"', "1e999"]
    log.write("".join(f'{{"step": {i}, "loss": {v}}}\n' for i, v in enumerate(values)))

    losses = [value for _, value in log.losses()]

    assert [math.isnan(v) for v in losses] == [True, True, False, False, False, False]
    assert losses[2:] == [math.inf, -math.inf, math.inf, math.inf]


def test_a_number_in_quotes_is_a_number_and_null_is_missing(log):
    log.write('{"step": "1", "loss": "0.5"}\n{"step": 2, "loss": null}\n{"step": 3, "loss": ""}\n')

    batches = log.read()

    assert values(batches) == [Point("loss", 1.0, 0.5)]
    assert skipped_of(batches) == {}


@pytest.mark.parametrize("value", ["true", "[0.5]", '"high"', "1" + "0" * 400])
def test_a_value_that_is_no_number_is_skipped_and_counted(log, value):
    log.write(f'{{"step": 1, "loss": 0.5}}\n{{"step": 2, "loss": {value}}}\n')

    batches = log.read()

    assert [p.step for p in values(batches)] == [1.0]
    assert skipped_of(batches) == {"not a number": 1}


def test_lines_that_are_no_objects_are_skipped_and_counted(log):
    log.write('{"step": 1, "loss": 0.5}\nnot json\n[1, 2]\n\n{"step": 2, "loss"\n7\n')

    batches = log.read()

    assert [p.step for p in values(batches)] == [1.0]
    assert skipped_of(batches) == {"bad JSON": 2, "not an object": 2}


def test_two_objects_in_a_line_are_two_rows(log):
    log.write('{"step": 1, "loss": 0.5}{"step": 2, "loss": 0.25}\n{"step": 3, "loss": 0.125}\n')

    assert log.losses() == [(1.0, 0.5), (2.0, 0.25), (3.0, 0.125)]


def test_a_line_nested_beyond_reason_is_skipped(log):
    deep = '{"a":' * 20_000 + "1" + "}" * 20_000
    log.write(f'{{"step": 1, "loss": 0.5}}\n{deep}\n{{"step": 2, "loss": NaN}}\n')

    batches = log.read()

    assert [p.step for p in values(batches)] == [1.0, 2.0]
    assert skipped_of(batches) == {"bad JSON": 1}


def test_the_step_is_settled_by_the_first_row_with_a_loss(log):
    log.write('{"batch": 64, "lr": 0.1, "seed": 1}\n{"iteration": 10, "loss": 0.5}\n')

    batches = log.read()

    assert batches[0].points == [Point("loss", 10.0, 0.5)]
    assert batches[0].step_name == "iteration"
    assert skipped_of(batches) == {"no loss column": 1}


def test_a_later_row_without_the_step_is_skipped_and_counted(log):
    log.write('{"step": 1, "loss": 0.5}\n{"epoch": 1, "val_loss": 0.7}\n{"epoch": 2}\n')

    batches = log.read()

    assert batches[0].points == [Point("loss", 1.0, 0.5)]
    assert skipped_of(batches) == {"no step": 1}


def test_without_a_step_rows_are_counted(log):
    log.write('{"loss": 0.5}\n{"loss": 0.25}\n')

    assert log.losses() == [(1.0, 0.5), (2.0, 0.25)]


def test_training_and_validation_rows_may_alternate(log):
    rows = []
    for i in range(20):
        rows += [f'{{"step": {i}, "loss": {i / 4}}}', f'{{"step": {i}, "eval_loss": {i / 2}}}']
    log.write("\n".join(rows) + "\n")

    points = log.points()

    assert points[:2] == [Point("loss", 0.0, 0.0), Point("eval_loss", 0.0, 0.0)]
    assert len(points) == 40


def test_a_byte_order_mark_is_no_part_of_the_first_row(log):
    log.write(b'\xef\xbb\xbf{"step": 1, "loss": 0.5}\n')

    assert log.losses() == [(1.0, 0.5)]


def test_bytes_that_are_no_utf8_make_a_bad_line_and_no_more(log):
    log.write(b'{"step": 1, "note": "\xff\xfe", "loss": 0.5}\n{"step": 2, "loss": 0.25}\n')

    batches = log.read()

    assert [p.step for p in values(batches)] == [2.0]
    assert skipped_of(batches) == {"bad JSON": 1}


def test_json_lines_are_told_by_their_content(tmp_path):
    log = Log(tmp_path / "metrics.json")
    log.write('{"iteration": 19, "total_loss": 0.5}\n')

    assert log.losses("total_loss") == [(19.0, 0.5)]


def iterations(*rows):
    return "".join(
        json.dumps({"mode": mode, "epoch": epoch, "iter": i, "lr": 0.5, "loss": loss}) + "\n"
        for mode, epoch, i, loss in rows
    )


def test_iterations_that_begin_anew_each_epoch_are_counted_on(log):
    log.write('{"env_info": "", "seed": null}\n')
    log.write(iterations(("train", 1, 50, 4), ("train", 1, 100, 3), ("val", 1, 5000, 2.5)))
    log.write(iterations(("train", 2, 50, 2), ("train", 2, 100, 1)))

    batches = log.read()

    assert [batch.restart for batch in batches] == [None]
    losses = [p for p in values(batches) if p.metric != "lr"]
    # The row of validation counts its own data, 5,000 images.
    assert losses == [
        Point("loss", 50.0, 4.0),
        Point("loss", 100.0, 3.0),
        Point("val_loss", 100.0, 2.5),
        Point("loss", 150.0, 2.0),
        Point("loss", 200.0, 1.0),
    ]


def test_an_epoch_that_is_begun_again_is_a_restart_from_where_it_began(log):
    train = [("train", epoch, i, 1) for epoch in (1, 2, 3) for i in (50, 100)]
    log.write(iterations(*train, ("train", 2, 50, 9), ("train", 2, 100, 9), ("train", 3, 50, 9)))

    batches = log.read()

    (restart,) = [batch.restart for batch in batches if batch.restart]
    assert restart.step == 150
    assert [p.step for p in values(batches[1:]) if p.metric == "loss"] == [150, 200, 250]


def test_steps_that_go_on_over_epochs_stay_as_they_are(log):
    rows = [(epoch, 10.0 * epoch + i) for epoch in range(5) for i in range(10)]
    log.write("".join(f'{{"epoch": {e}, "step": {s}, "loss": 1.5}}\n' for e, s in rows))

    assert [p.step for p in log.points()] == [step for _, step in rows]
