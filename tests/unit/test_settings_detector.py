"""Which detector is chosen, and whose parameters are whose."""

from pathlib import Path

import pytest

from wtwin_watch.errors import SettingsError, UsageError
from wtwin_watch.monitor.options import ClassicOptions, TrendOptions
from wtwin_watch.settings import Flags, load_detector, load_settings


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "config.toml"
        path.write_text(text)
        return path

    return write


def chosen(path: Path | None = None, **flags):
    settings = load_settings(Flags(config=path, **flags), {}, needs_sources=False)
    return settings.detector.options(), [note for note in settings.notes if "detector" in note]


def mistakes(path: Path, **flags):
    with pytest.raises(SettingsError) as caught:
        load_settings(Flags(config=path, **flags), {}, needs_sources=False)
    return [line.removeprefix(str(path)) for line in caught.value.mistakes]


def test_the_trend_detector_is_the_default(file):
    assert chosen(file("")) == (TrendOptions(far=1e5, min_effect=None), [])


@pytest.mark.parametrize(
    ("written", "points"),
    [
        ("1e4", 1e4),
        ("20000", 2e4),
        ('"1 per 100000 points"', 1e5),
        ('"1% per run of 20000 points"', 2e6),
        ('"1 in 1000 runs of 5000 points"', 5e6),
    ],
)
def test_a_false_alarm_rate_is_a_number_or_a_text(file, written, points):
    options, _ = chosen(file(f"[detector]\nfar = {written}\nmin_effect = 0.01\n"))
    assert options == TrendOptions(far=points, min_effect=0.01)


@pytest.mark.parametrize("written", ['"often"', "3", "1e13", "true", "[1]", "nan", "inf"])
def test_a_false_alarm_rate_that_cannot_be_is_a_mistake(file, written):
    (told,) = mistakes(file(f"[detector]\nfar = {written}\n"))
    assert told.startswith(":2: detector.far: ")


@pytest.mark.parametrize("written", ["-0.1", "1.0", "nan"])
def test_a_least_effect_that_cannot_be_is_a_mistake(file, written):
    (told,) = mistakes(file(f"[detector]\nmin_effect = {written}\n"))
    assert told.startswith(":2: detector.min_effect: ")


def test_a_parameter_of_another_detector_is_a_mistake_with_its_line(file):
    assert mistakes(file("[detector]\nalpha = 3\n")) == [
        ":2: detector.alpha: belongs to the detector 'classic', not to 'trend'; remove it, or write"
        ' name = "classic"'
    ]
    assert mistakes(file('[detector]\nname = "classic"\nalpha = 3\nfar = 1e4\n')) == [
        ":4: detector.far: belongs to the detector 'trend', not to 'classic'; remove it"
    ]


def test_a_parameter_on_the_command_line_asks_for_its_detector(file):
    classic, notes = chosen(file("[detector]\nfar = 1e4\n"), tau=0.5)
    assert classic == ClassicOptions(tau=0.5)
    assert notes == ["--tau is a parameter of the detector 'classic', so that one is used"]

    trend, notes = chosen(file('[detector]\nname = "classic"\nalpha = 3\n'), far="1e4")
    assert trend == TrendOptions(far=1e4)
    assert notes == ["--far is a parameter of the detector 'trend', so that one is used"]


def test_a_parameter_of_the_detector_there_is_needs_no_word(file):
    classic = file('[detector]\nname = "classic"\nalpha = 3\n')
    assert chosen(classic, tau=0.5) == (ClassicOptions(alpha=3.0, tau=0.5), [])
    assert chosen(file("[detector]\nfar = 1e4\n"), min_effect=0.1) == (TrendOptions(1e4, 0.1), [])


def test_a_detector_that_is_named_goes_before_that_of_the_file(file):
    classic = file('[detector]\nname = "classic"\nalpha = 3\n')
    assert chosen(classic, detector="trend") == (TrendOptions(), [])
    assert chosen(classic, detector="classic") == (ClassicOptions(alpha=3.0), [])
    assert chosen(file("[detector]\nfar = 1e4\n"), detector="classic") == (ClassicOptions(), [])


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (
            {"detector": "trend", "alpha": 2.0, "warmup": 3},
            [
                "--alpha: belongs to the detector 'classic', not to 'trend'; remove it, or give"
                " --detector classic",
                "--warmup: belongs to the detector 'classic', not to 'trend'; remove it, or give"
                " --detector classic",
            ],
        ),
        (
            {"detector": "classic", "far": "1e4"},
            [
                "--far: belongs to the detector 'trend', not to 'classic'; remove it, or give"
                " --detector trend"
            ],
        ),
        (
            {"far": "1e4", "alpha": 2.0},
            [
                "--alpha: belongs to the detector 'classic', not to 'trend'; remove it, or --far",
            ],
        ),
        ({"far": "now and then"}, ["--far: can't read 'now and then' as a false-alarm rate"]),
        ({"min_effect": 2.0}, ["--min-effect: should be less than 1"]),
        ({"detector": "other"}, ["--detector: should be 'trend' or 'classic'"]),
    ],
)
def test_flags_that_contradict_each_other_are_asked_wrongly(flags, told):
    with pytest.raises(UsageError) as caught:
        load_detector(Flags(**flags))
    lines = str(caught.value).splitlines()
    assert len(lines) == len(told)
    assert all(line.startswith(start) for line, start in zip(lines, told, strict=True))
