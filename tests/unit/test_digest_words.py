"""What a digest says."""

from dataclasses import replace

import pytest

from tests.support.records import DRIFT, make_alert
from wtwin_watch.alerting.budget import WEEK_S, Budget
from wtwin_watch.alerting.telling import Choice
from wtwin_watch.model import Acknowledgement, AlertState, Family, Run, RunKey, Severity
from wtwin_watch.notify.digest import MOST_LINES, compose, lasting
from wtwin_watch.store.digest import Facts

START = 1_764_547_200.0  # 2025-12-01 00:00 UTC
HOUR = 3600.0
END = START + 24 * HOUR


def alert(id_, begun_h, ended_h=None, *, run="a", outcome="the loss is back", **changes):
    ended = None if ended_h is None else START + ended_h * HOUR
    made = make_alert(
        id_,
        run=Run(RunKey("logs", run), run),
        started_at=START + begun_h * HOUR,
        fired_at=START + begun_h * HOUR,
        **changes,
    )
    if ended is None:
        return made
    return replace(made, state=AlertState.RESOLVED, resolved_at=ended, outcome=outcome)


def digest(*alerts, **facts):
    found = tuple((one, one.run.run or one.run.source) for one in alerts)
    return compose(Facts(START, END, found, **{"runs": 12, "new_runs": 3, **facts}))


def test_a_calm_day_is_said_to_be_one():
    words = digest()

    assert words.title == "Digest: 0 alerts in 12 runs"
    assert words.summary == "No alert fired."
    assert words.facts == (
        ("Period", "2025-12-01 00:00 UTC to 2025-12-02 00:00 UTC"),
        ("Runs watched", "12, 3 of them new"),
    )


def test_a_day_on_which_nothing_was_watched_is_not_said_to_be_calm():
    assert digest(runs=0, new_runs=0).summary == "No alert fired.\nNo run was watched in this time."


def test_each_alert_is_told_with_how_long_it_lasted_and_how_it_ended_the_gravest_first():
    words = digest(
        alert("1", 2, 4.5),
        alert("2", 3, None, run="b", kind="divergence", severity=Severity.CRITICAL),
        alert("3", 20, 21, run="c", outcome=""),
    )

    assert words.title == "Digest: 3 alerts in 12 runs"
    assert words.summary.splitlines() == [
        "critical: loss diverges (b), 21h, fires still",
        "warning: loss drifts up (a), 2h30m, the loss is back",
        "warning: loss drifts up (c), 1h, over",
    ]


def test_what_comes_again_is_one_line_with_the_time_of_all_of_it():
    words = digest(
        alert("1", 2, 3),
        alert("2", 5, 6, severity=Severity.CRITICAL),
        alert("3", 9, 9.5, outcome="the run ended"),
    )

    assert words.title == "Digest: 3 alerts in 12 runs"
    assert words.summary == "critical: loss drifts up (a), 3 times, 2h30m, the run ended"


def test_who_has_seen_what_still_fires_is_said():
    seen = Acknowledgement("ada", START + 60)

    assert digest(alert("1", 0, acknowledged=seen)).summary.endswith("fires still, seen by ada")


def test_what_ended_after_the_period_was_firing_at_its_end():
    assert digest(alert("1", 22, 25)).summary == "warning: loss drifts up (a), 2h, fires still"


def test_information_is_counted_and_not_listed():
    words = digest(
        alert("1", 2, 3, severity=Severity.INFO, kind="spike"),
        alert("2", 4, 5, severity=Severity.INFO, kind="spike", run="b"),
        alert("3", 4, 5, severity=Severity.INFO, kind="transient"),
    )

    assert words.summary == "No alert fired."
    assert dict(words.facts)["Information"] == "loss spiked 2 times, loss was too high once"


def test_what_people_were_not_told_is_counted_by_its_reason():
    words = digest(held={Choice.SILENCED: 4, Choice.BELOW: 1})

    assert dict(words.facts)["Not told"] == "4 silenced, 1 below the receiver's severity"


def test_sources_are_named_with_how_long_they_could_not_be_read():
    down = {"run": "", "family": Family.SOURCE, "kind": "source_down"}
    before = alert("1", -2, 1, **down)
    again = alert("2", 10, 10.5, **down)

    assert dict(digest(before, again, down=()).facts)["Sources down"] == "logs for 1h30m"
    assert dict(digest(alert("1", 23, **down), down=("logs", "wandb")).facts)["Sources down"] == (
        "logs for 1h and still, wandb now"
    )


def test_how_the_budget_was_kept_is_said_where_there_is_one():
    # A false alarm a week is told of, so one in seven days' time; the day has 86,400 points.
    budget = Budget(allowed=1 / WEEK_S, points=1.0, runs=10, far=1e5)
    rise = replace(DRIFT, strength=14.0)
    words = digest(
        alert("1", 2, 3, detection=rise),
        alert("2", 2, 3, detection=rise, run="b"),
        alert("3", 2, 3, run="c", family=Family.STATE, kind="failed"),
        budget=budget,
        untold={"2": Choice.WEAK},
    )

    assert dict(words.facts)["Budget"] == "1 alert told of a rise; chance alone brings 0.14"
    assert "Budget" not in dict(digest().facts)


def test_an_alert_that_nobody_was_told_of_says_so():
    words = digest(alert("1", 2, 3), untold={"1": Choice.SILENCED})

    assert words.summary == (
        "warning: loss drifts up (a), told to nobody (silenced), 1h, the loss is back"
    )


def test_a_bad_day_is_cut_to_what_a_message_holds():
    words = digest(*(alert(str(i), 1, 2, run="r" * 300 + str(i)) for i in range(100)))

    lines = words.summary.splitlines()
    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == "… and 85 more; 'wtwin-watch alerts' lists them"
    assert lines[0] == f"warning: loss drifts up ({'r' * 49}…), 1h, the loss is back"


def test_a_long_story_is_cut():
    [line] = digest(alert("1", 1, 2, outcome="x" * 500)).summary.splitlines()

    assert (len(line), line[-1]) == (120, "…")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (-5, "0s"),
        (40, "40s"),
        (59.7, "1m"),
        (61, "1m1s"),
        (3600, "1h"),
        (7800, "2h10m"),
        (86400 * 3 + 3600 * 4 + 50, "3d4h"),
        (86400 + 59, "1d"),
    ],
)
def test_a_time_span_is_written_in_its_two_largest_units(seconds, text):
    assert lasting(seconds) == text
