"""Escaping for Slack holds for any text and any limit."""

import html

from hypothesis import given
from hypothesis import strategies as st

from tests.support import slack_rules
from tests.support.notifications import notification
from wtwin_notifiers import slack_layout, text
from wtwin_watch.model import Message

TRICKY = st.text(st.sampled_from("&<>!@#|a;mpltg 🔥\n*_\u202e\x1b\ud800") | st.characters())


@given(TRICKY, st.integers(1, 60))
def test_escaped_text_keeps_its_limit_and_is_a_prefix_of_the_text(raw, limit):
    made = slack_layout.escape(raw, limit)

    assert slack_rules.length(made) <= limit
    whole = html.unescape(made)
    if whole != raw:
        assert made.endswith("…")
        assert raw.startswith(whole[:-1])
    stripped = made.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    assert not set(stripped) & set("&<>")


@given(TRICKY, TRICKY, TRICKY, st.integers(0, 70))
def test_any_words_make_a_message_slack_takes(title, summary, fact, facts):
    words = Message(title, summary, ((fact, summary),) * facts, "https://x.example/" + fact)
    sent = notification(name=title, message=words)

    for payload in (slack_layout.message(sent), slack_layout.reply(sent)):
        assert slack_rules.block_mistakes(payload["blocks"]) == []
        assert slack_rules.text_mistakes(payload["text"], 40_000, "text") == []
        assert slack_rules.pings(payload) == []


@given(st.text(st.characters()))
def test_a_safe_line_stays_the_same_when_made_safe_again(raw):
    assert text.line(text.line(raw)) == text.line(raw)
