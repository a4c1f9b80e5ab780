import pytest

from wtwin_watch.monitor.far import parse_far, per_run, threshold


@pytest.mark.parametrize(
    ("text", "points"),
    [
        (1e5, 1e5),
        (20_000, 20_000.0),
        ("1e5", 1e5),
        ("250_000", 250_000.0),
        ("1 per 100000 points", 1e5),
        ("one in 1e5 points", 1e5),
        ("2 false alarms per 100,000 points", 5e4),
        ("0.01 per run of 20000 points", 2e6),
        ("1% per run of 20000 points", 2e6),
        ("1 in 1000 runs of 5000 points", 5e6),
    ],
)
def test_a_false_alarm_rate_is_read_as_points_between_two(text: str | float, points: float) -> None:
    assert parse_far(text) == pytest.approx(points)


@pytest.mark.parametrize(
    "text", ["", "often", "0 per 100 points", "1 per run", -1.0, 0, float("nan"), 1e15]
)
def test_a_rate_that_cannot_be_is_refused(text: str | float) -> None:
    with pytest.raises(ValueError, match="false"):
        parse_far(text)


def test_a_chance_per_run_spreads_over_its_points() -> None:
    assert per_run(0.001, 5000) == pytest.approx(5e6)
    with pytest.raises(ValueError, match="chance"):
        per_run(0.0, 5000)


def test_the_threshold_at_one_in_a_hundred_thousand_is_that_of_the_specification() -> None:
    assert threshold(1e5) == pytest.approx(10.0129, abs=1e-4)
