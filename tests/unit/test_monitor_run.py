"""What the monitor of one run makes of its points, with the published method."""

import json
import math
from pathlib import Path

import pytest

from tests.support.classic_series import clean
from wtwin_watch.errors import SnapshotError
from wtwin_watch.metrics import Names, Role
from wtwin_watch.model import Family, Point, Severity
from wtwin_watch.monitor import WTwinMonitor
from wtwin_watch.monitor.options import ClassicOptions, TrendOptions
from wtwin_watch.monitor.run import RunMonitor

STORED = Path(__file__).parents[1] / "stored"


def classic(names=Names(), history_limit=0):  # noqa: B008 - frozen
    return RunMonitor(names, ClassicOptions(), history_limit)


def points(losses, first=1, metric="loss"):
    return [Point(metric, float(step), loss) for step, loss in enumerate(losses, first)]


def risen(steps=(301, 330), until=400):
    losses = clean(until)
    return [loss + 0.5 * (steps[0] <= step <= steps[1]) for step, loss in enumerate(losses, 1)]


def test_a_drift_begins_and_ends_once_with_its_numbers():
    reference = WTwinMonitor(warmup_steps=100)
    states = [reference.update(step, loss) for step, loss in enumerate(risen(), 1)]
    on = next(state for state in states if state.alert)
    off = next(state for state in states[int(on.step) :] if not state.alert)

    began, ended = classic().feed(points(risen()))

    assert (began.family, began.kind, began.active) == (Family.LOSS, "drift", True)
    assert (began.severity, began.metric, began.detector) == (Severity.WARNING, "loss", "classic")
    assert (began.step, began.onset_step, began.last_healthy_step) == (305, 301, 300)
    assert (began.observed, began.expected, began.score) == (on.l_obs, on.l_pred, on.W)
    assert began.sigma == pytest.approx((on.l_obs - on.l_pred) / on.D)
    assert began.summary == (
        f"Loss {on.l_obs:.4g} is {on.D:.3g} sigma above its forecast of {on.l_pred:.4g},"
        f" and has been too high since step 301 (W = {on.W:.3g})."
    )
    assert (ended.active, ended.kind, ended.step, ended.onset_step) == (
        False,
        "drift",
        off.step,
        301,
    )
    assert "it had been too high since step 301" in ended.summary


def test_a_short_rise_is_no_drift():
    assert classic().feed(points(risen((301, 304)))) == []


def test_a_nan_is_critical_and_ends_after_64_finite_losses():
    losses = clean(400)
    losses[150] = math.nan
    losses[153] = math.inf

    began, ended = classic().feed(points(losses))

    assert (began.family, began.kind, began.severity) == (
        Family.NONFINITE,
        "nonfinite",
        Severity.CRITICAL,
    )
    assert (began.step, began.onset_step, began.last_healthy_step) == (151, 151, 150)
    assert began.summary == "Loss is NaN at step 151; the last finite one was at step 150."
    assert began.observed is None
    assert began.expected is None
    assert (ended.active, ended.step, ended.observed) == (False, 218, losses[217])
    assert ended.summary == (
        "Loss has been finite for 64 points in a row; it was NaN or infinite in 2 points"
        " from step 151 to 154."
    )


def test_the_forecast_is_told_with_a_nan_where_there_is_one():
    (began,) = classic().feed(points([*clean(250), math.inf]))
    assert began.summary == "Loss is infinite at step 251; the last finite one was at step 250."
    assert began.expected == pytest.approx(2 * 251**-0.5 + 0.1, rel=0.5)
    assert began.sigma == pytest.approx(0.02, rel=0.8)


def test_a_nan_does_not_end_a_drift():
    losses = risen((301, 320))
    for at in (305, 310, 315):
        losses[at] = math.nan
    detections = classic().feed(points(losses))
    assert [(d.family, d.active, d.step) for d in detections] == [
        (Family.LOSS, True, 305),
        (Family.NONFINITE, True, 306),
        (Family.LOSS, False, 321),
        (Family.NONFINITE, False, 380),
    ]


def test_a_healthy_run_gives_nothing():
    assert [classic().feed(points(clean(2000, seed))) for seed in range(5)] == [[]] * 5


