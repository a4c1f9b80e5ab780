"""What rules find in the metrics of a run, and how findings that agree become one detection."""

import json
import math

import numpy as np
import pytest

from tests.support.classic_series import corpus
from tests.support.curves import healthy, rows, series, with_rise
from wtwin_watch.metrics import Names
from wtwin_watch.model import ROW_LOGGED, Detection, Family, Point, Severity
from wtwin_watch.monitor.board import Board
from wtwin_watch.monitor.options import ClassicOptions
from wtwin_watch.monitor.rules import Turn
from wtwin_watch.monitor.run import RunMonitor
from wtwin_watch.monitor.throughput import ThroughputRule
from wtwin_watch.monitor.zero import ZeroRule


def brief(detections):
    return [(d.kind, d.active, d.step) for d in detections]


# -- zero ----------------------------------------------------------------------------------------


def test_a_loss_of_exactly_zero_is_critical_at_the_third_point():
    losses = healthy(400)
    losses[300:310] = [0.0] * 10
    began, ended = RunMonitor().feed(series(losses))

    assert (began.family, began.kind, began.severity) == (Family.LOSS, "zero", Severity.CRITICAL)
    assert (began.step, began.onset_step, began.last_healthy_step) == (303, 301, 300)
    assert (began.observed, began.detector) == (0.0, "rule")
    assert began.expected == pytest.approx(2.17, abs=0.1)
    assert began.summary.startswith("Loss has been exactly 0 since step 301, though ")
    assert (ended.kind, ended.active, ended.step) == ("zero", False, 318)


def test_the_trend_does_not_follow_such_zeros():
    losses = healthy(400)
    losses[300:310] = [0.0] * 10
    with_zeros, without = RunMonitor(), RunMonitor()
    with_zeros.feed(series(losses))
    without.feed([p for p in series(losses) if p.value])
    pair = [monitor.snapshot()["loss"]["monitor"]["evidence"] for monitor in (with_zeros, without)]
    assert pair[0] == pair[1]


@pytest.mark.parametrize(
    "losses",
    [
        pytest.param([2.0 * math.exp(-i / 3) for i in range(200)] + [0.0] * 20, id="falls to zero"),
        pytest.param(
            [abs(x) for x in np.random.default_rng(0).normal(0, 1, 200)] + [0.0] * 20, id="near zero"
        ),
        pytest.param([float(x) for x in np.random.default_rng(0).normal(1, 1, 200)] + [0.0] * 20, id="signs"),
        pytest.param([round(0.03 + 0.01 * (i % 2), 2) for i in range(200)] + [0.0] * 5, id="rounded"),
        pytest.param([0.0] * 200, id="always"),
        pytest.param([0.0, *healthy(100), 0.0, 0.0, *healthy(10)], id="two"),
        pytest.param([*healthy(20), 0.0, 0.0, 0.0, 0.0], id="too early to say"),
    ],
)  # fmt: skip
def test_zeros_of_a_loss_that_is_near_zero_by_design_are_no_finding(losses):
    rule = ZeroRule()
    assert {rule.update(step, loss) for step, loss in enumerate(losses)} == {None}


# -- missing -------------------------------------------------------------------------------------


def test_a_loss_that_is_missing_while_rows_go_on_is_told_by_the_twenty_first():
    losses = healthy(170)
    losses[100:160] = [None] * 60
    began, ended = RunMonitor().feed(rows(loss=losses, lr=[0.1] * 170))

    assert (began.family, began.kind, began.severity) == (
        Family.PROGRESS,
        "loss_missing",
        Severity.WARNING,
    )
    assert (began.step, began.last_healthy_step) == (121, 100)
    assert "The last 21 rows of the log hold no loss" in began.summary
    assert (ended.kind, ended.active, ended.step) == ("loss_missing", False, 161)


def test_a_loss_that_is_logged_rarely_by_design_is_not_missed():
    every_tenth = [loss if i % 10 == 0 else None for i, loss in enumerate(healthy(600))]
    assert RunMonitor().feed(rows(loss=every_tenth, lr=[0.1] * 600)) == []

    stopped = every_tenth[:400] + [None] * 200
    (missing,) = RunMonitor().feed(rows(loss=stopped, lr=[0.1] * 600))
    # The last loss is in row 391; five times the longest gap of 10 is 50.
    assert (missing.kind, missing.step) == ("loss_missing", 442)


def test_evaluations_at_their_own_pace_are_no_rows_without_a_loss():
    log = series(healthy(100)) + [Point("val_loss", 100.0 + 500 * i, 2.0) for i in range(1, 60)]
    assert RunMonitor().feed(log) == []


def test_a_log_that_stops_is_not_a_missing_loss():
    monitor = RunMonitor()
    assert monitor.feed(series(healthy(100))) == []
    assert monitor.flush() == []


def test_rows_without_any_value_count():
    log = series(healthy(100)) + [Point(ROW_LOGGED, 100.0 + i, 0.0) for i in range(1, 40)]
    assert brief(RunMonitor().feed(log)) == [("loss_missing", True, 121.0)]


