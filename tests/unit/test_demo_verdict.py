from dataclasses import replace

import pytest

from wtwin_watch.demo.verdict import Delivery, Facts, complaints

SOURCES = ("csv", "tensorboard")
STEPS = 1200
BEGAN = 1000.0
CSV = Delivery("m1", BEGAN + 2, "run.alert.firing", "loss", "csv", "a1")
TENSORBOARD = Delivery("m2", BEGAN + 2, "run.alert.firing", "loss", "tensorboard", "a2")
GOOD = Facts([CSV, TENSORBOARD], [], BEGAN, {"csv": 1200.0, "tensorboard": 1200.0})
QUIET = Facts([], [], None, {"csv": 1200.0, "tensorboard": 1200.0})


def test_one_alert_for_each_log_after_the_rot_began_is_as_it_should_be():
    assert complaints(GOOD, SOURCES, STEPS) == []


def test_nothing_about_a_healthy_run_is_as_it_should_be():
    assert complaints(QUIET, SOURCES, STEPS) == []


def test_a_delivery_that_came_twice_with_one_id_counts_once():
    again = replace(CSV, at=CSV.at + 1)

    assert complaints(replace(GOOD, deliveries=[CSV, TENSORBOARD, again]), SOURCES, STEPS) == []


def test_the_same_alert_may_be_told_again_in_more_exact_words():
    changed = replace(CSV, id="m3", type="run.alert.changed", at=CSV.at + 1)

    assert complaints(replace(GOOD, deliveries=[CSV, TENSORBOARD, changed]), SOURCES, STEPS) == []


@pytest.mark.parametrize(
    ("deliveries", "complaint"),
    [
        ([CSV], "tensorboard: no alert about the loss arrived"),
        ([TENSORBOARD], "csv: no alert about the loss arrived"),
        (
            [CSV, TENSORBOARD, replace(CSV, id="m3", alert="a3")],
            "csv: run.alert.firing about loss arrived a second time",
        ),
        (
            [CSV, TENSORBOARD, replace(CSV, id="m3", type="run.alert.resolved")],
            "csv: run.alert.resolved about loss arrived, which nobody expected",
        ),
        (
            [CSV, TENSORBOARD, replace(CSV, id="m3", type="run.alert.changed", alert="a9")],
            "csv: run.alert.changed about loss arrived, which nobody expected",
        ),
        (
            [CSV, TENSORBOARD, replace(CSV, id="m3", family="nonfinite")],
            "csv: run.alert.firing about nonfinite arrived, which nobody expected",
        ),
        (
            [CSV, TENSORBOARD, replace(CSV, id="m3", source="mlflow")],
            "mlflow: run.alert.firing about loss arrived, which nobody expected",
        ),
    ],
)
def test_what_is_missing_and_what_is_too_much_is_said(deliveries: list[Delivery], complaint: str):
    assert complaints(replace(GOOD, deliveries=deliveries), SOURCES, STEPS) == [complaint]


def test_an_alert_from_before_the_rot_is_a_false_one():
    early = replace(CSV, at=BEGAN - 0.1)

    assert complaints(replace(GOOD, deliveries=[early, TENSORBOARD]), SOURCES, STEPS) == [
        "csv: run.alert.firing about loss arrived before the labels began to rot",
        "csv: no alert about the loss arrived",
    ]


def test_any_alert_about_a_healthy_run_is_a_false_one():
    assert complaints(replace(QUIET, deliveries=[CSV]), SOURCES, STEPS) == [
        "csv: run.alert.firing about loss arrived, though nothing is wrong with the run"
    ]


def test_a_refused_delivery_is_said():
    facts = replace(GOOD, refusals=["its signature is wrong"])

    assert complaints(facts, SOURCES, STEPS) == [
        "the receiver refused a delivery: its signature is wrong"
    ]


def test_silence_about_a_run_that_was_not_followed_to_its_end_is_worth_nothing():
    facts = replace(QUIET, followed_to={"csv": 900.0})

    assert complaints(facts, SOURCES, STEPS) == [
        "csv: the watcher followed to step 900 of 1200",
        "tensorboard: the watcher never followed the run",
    ]


def test_a_webhook_is_read_for_what_the_verdict_needs():
    payload = {
        "type": "run.alert.firing",
        "timestamp": "2026-11-30T12:00:00.000Z",
        "data": {
            "alert_id": "a1",
            "family": "loss",
            "source": "csv",
            "title": "Warning: loss drifts up (mixture)",
            "summary": "Loss 0.9 is too high.",
        },
    }

    assert Delivery.read("m1", 5.0, payload) == Delivery(
        "m1",
        5.0,
        "run.alert.firing",
        "loss",
        "csv",
        "a1",
        "Warning: loss drifts up (mixture)",
        "Loss 0.9 is too high.",
    )


@pytest.mark.parametrize("payload", [{}, {"data": None}, {"type": 3, "data": {"family": []}}])
def test_a_webhook_without_what_is_needed_is_one_that_nobody_expected(payload: dict[str, object]):
    stray = Delivery.read("m9", BEGAN + 1, payload)

    found = complaints(replace(GOOD, deliveries=[CSV, TENSORBOARD, stray]), SOURCES, STEPS)

    assert found == [":  about  arrived, which nobody expected"]
