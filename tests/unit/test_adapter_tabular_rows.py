"""Rows of CSV logs: each odd thing a log may hold has a defined answer."""

import math

import pytest

from tests.support.writers import Log, skipped_of, values
from wtwin_watch.model import ROW_LOGGED, Point


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path / "run.csv")


def test_columns_are_found_by_name_wherever_they_stand(log):
    log.write("grad_norm,loss,samples,step\n1.5,3.25,64,10\n1.25,3.0,128,20\n")

    batch = log.read()[0]

    assert batch.points == [
        Point("grad_norm", 10.0, 1.5),
        Point("loss", 10.0, 3.25),
        Point("grad_norm", 20.0, 1.25),
        Point("loss", 20.0, 3.0),
    ]
    assert (batch.step_name, batch.position) == ("step", "row 2")


def test_columns_can_be_named_where_they_are_not_the_usual_ones(tmp_path):
    log = Log(tmp_path / "run.csv", step="it", loss="objective")
    log.write("it,objective,step\n7,0.5,1\n")

    assert log.points() == [Point("objective", 7.0, 0.5)]


def test_without_a_step_column_rows_are_counted_from_one(log):
    log.write("loss\n3.0\n2.0\n\n1.0\n")

    batches = log.read()

    assert [(p.step, p.value) for p in batches[0].points] == [(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]
    assert batches[0].step_name == "row number"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_taken_from_the_header(log, delimiter):
    log.write(f"step{delimiter}train loss{delimiter}note, or not\n1{delimiter}0.5{delimiter}x\n")

    assert log.losses("train loss") == [(1.0, 0.5)]


def test_a_decimal_comma_counts_only_between_semicolons(tmp_path):
    semicolons, commas = Log(tmp_path / "a.csv"), Log(tmp_path / "b.csv")
    semicolons.write("step;loss\n1;0,5\n2;1,25e-1\n")
    commas.write('step,loss\n1,"0,5"\n2,0.25\n')

    assert semicolons.losses() == [(1.0, 0.5), (2.0, 0.125)]
    batches = commas.read()
    assert [p.value for p in values(batches)] == [0.25]
    assert skipped_of(batches) == {"not a number": 1}


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_data(log):
    log.write(b"\xef\xbb\xbfstep,loss\r\n0,1.0\r\n1,0.5\r\n")

    assert log.losses() == [(0.0, 1.0), (1.0, 0.5)]


def test_a_name_in_utf8_is_a_name(tmp_path):
    log = Log(tmp_path / "run.csv", loss="perte d'entraînement")
    log.write("step,perte d'entraînement\n1,0.5\n")

    assert log.losses("perte d'entraînement") == [(1.0, 0.5)]


def test_blanks_around_names_and_cells_do_not_matter(log):
    log.write(" step , loss \n 1 ,  0.5 \n")

    assert log.losses() == [(1.0, 0.5)]


def test_an_empty_cell_is_no_point_and_no_nan(log):
    log.write("step,loss,val_loss\n1,0.5,\n1,,0.75\n2,0.25,\n")

    assert log.points() == [
        Point("loss", 1.0, 0.5),
        Point("val_loss", 1.0, 0.75),
        Point("loss", 2.0, 0.25),
    ]


def test_a_short_row_lacks_its_last_cells_and_a_long_one_has_too_many(log):
    log.write("step,loss,lr\n1,0.5\n2,0.25,0.1,7,8\n3,0.125,0.1\n")

    assert log.points() == [
        Point("loss", 1.0, 0.5),
        Point("loss", 2.0, 0.25),
        Point("lr", 2.0, 0.1),
        Point("loss", 3.0, 0.125),
        Point("lr", 3.0, 0.1),
    ]


@pytest.mark.parametrize(
    "cell", ["nan", "NaN", "-nan", "1.#IND", "-1.#IND00", "1.#QNAN", "nan(ind)"]
)
def test_nan_in_any_spelling_is_a_point(log, cell):
    log.write(f"step,loss\n1,0.5\n2,{cell}\n")

    (first, second) = log.losses()

    assert first == (1.0, 0.5)
    assert second[0] == 2.0
    assert math.isnan(second[1])


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        ("1.#INF", math.inf),
        ("-1.#INF00", -math.inf),
        ("1e999", math.inf),
    ],
)
def test_an_infinite_value_is_a_point(log, cell, value):
    log.write(f"step,loss\n1,{cell}\n")

    assert log.losses() == [(1.0, value)]


