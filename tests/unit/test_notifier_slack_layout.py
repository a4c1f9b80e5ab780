"""How an alert looks in Slack, and that nothing a run is called can change that."""

from dataclasses import replace

import pytest

from tests.support import slack_rules
from tests.support.notifications import HOSTILE_NAMES, digest, notification
from tests.support.records import make_alert
from wtwin_notifiers import slack_layout
from wtwin_watch.model import Event, Message, Run, RunKey
from wtwin_watch.notify.digest import compose
from wtwin_watch.store.digest import Facts

HEADER, SECTION, ALL_BLOCKS = 150, 3000, 12_000


def mistakes(payload):
    assert set(payload) == {"text", "blocks"}
    return slack_rules.text_mistakes(payload["text"], 40_000, "text") + slack_rules.block_mistakes(
        payload["blocks"]
    )


def test_a_message_has_title_summary_facts_link_and_context():
    payload = slack_layout.message(notification())

    header, summary, facts, link, context = payload["blocks"]
    assert header["text"]["text"] == "🔴 Critical: loss drifts up (gpt-small-lr3e4)"
    assert summary["text"]["text"] == "loss is 0.31 above what this run's own trend expects"
    assert [field["text"] for field in facts["fields"]] == [
        "*Run*\ngpt-small-lr3e4",
        "*Observed*\n2.81",
        "*Expected*\n2.5",
    ]
    assert (
        link["text"]["text"] == "<https://tracker.example/run/a1?tab=charts&amp;x=1|Open the run>"
    )
    assert context["elements"][0]["text"].startswith("critical loss alert · fired <!date^")
    assert payload["text"] == (
        "🔴 Critical: loss drifts up (gpt-small-lr3e4): "
        "loss is 0.31 above what this run's own trend expects"
    )


@pytest.mark.parametrize(
    ("event", "sign"),
    [
        (Event.FIRING, "🔴"),
        (Event.CHANGED, "🔴"),
        (Event.RESOLVED, "✅"),
        (Event.TEST, "🔔"),
        (Event.DIGEST, "📋"),
    ],
)
def test_the_sign_tells_what_happened(event, sign):
    payload = slack_layout.message(notification(event))

    assert payload["blocks"][0]["text"]["text"].startswith(sign)
    assert payload["text"].startswith(sign)


def test_the_context_of_a_resolved_alert_says_when_it_fired_and_ended():
    context = slack_layout.message(notification(Event.RESOLVED))["blocks"][-1]["elements"][0][
        "text"
    ]

    assert "fired <!date^1760000060^{date_short_pretty} {time}|2025-10-09 08:54 UTC>" in context
    assert (
        "*resolved* <!date^1760000600^{date_short_pretty} {time}|2025-10-09 09:03 UTC>" in context
    )


def test_a_digest_says_of_which_time_it_is():
    header, section, fields, context = slack_layout.message(digest())["blocks"]

    assert header["text"]["text"] == "📋 Digest: 1 alert in 12 runs"
    assert (
        section["text"]["text"] == "warning: loss drifts up (gpt-small-lr3e4), 2h10m, fires still"
    )
    assert [field["text"] for field in fields["fields"]] == [
        "*Runs watched*\n12, 3 of them new",
        "*Not told*\n4 silenced",
    ]
    assert context["elements"][0]["text"] == (
        "from <!date^1760000000^{date_short_pretty} {time}|2025-10-09 08:53 UTC>"
        " to <!date^1760086400^{date_short_pretty} {time}|2025-10-10 08:53 UTC>"
    )


def test_the_largest_digest_is_shown_whole():
    bad_day = tuple(
        (make_alert(str(i), run=Run(RunKey("logs", f"r{i}"), "")), "r" * 200) for i in range(99)
    )
    words = compose(Facts(0.0, 86_400.0, bad_day, runs=99))

    payload = slack_layout.message(replace(digest(), message=words))

    assert mistakes(payload) == []
    assert payload["blocks"][1]["text"]["text"].endswith("'wtwin-watch alerts' lists them")


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_no_name_breaks_a_message_or_pings_anybody(name, event):
    words = Message(name, name, ((name, name),) * 60, f"https://tracker.example/{name}")
    given = notification(event, name=name, message=words)

    for payload in (
        slack_layout.message(given),
        slack_layout.message(given, late=True),
        slack_layout.reply(given),
    ):
        assert mistakes(payload) == []
        assert slack_rules.pings(payload) == []
        texts = slack_rules.block_text(payload["blocks"])
        assert sum(map(slack_rules.length, texts)) <= ALL_BLOCKS


def test_the_most_a_message_can_hold_stays_within_all_limits():
    long = "&" * 20_000
    url = "https://tracker.example/" + "&" * 280
    given = notification(message=Message(long, long, ((long, long),) * 100, url))

    payload = slack_layout.message(given)

    assert mistakes(payload) == []
    texts = slack_rules.block_text(payload["blocks"])
    assert 8000 < sum(map(slack_rules.length, texts)) <= ALL_BLOCKS
    assert slack_rules.length(payload["blocks"][0]["text"]["text"]) <= HEADER
    assert slack_rules.length(payload["blocks"][1]["text"]["text"]) <= SECTION


def test_facts_are_shown_ten_to_a_section():
    facts = tuple((f"fact {n}", str(n)) for n in range(23))

    blocks = slack_layout.message(notification(message=Message("t", "s", facts)))["blocks"]

    assert [len(block["fields"]) for block in blocks if "fields" in block] == [10, 10, 3]


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "//tracker.example/x",
        "https://",
        "https://tracker.example/ space",
        "https://tracker.example/\n",
        "https://[::1",
        "https://tracker.example/" + "x" * 2000,
        "",
        None,
    ],
)
def test_only_an_address_for_a_browser_is_linked(url):
    payload = slack_layout.message(notification(url=url))

    assert "Open the run" not in str(payload)
    assert mistakes(payload) == []


def test_a_link_can_not_be_ended_early():
    payload = slack_layout.message(notification(url="https://tracker.example/a|b>c<!channel>"))

    assert (
        "<https://tracker.example/a%7Cb%3Ec%3C!channel%3E|Open the run>"
        in slack_rules.block_text(payload["blocks"])
    )
    assert slack_rules.pings(payload) == []


def test_a_time_that_is_no_date_is_said_so():
    given = notification()
    odd = replace(given, alert=replace(given.alert, fired_at=float("inf")))

    payload = slack_layout.message(odd)

    assert "fired at an unknown time" in str(payload)
    assert mistakes(payload) == []


@pytest.mark.parametrize(
    ("raw", "limit", "made"),
    [
        ("a<b>&c", 99, "a&lt;b&gt;&amp;c"),
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("abc&def", 7, "abc…"),  # &amp; has no room beside the ellipsis
        ("abc&def", 9, "abc&amp;…"),
        ("&", 5, "&amp;"),
        ("&", 4, "…"),
        ("🔥🔥🔥", 6, "🔥🔥🔥"),  # two UTF-16 units each
        ("🔥🔥🔥", 5, "🔥🔥…"),
        ("", 5, ""),
    ],
)
def test_escaping_cuts_between_characters(raw, limit, made):
    assert slack_layout.escape(raw, limit) == made