def test_the_loss_is_the_best_known_of_the_first_full_row():
    rows = [
        Point(name, float(step), value)
        for step in range(1, 4)
        for name, value in (
            ("total_loss", 5.0),
            ("lr", 1e-3),
            ("train_loss", 2.0),
            ("val_loss", 3.0),
        )
    ]
    monitor = classic()
    monitor.feed(rows[:4])
    assert (monitor.points, monitor.roles) == (
        0,
        {Role.LR: "lr", Role.VAL_LOSS: "val_loss"},
    )
    assert monitor.status == "no loss seen yet"
    monitor.feed(rows[4:5])
    assert monitor.roles[Role.LOSS] == "train_loss"
    assert (monitor.points, monitor.last_step, monitor.last_loss) == (1, 1.0, 2.0)
    monitor.feed(rows[5:])
    assert monitor.points == 3


def test_a_better_known_loss_that_comes_later_changes_nothing():
    monitor = classic()
    monitor.feed([*points([2.0, 1.9]), *points([9.0, 9.0], metric="train_loss")])
    assert (monitor.roles[Role.LOSS], monitor.points) == ("loss", 2)


def test_a_name_that_was_given_is_followed_at_once():
    monitor = classic(Names(loss="objective"))
    monitor.feed([Point("loss", 1.0, 9.0), Point("objective", 1.0, 2.0)])
    assert (monitor.points, monitor.last_loss, monitor.roles) == (1, 2.0, {Role.LOSS: "objective"})


def test_a_name_that_was_given_and_never_comes_has_no_role():
    monitor = classic(Names(loss="objective"))
    monitor.feed(points([2.0, 1.9]))
    assert (monitor.points, monitor.roles) == (0, {})
    assert monitor.flush() == []


def test_a_log_of_one_row_is_judged_at_its_end():
    monitor = classic()
    assert monitor.feed([Point("loss", 1.0, math.nan), Point("lr", 1.0, 1e-3)]) == []
    (began,) = monitor.flush()
    assert (began.family, began.step) == (Family.NONFINITE, 1.0)
    assert monitor.flush() == []


def test_a_point_that_repeats_the_one_before_is_dropped():
    monitor = classic()
    monitor.feed([point for point in points([2.0, math.nan, 1.9]) for _ in range(3)])
    # The choice needs a second point of the loss: of six held and repeated ones three remain.
    assert monitor.points == 3


def test_a_point_without_a_step_is_judged_at_the_step_before():
    monitor = classic(Names(loss="loss"))
    (began,) = monitor.feed([*points([2.0, 1.9]), Point("loss", math.nan, math.nan)])
    assert (began.step, began.onset_step, monitor.last_step) == (2.0, 2.0, 2.0)


def test_a_log_that_starts_anew_ends_what_is_open_and_forgets_all():
    losses = risen((301, 400))
    losses[-1] = math.nan
    monitor = classic()
    monitor.feed(points(losses, metric="train_loss"))

    ended = monitor.restart(None, "the file was replaced")

    assert [(d.family, d.active) for d in ended] == [
        (Family.NONFINITE, False),
        (Family.LOSS, False),
    ]
    assert all("the file was replaced" in d.summary for d in ended)
    assert (monitor.points, monitor.last_step, monitor.last_loss, monitor.roles) == (
        0,
        None,
        None,
        {},
    )
    fresh = classic()
    assert monitor.feed(points(risen())) == fresh.feed(points(risen()))
    assert monitor.snapshot() == fresh.snapshot()


def test_a_log_that_starts_anew_with_nothing_open_says_nothing():
    monitor = classic()
    monitor.feed(points(clean(300)))
    assert monitor.restart(None, "truncated") == []


def test_a_rewind_keeps_the_alert_open_until_the_repeated_stretch_turns_out_well():
    monitor = classic()
    (began,) = monitor.feed(points(risen((301, 320), until=320)))
    assert monitor.restart(280, "steps go back") == []
    (ended,) = monitor.feed(points(clean(400)[279:], first=280))
    assert (began.step, ended.active, ended.step) == (305, False, 280)


def test_a_rewind_before_the_fit_counts_no_step_twice():
    monitor, straight = classic(), classic()
    straight.feed(points(clean(205)))
    monitor.feed(points(clean(160)))
    monitor.restart(101, "steps go back")
    monitor.feed(points(clean(205)[100:], first=101))
    assert monitor.ready
    assert monitor.snapshot()["loss"]["monitor"] == straight.snapshot()["loss"]["monitor"]


