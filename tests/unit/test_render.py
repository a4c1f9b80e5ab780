"""The words of a notification."""

from dataclasses import replace

import pytest

from tests.support.records import DRIFT, RUN, make_alert
from wtwin_watch.model import Acknowledgement, AlertState, Event, Severity
from wtwin_watch.notify.render import message, number


def test_a_firing_alert_says_what_where_since_when_and_how_bad():
    text = message(Event.FIRING, make_alert(), replace(RUN, project="llm", url="https://x/run"))

    assert text.title == "Warning: loss drifts up (a)"
    assert text.summary == "the loss is 0.40 above its forecast"
    facts = dict(text.facts)
    assert facts["Since step"] == "2205"
    assert facts["Observed"] == "1.9"
    assert facts["Expected"] == "1.5"
    assert facts["Excess"] == "+0.4 nats (+20.0 sigma)"
    assert facts["Last healthy step"] == "2204"
    assert facts["Project"] == "llm"
    assert text.link == "https://x/run"


def test_a_resolved_alert_says_how_it_ended():
    alert = make_alert(
        state=AlertState.RESOLVED, resolved_step=2400.0, outcome="it is back at its forecast"
    )

    text = message(Event.RESOLVED, alert, RUN)

    assert text.title == "Resolved: loss drifts up (a)"
    assert text.summary == "it is back at its forecast"
    assert dict(text.facts)["Resolved at step"] == "2400"


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (Acknowledgement("ada", 0.0), "Seen by ada."),
        (
            Acknowledgement("ada", 0.0, 1_767_225_600.0, "new data mix"),
            "Seen by ada, quiet until 2026-01-01 00:00 UTC: new data mix",
        ),
    ],
)
def test_an_acknowledged_alert_says_who_has_seen_it(seen, told):
    text = message(Event.ACKNOWLEDGED, make_alert(acknowledged=seen), RUN)

    assert (text.title, text.summary) == ("Acknowledged: loss drifts up (a)", told)


def test_an_acknowledgement_that_was_taken_back_says_so():
    text = message(Event.ACKNOWLEDGED, make_alert(), RUN)

    assert text.title == "No longer acknowledged: loss drifts up (a)"
    assert text.summary == "the loss is 0.40 above its forecast"


def test_a_kind_without_words_of_its_own_is_still_readable():
    alert = make_alert(kind="strange_thing", severity=Severity.INFO)

    assert message(Event.FIRING, alert, RUN).title == "Info: loss: strange thing (a)"


def test_an_excess_that_is_no_number_is_left_out():
    alert = make_alert(detection=replace(DRIFT, observed=float("nan")))

    facts = dict(message(Event.FIRING, alert, RUN).facts)

    assert facts["Observed"] == "NaN"
    assert "Excess" not in facts


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (3.0, "3"),
        (143000.0, "143000"),
        (0.123456789, "0.12346"),
        (1e300, "1e+300"),
        (float("inf"), "infinity"),
        (float("-inf"), "-infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_are_written_as_a_person_would(value, text):
    assert number(value) == text
