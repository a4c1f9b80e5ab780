"""What can be set for a receiver in Slack."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import ConfigDict, Field, SecretStr, field_validator, model_validator

from wtwin_notifiers.urls import check_bare_url, encrypted_url
from wtwin_watch import protocols
from wtwin_watch.model import Severity
from wtwin_watch.secrets import Secret

API_URL = "https://slack.com/api/"

Mention = Annotated[str, Field(pattern=r"^(here|channel|everyone|[UWS][A-Z0-9]{2,30})$")]


class SlackOptions(protocols.Options):
    """Either ``webhook``, or ``token`` and ``channel``."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    webhook: Secret | None = None
    """The address of an incoming webhook."""
    token: Secret | None = None
    """A bot token with the scopes chat:write and, for plots, files:write."""
    channel: str | None = Field(default=None, min_length=1, max_length=200)
    """The id of a channel the app is in, like C012AB3CD."""
    api_url: str = API_URL
    """Where the Web API is, for gateways that speak it; plain http only on loopback."""
    mention: dict[Severity, tuple[Mention, ...]] = Field(default_factory=dict)
    """Who is mentioned when an alert of a severity fires: here, channel, or ids of people and groups."""

    @field_validator("webhook")
    @classmethod
    def _webhook_is_an_address(cls, webhook: SecretStr | None) -> SecretStr | None:
        if webhook is not None:
            encrypted_url(webhook.get_secret_value())
        return webhook

    @field_validator("token")
    @classmethod
    def _token_fits_a_header(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token.get_secret_value()):
            raise ValueError("a token is printable ASCII without spaces, like xoxb-…")
        return token

    @field_validator("api_url")
    @classmethod
    def _api_url_is_an_address(cls, api_url: str) -> str:
        return check_bare_url("api_url", api_url)

    @model_validator(mode="after")
    def _one_way_to_send(self) -> SlackOptions:
        if self.webhook is not None:
            if self.token or self.channel or self.api_url != API_URL:
                raise ValueError("give webhook alone, or token and channel without webhook")
        elif self.token is None or self.channel is None:
            raise ValueError("Slack needs webhook, or token and channel")
        return self