def test_a_real_log_whose_nan_is_an_empty_cell_is_told():
    from wtwin_adapters.tabular import TabularSource
    from wtwin_watch.testing import points_of, read_on

    path = corpus() / "samples" / "algoperf_nan_as_blank.csv"
    source = TabularSource("x", TabularSource.Options(path=path))
    (run,) = source.runs()
    points = points_of(read_on(source, run, None))
    source.close()

    missing = [d for d in RunMonitor().feed(points) if d.kind == "loss_missing"]

    # The last loss is at step 19800, a row comes every 100 steps.
    assert brief(missing) == [("loss_missing", True, 21900.0)]


# -- gradient norm -------------------------------------------------------------------------------


def test_single_infinite_gradient_norms_are_no_finding():
    norms = [math.inf if i % 7 == 0 else 1.0 for i in range(400)]
    assert RunMonitor().feed(rows(loss=healthy(400), grad_norm=norms)) == []


def test_five_gradient_norms_in_a_row_that_are_not_finite_are_a_warning():
    norms = [1.0] * 100 + [math.inf] * 6 + [1.0] * 100
    began, ended = RunMonitor().feed(rows(loss=healthy(206), grad_norm=norms))
    assert (began.family, began.kind, began.severity, began.metric) == (
        Family.NONFINITE,
        "grad_nonfinite",
        Severity.WARNING,
        "grad_norm",
    )
    assert (began.step, began.onset_step, began.last_healthy_step) == (105, 101, 100)
    assert (ended.active, ended.step) == (False, 170)


def test_a_loss_scale_that_is_still_searched_for_is_no_finding():
    norms = [math.inf] * 40 + [1.0] * 100
    assert RunMonitor().feed(rows(loss=healthy(140), grad_norm=norms)) == []


def test_a_nan_of_the_loss_has_the_gradient_norm_as_its_witness():
    norms = [1.0] * 99 + [math.nan]
    (nan,) = RunMonitor().feed(rows(grad_norm=norms, loss=[*healthy(99), math.nan]))
    assert (nan.kind, nan.severity) == ("nonfinite", Severity.CRITICAL)
    assert nan.evidence == ("the gradient norm is not finite",)


def test_a_jump_of_the_gradient_norm_is_evidence_and_never_an_alert():
    chance = np.random.default_rng(0)
    norms = chance.lognormal(0.0, 0.2, 1600)
    norms[1499] = 30.0
    jumping = norms.tolist()
    assert RunMonitor().feed(rows(loss=healthy(1600), grad_norm=jumping)) == []

    losses = with_rise(healthy(1600), 1500, [0.4])
    spike, shift = RunMonitor().feed(rows(loss=losses, grad_norm=jumping))
    for one in (spike, shift):
        (text,) = one.evidence
        assert text.startswith("the gradient norm jumped at step 1500 to ")
    calm = chance.lognormal(0.0, 0.2, 1600).tolist()
    assert RunMonitor().feed(rows(loss=losses, grad_norm=calm))[0].evidence == ()


# -- validation loss -----------------------------------------------------------------------------


def overfitting(train_rises=False):
    count = 400
    val = with_rise(healthy(count, 1), 250, list(np.linspace(0, 0.6, 150)))
    train = np.array([3.0 - 0.002 * i for i in range(count)])
    if train_rises:
        train[250:] += np.linspace(0, 1.2, 150)
    train = train + np.random.default_rng(2).normal(0, 0.02, count)
    return rows(loss=train.tolist(), val_loss=val)


def test_a_validation_loss_that_rises_while_the_loss_falls_is_overfitting():
    (overfit,) = RunMonitor().feed(overfitting())
    assert (overfit.family, overfit.kind, overfit.severity, overfit.metric) == (
        Family.LOSS,
        "overfit",
        Severity.WARNING,
        "val_loss",
    )
    assert 250 < overfit.step < 330
    assert abs(overfit.onset_step - 250) < 40
    assert overfit.summary.startswith("Validation loss leaves its trend: since step ")
    assert "The training loss has fallen by 0." in overfit.summary


def test_a_rise_of_both_losses_is_one_detection_with_the_other_as_evidence():
    detections = RunMonitor().feed(overfitting(train_rises=True))
    assert {d.metric for d in detections} == {"loss"}
    assert "overfit" not in {d.kind for d in detections}
    assert any("Validation loss" in text for d in detections for text in d.evidence)


def test_a_healthy_validation_loss_is_no_finding():
    for seed in range(3):
        log = rows(loss=healthy(1500, seed), val_loss=healthy(1500, seed + 10))
        assert RunMonitor().feed(log) == []


# -- throughput ----------------------------------------------------------------------------------