@pytest.mark.parametrize("cell", ["", "N/A", "NA", "null", "None", '""'])
def test_a_row_without_any_value_is_told_as_such(log, cell):
    log.write(f"step,loss,lr,note\n1,0.5,,x\n2,{cell},,x\n3,,0.1,x\n")

    (batch,) = log.read()

    assert batch.points == [
        Point("loss", 1.0, 0.5),
        Point(ROW_LOGGED, 2.0, 0.0),
        Point("lr", 3.0, 0.1),
    ]


@pytest.mark.parametrize("cell", ["", "N/A", "NA", "null", "None", '""'])
def test_a_missing_value_is_no_point(log, cell):
    log.write(f"step,loss\n1,{cell}\n2,0.5\n")

    batches = log.read()

    assert [p.step for p in values(batches)] == [2.0]
    assert skipped_of(batches) == {}


@pytest.mark.parametrize("cell", ["tensor(1.0)", "1_000", "True", "1,5", "\u0661", "0x10", "1.2.3"])
def test_a_cell_that_is_no_number_is_skipped_and_counted(log, cell):
    log.write(f'step,loss\n1,0.5\n2,"{cell}"\n3,0.25\n')

    batches = log.read()

    assert [p.step for p in values(batches)] == [1.0, 3.0]
    assert skipped_of(batches) == {"not a number": 1}


def test_a_row_without_a_step_is_skipped_and_counted(log):
    log.write("step,loss\n1,0.5\n,0.4\nnan,0.3\nx,0.2\n2,0.25\n")

    batches = log.read()

    assert [p.step for p in values(batches)] == [1.0, 2.0]
    assert skipped_of(batches) == {"no step": 1, "step is not a number": 2}


def test_a_header_again_starts_a_segment_with_its_own_columns(log):
    log.write("step,loss\n1,0.5\nlr,step,loss\n0.1,2,0.25\n")

    assert log.points() == [Point("loss", 1, 0.5), Point("lr", 2, 0.1), Point("loss", 2, 0.25)]


def test_a_segment_may_have_another_delimiter(log):
    log.write("step,loss\n1,0.5\nstep;loss\n2;0.25\n")

    assert log.losses() == [(1.0, 0.5), (2.0, 0.25)]


def test_steps_that_go_back_are_a_restart_from_there(log):
    log.write("step,loss\n1,0.5\n2,0.4\n3,0.3\nstep,loss\n2,0.35\n3,0.25\n")

    first, second = log.read()

    assert [p.step for p in first.points] == [1.0, 2.0, 3.0]
    assert second.restart is not None
    assert (second.restart.step, second.restart.reason) == (2.0, "steps go back from 3 to 2")
    assert [p.step for p in second.points] == [2.0, 3.0]


def test_equal_steps_and_a_late_validation_row_are_no_restart(log):
    log.write("step,loss,val_loss\n1,0.5,\n1,0.6,\n2,0.4,\n1,,0.7\n3,0.3,\n")

    (batch,) = log.read()

    assert batch.restart is None
    assert [(p.metric, p.step) for p in batch.points] == [
        ("loss", 1.0),
        ("loss", 1.0),
        ("loss", 2.0),
        ("val_loss", 1.0),
        ("loss", 3.0),
    ]


def test_negative_and_huge_steps_are_steps(log):
    log.write(f"step,loss\n-5,1.0\n{2**40},0.5\n")

    assert log.losses() == [(-5.0, 1.0), (2.0**40, 0.5)]