def test_a_rewind_before_the_choice_holds_no_point_twice():
    monitor = classic()
    monitor.feed([Point("loss", 1.0, 9.0)])
    monitor.restart(1, "steps go back")
    monitor.feed([Point("loss", 1.0, 2.0), Point("train_loss", 1.0, 3.0), Point("loss", 2.0, 1.9)])
    assert monitor.roles[Role.LOSS] == "train_loss"


def test_settings_that_cannot_be_are_refused_where_they_are_made():
    with pytest.raises(ValueError, match="tau"):
        ClassicOptions(tau=0)


def test_new_settings_apply_to_what_was_learned():
    monitor = classic()
    monitor.feed(points(clean(300)))
    strict = RunMonitor.restore(monitor.snapshot(), Names(), ClassicOptions(alpha=1e3))
    rise = points(risen((301, 320), until=320)[300:], first=301)
    assert strict.feed(rise) == []
    assert len(monitor.feed(rise)) == 1


def test_a_state_about_another_loss_is_refused():
    monitor = classic()
    monitor.feed(points(clean(10)))
    with pytest.raises(SnapshotError, match="objective"):
        RunMonitor.restore(monitor.snapshot(), Names(loss="objective"), ClassicOptions())
    again = RunMonitor.restore(monitor.snapshot(), Names(loss="loss"), ClassicOptions())
    assert again.points == 10


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1},
        {"version": 3},
        {"version": None},
        {"detector": "other"},
        {"detector": "trend"},
        {"choice": None},
        {"loss": None},
        {"loss": {"monitor": {"version": 9}}},
        {"board": {}},
        {"zero": {}},
        {"nonfinite": {}},
        {"last": "?"},
        {"last": 5},
    ],
)
def test_a_state_of_another_form_is_refused(change):
    state = classic().snapshot() | change
    with pytest.raises(SnapshotError):
        RunMonitor.restore(state, Names(), ClassicOptions())


def test_the_state_stays_small():
    monitor = classic()
    sizes = []
    for first in range(0, 5000, 500):
        monitor.feed(points(clean(5000)[first : first + 500], first=first + 1))
        sizes.append(len(json.dumps(monitor.snapshot(), allow_nan=False)))
    # Bytes; growing only while the forecast isn't fitted, that is, up to step 200 here.
    assert max(sizes) < 4500
    assert max(sizes) - min(sizes) < 400


def test_a_state_of_the_first_form_goes_on():
    """Stored by the first version after 320 of 400 points, with a drift and a NaN open."""
    stored = json.loads((STORED / "run_monitor_1_classic.json").read_text())
    monitor = RunMonitor.restore(stored, Names(), ClassicOptions())
    assert (monitor.points, monitor.last_step, monitor.roles) == (
        320,
        320.0,
        {Role.LOSS: "loss", Role.LR: "lr"},
    )

    ended = monitor.feed(points(risen()[320:], first=321))

    # As the first version went on itself.
    assert [(d.family, d.kind, d.active, d.step) for d in ended] == [
        (Family.LOSS, "drift", False, 327.0),
        (Family.NONFINITE, "nonfinite", False, 374.0),
    ]
    again = RunMonitor.restore(monitor.snapshot(), Names(), ClassicOptions())
    assert again.snapshot() == monitor.snapshot()


def test_a_state_of_the_first_form_is_none_of_the_trend_detector():
    stored = json.loads((STORED / "run_monitor_1_classic.json").read_text())
    with pytest.raises(SnapshotError, match="detector 'classic'"):
        RunMonitor.restore(stored, Names(), TrendOptions())


@pytest.mark.parametrize(
    ("held", "roles", "told"),
    [
        ([], {}, []),
        ([Point("loss", 1.0, 2.5)], {}, []),
        ([Point("loss", 1.0, math.nan), Point("train/loss", 1.0, 2.5)], {}, []),
        ([Point("loss", 1.0, math.nan)], {Role.LOSS: "loss"}, ["nonfinite"]),
        (
            [Point("loss", 1.0, math.inf), Point("train/loss", 1.0, math.nan)],
            {Role.LOSS: "train/loss"},
            ["nonfinite"],
        ),
    ],
)
def test_a_row_that_stays_alone_is_judged_only_where_it_holds_no_number(held, roles, told):
    monitor = RunMonitor()
    assert monitor.feed(held) == []

    assert [found.kind for found in monitor.settle()] == told
    assert monitor.roles == roles
    assert monitor.settle() == []