def noise(kind, count, seed):
    chance = np.random.default_rng(seed)
    if kind == "calm":
        return np.exp(chance.normal(0, 0.1, count))
    if kind == "wild":
        return np.exp(chance.normal(0, 0.5, count))
    if kind == "dips":
        speed = np.exp(chance.normal(0, 0.05, count))
        for start in chance.integers(0, count, count // 300):
            speed[start : start + 10] *= 0.3
        return speed
    if kind == "waves":
        return (1 + 0.2 * np.sin(np.arange(count) / 300)) * np.exp(chance.normal(0, 0.05, count))
    wander = np.zeros(count)
    for i in range(1, count):
        wander[i] = 0.95 * wander[i - 1] + chance.normal(0, 0.15 * math.sqrt(1 - 0.95**2))
    return np.exp(wander)


@pytest.mark.parametrize("kind", ["calm", "wild", "dips", "waves", "wanders"])
@pytest.mark.parametrize("seed", range(3))
def test_noisy_throughput_is_no_finding(kind, seed):
    rule = ThroughputRule()
    assert {rule.update(i, v) for i, v in enumerate(noise(kind, 10_000, seed))} == {None}


@pytest.mark.parametrize("kind", ["calm", "wild", "dips"])
@pytest.mark.parametrize("seed", range(3))
def test_a_throughput_that_halves_is_found_within_a_hundred_points(kind, seed):
    rule = ThroughputRule()
    speed = noise(kind, 1500, seed)
    speed[1000:] *= 0.5
    (found,) = [i for i, v in enumerate(speed) if rule.update(i, v) is Turn.BEGAN]
    assert 1000 < found <= 1100
    assert abs(rule.onset - 1000) <= 24


def test_a_drop_of_the_throughput_is_a_warning_until_it_is_back():
    speed = [1000.0 + i % 7 for i in range(1000)]
    speed[480:720] = [400.0] * 240
    began, ended = RunMonitor().feed(rows(loss=healthy(1000), tokens_per_second=speed))
    assert (began.family, began.kind, began.severity, began.metric) == (
        Family.PROGRESS,
        "throughput_drop",
        Severity.WARNING,
        "tokens_per_second",
    )
    assert (began.step, began.onset_step, began.observed) == (552, 481, 400.0)
    assert began.expected == pytest.approx(1003.0)
    assert began.summary == "Throughput has been 400 since step 481, 40% of the usual 1003."
    assert (ended.active, ended.step) == (False, 768)
    assert ended.summary == "Throughput is 1003 again; it had been low since step 481."


def test_a_throughput_that_stays_low_is_usual_in_the_end():
    speed = [1000.0] * 480 + [400.0] * 2000
    rule = ThroughputRule()
    turns = [(i, turn) for i, v in enumerate(speed) if (turn := rule.update(i, v))]
    assert turns == [(551, Turn.BEGAN), (551 + 48 * 24, Turn.ENDED)]
    assert not rule.recovered


@pytest.mark.parametrize("odd", [math.nan, math.inf, -1.0])
def test_a_throughput_that_is_no_number_is_passed_over(odd):
    rule = ThroughputRule()
    assert {rule.update(i, odd) for i in range(1000)} == {None}


# -- all together --------------------------------------------------------------------------------


def found(kind, severity, active=True, family=Family.LOSS, step=1.0):
    return Detection(family, kind, active, severity, f"It is {kind}.", "rule", step=step)


def test_of_several_findings_the_gravest_speaks_and_the_others_are_its_evidence():
    board = Board()
    (first,) = board.take("rise", found("drift", Severity.WARNING))
    assert (first.kind, first.evidence) == ("drift", ())
    assert board.take("overfit", found("overfit", Severity.WARNING, step=2.0)) == []
    (graver,) = board.take("zero", found("zero", Severity.CRITICAL, step=3.0))
    assert (graver.kind, graver.evidence) == ("zero", ("It is drift.", "It is overfit."))
    (back,) = board.take("zero", found("zero", Severity.CRITICAL, active=False, step=4.0))
    assert (back.kind, back.active, back.step) == ("drift", True, 4.0)
    (other,) = board.take("rise", found("drift", Severity.INFO, active=False, step=5.0))
    assert (other.kind, other.active, other.step) == ("overfit", True, 5.0)
    (ended,) = board.take("overfit", found("overfit", Severity.INFO, active=False, step=6.0))
    assert (ended.active, ended.step) == (False, 6.0)


def test_what_was_never_told_has_no_end():
    assert Board().take("rise", found("spike", Severity.INFO, active=False)) == []


def test_families_do_not_mix():
    board = Board()
    assert len(board.take("rise", found("drift", Severity.WARNING))) == 1
    slow = found("throughput_drop", Severity.WARNING, family=Family.PROGRESS)
    assert len(board.take("throughput", slow)) == 1
    assert [d.family for d in board.end("The log starts anew.", 9.0)] == [
        Family.LOSS,
        Family.PROGRESS,
    ]
    assert board.end("again", 10.0) == []


def test_a_stored_board_goes_on():
    board = Board()
    board.take("rise", found("drift", Severity.WARNING))
    again = Board.restore(json.loads(json.dumps(board.snapshot())))
    assert again.snapshot() == board.snapshot()
    assert again.take("rise", found("drift", Severity.WARNING)) == []


def test_the_published_method_has_the_rules_beside_it():
    losses = [*healthy(300), *[0.0] * 10]
    speed = [1000.0] * 310
    monitor = RunMonitor(Names(), ClassicOptions())
    kinds = {d.kind for d in monitor.feed(rows(loss=losses, lr=[0.1] * 310, throughput=speed))}
    assert "zero" in kinds