def test_quoted_cells_may_hold_the_delimiter_and_line_breaks(log):
    log.write('name,step,loss\n"a, b",1,0.5\n"two\nlines",2,0.25\n"say ""x""",3,0.125\n')

    assert log.losses() == [(1.0, 0.5), (2.0, 0.25), (3.0, 0.125)]


def test_an_open_quote_waits_for_its_end(log):
    log.write('name,step,loss\na,1,0.5\n"two\n')
    assert log.losses() == [(1.0, 0.5)]

    log.write('lines",2,0.25\n')

    assert log.losses() == [(2.0, 0.25)]


def test_a_stray_quote_does_not_swallow_the_rows_that_follow(log):
    rows = "".join(f"{i},{i / 100},{chr(34) if i == 3 else 'x'}\n" for i in range(100))
    log.write("step,loss,note\n" + rows)

    assert [step for step, _ in log.losses()] == [float(i) for i in range(100)]


def test_zero_bytes_around_a_row_do_not_matter(log):
    log.write(b"step,loss\n1,0.5\n\0\0\0\0" + b"2,0.25\n\0\0\n3,0.125\n")

    assert log.losses() == [(1.0, 0.5), (2.0, 0.25), (3.0, 0.125)]


def test_a_line_over_a_mebibyte_is_skipped_and_counted(log):
    log.write(b"step,loss,note\n1,0.5,a\n2,0.4," + b"x" * (1 << 20) + b"\n3,0.3,b\n")

    batches = log.read()

    assert [p.step for batch in batches for p in batch.points] == [1.0, 3.0]
    assert skipped_of(batches) == {"line too long": 1}


def test_a_long_line_under_a_mebibyte_is_read(log):
    log.write(b"step,loss,note\n1,0.5,a\n2,0.4," + b"x" * 700_000 + b"\n3,0.3,b\n")

    assert [step for step, _ in log.losses()] == [1.0, 2.0, 3.0]


def test_a_log_without_a_loss_gives_no_points_but_says_so(log):
    log.write("step,accuracy\n1,0.5\n2,0.6\n")

    batches = log.read()

    assert batches[0].points == []
    assert skipped_of(batches) == {"no loss column": 2}


def test_numbers_without_a_header_give_no_points_but_say_so(log):
    log.write("1,0.5\n2,0.4\n")

    assert skipped_of(log.read()) == {"no header": 2}


def test_a_line_of_prose_before_the_header_does_not_hide_it(log):
    log.write("# made by train.py\nstep,loss\n1,0.5\n")

    assert log.losses() == [(1.0, 0.5)]


def test_a_commented_header_is_a_header(log):
    log.write("# step,loss\n1,0.5\n")

    assert log.losses() == [(1.0, 0.5)]


def test_a_row_is_read_where_the_limit_is_smaller_than_its_points(log):
    log.write("step,loss,lr,grad_norm\n1,0.5,0.1,2\n2,0.4,0.1,3\n")

    batches = log.read(limit=2)

    assert [len(batch.points) for batch in batches] == [2, 1, 2, 1]
    assert [(p.metric, p.step) for batch in batches for p in batch.points] == [
        ("loss", 1.0),
        ("lr", 1.0),
        ("grad_norm", 1.0),
        ("loss", 2.0),
        ("lr", 2.0),
        ("grad_norm", 2.0),
    ]


def test_steps_within_epochs_are_counted_on_in_a_table(log):
    rows = [(epoch, batch) for epoch in (0, 1, 2) for batch in range(0, 400, 4)]
    log.write("epoch,batch,loss\n" + "".join(f"{e},{b},0.5\n" for e, b in rows))

    # Counted from 0 and four apart, an epoch of a hundred rows has 400 batches.
    assert [step for step, _ in log.losses()] == [400.0 * e + b for e, b in rows]
