"""What Slack's refusals mean."""

import pytest

from wtwin_notifiers.slack_answers import refusal


def judged(error, status=200, headers=(), basic=False, **more):
    return refusal("team", status, {"error": error, **more}, dict(headers), 0.0, basic=basic)


@pytest.mark.parametrize("error", ["channel_not_found", "not_in_channel", "is_archived"])
def test_a_wrong_channel_is_permanent_and_names_the_setting(error):
    refused = judged(error)

    assert refused.permanent
    assert "receiver.team.channel" in str(refused)
    assert error in str(refused)


@pytest.mark.parametrize(
    "error", ["invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"]
)
def test_a_wrong_token_is_permanent_and_names_the_setting(error):
    refused = judged(error)

    assert refused.permanent
    assert "receiver.team.token" in str(refused)


def test_a_missing_scope_is_named():
    refused = judged("missing_scope", needed="chat:write", provided="files:write")

    assert refused.permanent
    assert "it needs chat:write" in str(refused)
    assert "receiver.team.token" in str(refused)


@pytest.mark.parametrize(
    "error",
    [
        "msg_too_long",
        "msg_blocks_too_long",
        "invalid_blocks",
        "invalid_arg_name",
        "restricted_action",
    ],
)
def test_a_refused_message_is_permanent(error):
    assert judged(error).permanent


@pytest.mark.parametrize(
    "error",
    ["ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable",
     "request_timeout", "team_added_to_org", "an_error_of_tomorrow"],
)  # fmt: skip
def test_what_may_pass_or_is_not_known_is_tried_again(error):
    assert not judged(error).permanent


@pytest.mark.parametrize("error", ["no_service", "channel_not_found", "invalid_token", "no_team"])
def test_a_wrong_webhook_is_permanent_and_names_the_setting(error):
    refused = judged(error, status=404, basic=True)

    assert refused.permanent
    assert "receiver.team.webhook" in str(refused)


def test_a_webhook_to_an_archived_channel_is_permanent():
    refused = judged("channel_is_archived", status=410, basic=True)

    assert refused.permanent
    assert "receiver.team.webhook" in str(refused)


def test_too_many_messages_are_held_back_as_long_as_slack_says():
    refused = judged("ratelimited", 429, {"Retry-After": "30"})

    assert not refused.permanent
    assert refused.retry_after_s == 30


@pytest.mark.parametrize("header", ["", "soon", "-1"])
def test_a_retry_after_that_says_nothing_leaves_the_wait_to_us(header):
    refused = judged("ratelimited", 429, {"retry-after": header})

    assert not refused.permanent
    assert refused.retry_after_s is None


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_broken_slack_is_tried_again_whatever_it_says(status):
    assert not judged("invalid_auth", status).permanent


@pytest.mark.parametrize("status", [302, 307, 403, 407])
def test_an_answer_on_the_way_to_slack_is_permanent_and_says_where_to_look(status):
    refused = judged("<html>Blocked by policy", status)

    assert refused.permanent
    assert "proxy" in str(refused)


@pytest.mark.parametrize(
    "claimed", ["<html>xoxb-secret</html>", "Received a response in …", "", "x" * 900]
)
def test_only_what_looks_like_a_code_of_slack_is_quoted(claimed):
    refused = judged(claimed)

    assert str(refused).endswith("an answer that isn't Slack's")
    assert not refused.permanent


def test_a_message_out_of_reach_is_told_from_other_refusals():
    assert judged("message_not_found").not_editable
    assert judged("edit_window_closed").not_editable
    assert judged("cant_update_message").not_editable
    assert not judged("ratelimited", 429).not_editable
    assert not judged("invalid_auth").not_editable
