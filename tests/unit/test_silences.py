"""Which silence covers an alert."""

from wtwin_watch.alerting.matching import parse, parse_labels
from wtwin_watch.alerting.silences import Silence, silencing

LABELS = parse_labels("project=llm run=a severity=critical")


def silence(id_, match, starts_at=100.0, ends_at=200.0):
    return Silence(id_, parse(match), starts_at, ends_at, "ada", "maintenance", created_at=50.0)


def test_a_silence_holds_from_its_start_until_just_before_its_end():
    [night] = silences = [silence("s1", "project=llm")]

    held = [at for at in (99.9, 100.0, 199.9, 200.0) if silencing(silences, LABELS, at) is night]

    assert held == [100.0, 199.9]


def test_a_silence_covers_what_all_of_its_matchers_mean():
    assert silencing([silence("s1", "project=llm run=b")], LABELS, 150.0) is None
    assert silencing([silence("s1", "project=llm run=a")], LABELS, 150.0)


def test_of_several_the_one_that_ends_last_is_named():
    short, long = silence("short", "run=a"), silence("long", "", ends_at=300.0)
    over = silence("over", "", ends_at=120.0)

    assert silencing([short, long, over], LABELS, 150.0) is long
    assert silencing([long, short, over], LABELS, 150.0) is long


def test_a_silence_says_what_it_means():
    assert silence("s1", "project=llm run=~'debug .*'").what == "project=llm run=~'debug .*'"
