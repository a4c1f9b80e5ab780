"""What Slack's refusals mean: whether trying again can help, and what a person has to change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from wtwin_notifiers.answers import retry_after, worth_retrying
from wtwin_watch.errors import DeliveryError

_CODE = re.compile(r"[a-z][a-z0-9_]{1,60}", re.ASCII)
_OK = 200

_TOKEN = "set receiver.{name}.token to a valid bot token (xoxb-…)"
_CHANNEL = "set receiver.{name}.channel to the id of a channel the app is in"
_WEBHOOK = "set receiver.{name}.webhook to a valid incoming webhook"
_FAULT = "the message itself was refused; this is a fault of wtwin-watch"
_FORBIDDEN = "the workspace's settings forbid it; ask its administrator"

# The refusals after which nothing changes until a person acts. Any other is tried again: an error that
# Slack invents tomorrow must not lose an alert.
_CURES: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "not_authed",
            "invalid_auth",
            "account_inactive",
            "token_revoked",
            "token_expired",
            "not_allowed_token_type",
            "two_factor_setup_required",
        ),
        _TOKEN,
    ),
    "missing_scope": "add the scope to the Slack app, reinstall it, and renew receiver.{name}.token",
    "channel_not_found": _CHANNEL,
    "not_in_channel": "invite the app into the channel, or " + _CHANNEL,
    "is_archived": "the channel is archived; " + _CHANNEL,
    "messages_tab_disabled": _CHANNEL,
    **dict.fromkeys(
        (
            "no_permission",
            "access_denied",
            "ekm_access_denied",
            "enterprise_is_restricted",
            "restricted_action",
            "restricted_action_non_threadable_channel",
            "restricted_action_read_only_channel",
            "restricted_action_thread_locked",
            "restricted_action_thread_only_channel",
            "team_access_not_granted",
            "action_prohibited",
            "posting_to_general_channel_denied",
        ),
        _FORBIDDEN,
    ),
    **dict.fromkeys(
        (
            "msg_too_long",
            "msg_blocks_too_long",
            "invalid_blocks",
            "invalid_blocks_format",
            "no_text",
            "too_many_attachments",
            "invalid_arguments",
            "invalid_arg_name",
            "invalid_array_arg",
            "invalid_charset",
            "invalid_form_data",
            "invalid_post_type",
            "missing_post_type",
            "invalid_json",
            "json_not_object",
            "invalid_payload",
            "metadata_too_large",
            "invalid_metadata_format",
            "invalid_metadata_schema",
            "metadata_must_be_sent_from_app",
        ),
        _FAULT,
    ),
    **dict.fromkeys(
        ("unknown_method", "method_deprecated", "deprecated_endpoint"),
        "set receiver.{name}.api_url to an address that speaks Slack's Web API",
    ),
}

# What incoming webhooks say differently: their token and channel are part of the address.
_WEBHOOK_CURES: Mapping[str, str] = {
    **_CURES,
    **dict.fromkeys(
        (
            "no_service",
            "no_service_id",
            "no_active_hooks",
            "no_team",
            "team_disabled",
            "invalid_token",
            "channel_not_found",
        ),
        _WEBHOOK,
    ),
    "channel_is_archived": "the channel is archived; " + _WEBHOOK,
}

# The message can't be edited, but a new one may get through.
_NOT_EDITABLE = frozenset(
    {
        "message_not_found",
        "cant_update_message",
        "edit_window_closed",
        "channel_not_found",
        "not_in_channel",
        "is_archived",
    }
)


class SlackRefusal(DeliveryError):
    """Slack answered, and the answer is no. ``code`` is its word for why, or empty."""

    def __init__(self, text: str, code: str, *, permanent: bool, retry_after_s: float | None):
        super().__init__(text, permanent=permanent, retry_after_s=retry_after_s)
        self.code = code

    @property
    def not_editable(self) -> bool:
        """Whether the message to be edited is out of reach for good."""
        return self.code in _NOT_EDITABLE


def refusal(
    name: str,
    status: int,
    answer: Mapping[str, Any],
    headers: Mapping[str, str],
    now: float,
    *,
    basic: bool,
) -> SlackRefusal:
    """Judge an answer to receiver ``name``: its HTTP status, Slack's own fields, its headers.

    ``basic``: an incoming webhook answered, not the Web API.

    ``answer["error"]`` is only believed to be Slack's when it looks like one of its codes; nothing else
    of the answer is quoted.
    """
    claimed = str(answer.get("error", "")).strip()
    code = claimed if _CODE.fullmatch(claimed) else ""
    said = code or ("an answer that isn't Slack's" if status == _OK else "no reason")
    lower = {key.lower(): value for key, value in headers.items()}
    wait_s = retry_after(lower.get("retry-after"), now)
    text = f"Slack refused a message for receiver {name}: HTTP {status}, {said}"
    if worth_retrying(status):
        return SlackRefusal(text, code, permanent=False, retry_after_s=wait_s)
    if code == "missing_scope" and (needed := _scopes(answer.get("needed"))):
        text += f", it needs {needed}"
    cure = (_WEBHOOK_CURES if basic else _CURES).get(code)
    if cure is None and status != _OK:
        cure = "check that receiver.{name} names Slack's address and no proxy stands in between"
    if cure is not None:
        text += "; " + cure.format(name=name)
    return SlackRefusal(text, code, permanent=cure is not None, retry_after_s=wait_s)


def _scopes(claimed: Any) -> str:
    return (
        claimed if isinstance(claimed, str) and re.fullmatch(r"[a-z:., ]{1,100}", claimed) else ""
    )
