from pathlib import Path

from benchmarks.detection.comparison import Comparison
from benchmarks.detection.document import draw, seen_by, text
from benchmarks.detection.matching import Trial
from benchmarks.detection.ramps import Ramp
from benchmarks.report import Measure

PATH = Path("docs/detection.md")


def ramps(*delays):
    return [Ramp("a", i, delay, oracle=100.0, horizon=1000) for i, delay in enumerate(delays)]


RATE = Measure(
    "false alarms, real logs, language models and fine-tuning",
    0.0,
    at_most=1.0,
    unit="/100k",
    note="0 in 100,000 points",
    interval=(0.0, 3.69),
    group="False alarms",
)
SLOW = Measure("update ÷ building", 30.0, at_most=15.0, group="Cost")
BLIND = Trial("blind", ramps(None, None), 0, 100_000)
SOON = Trial("soon", ramps(150, 200), 9, 100_000)
COMPARISON = Comparison(
    "Pythia ramps", "real logs", ramps(100, 120), Trial("ours", ramps(90, 110), 1, 100_000), [BLIND, SOON]
)  # fmt: skip


def report():
    return text(PATH, [RATE, SLOW], [COMPARISON])


def test_a_report_says_by_what_command_it_was_made():
    assert "python -m benchmarks.detection --report docs/detection.md\n" in report()


def test_a_report_names_what_was_missed_before_anything_else():
    targets, rest = report().split("## Targets\n\n")[1].split("## False alarms\n", 1)

    assert targets.startswith("1 of 2 are met. Missed:")
    assert "| update ÷ building | 30 | ≤ 15 | **missed** |  |" in targets
    assert "| 0 [0, 3.69] /100k | ≤ 1 | met | 0 in 100,000 points |" in rest


def test_rivals_are_ranked_by_delay_with_their_rates_below_ours():
    lines = [line for line in report().splitlines() if line.startswith("| ")]
    names = [line.split(" | ")[0] for line in lines[-4:]]

    assert names == [
        "| **this monitor, far = 10⁵**",
        "| this monitor, `far` set likewise",
        "| soon",
        "| blind",
    ]
    # Of nine alarms the mean is 4.1 at least: more than the one that was set.
    assert lines[-2].endswith("| 9 [4.1, 17] | 0 [0, 1.8] | **not kept** |")
    assert lines[-1].startswith("| blind | 0% [0%, 0%] | 10.00 [10.00, 10.00] |")


def test_a_curve_rises_at_each_delay_and_never_for_what_was_missed():
    delays, shares = seen_by(ramps(200, None, 100, None))

    assert list(zip(delays, shares, strict=True)) == [
        (0.01, 0.0), (1.0, 0.0), (1.0, 0.25), (2.0, 0.25), (2.0, 0.5), (1000.0, 0.5),
    ]  # fmt: skip


def test_the_picture_is_a_png(tmp_path):
    picture = tmp_path / "detection.png"

    draw(picture, [RATE], [COMPARISON])

    assert picture.read_bytes().startswith(b"\x89PNG")
