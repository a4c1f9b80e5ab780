"""One POST to a receiver that speaks HTTP, and what its answer means."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import SplitResult, unquote, urljoin
from urllib.request import getproxies, proxy_bypass

from pydantic import BeforeValidator, SecretStr, WithJsonSchema

from wtwin_notifiers.answers import reason, retry_after, worth_retrying
from wtwin_notifiers.urls import http_url, loopback
from wtwin_watch.errors import DeliveryError
from wtwin_watch.secrets import read_reference, shown_url

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

_CONNECT_TIMEOUT_S = 5.0
_READ_TIMEOUT_S = 10.0
_GONE = 410

# Hosts whose addresses are secrets as a whole: who has one can post.
_SECRET_HOSTS = (
    "hooks.slack.com",
    "hooks.slack-gov.com",
    "discord.com",
    "discordapp.com",
    "webhook.office.com",
    "outlook.office.com",
    "api.powerplatform.com",
    "logic.azure.com",
    "chat.googleapis.com",
    "api.telegram.org",
    "hooks.zapier.com",
    "maker.ifttt.com",
)

REFERENCE_SCHEMA = {"type": "object", "minProperties": 1, "maxProperties": 1}


def _read_url(given: Any) -> SecretStr:
    """Take a plain address, or a reference to one that holds a secret."""
    if not isinstance(given, str):
        secret: SecretStr = read_reference(given)
        http_url(secret.get_secret_value())
        return secret
    if _may_hold_a_secret(http_url(given)):
        raise ValueError(
            'this URL may hold a secret; give it by reference: { env = "NAME" }, { file = "/path" }'
            ' or { credential = "name" }'
        )
    return SecretStr(given)


def _may_hold_a_secret(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    known = any(host == secret or host.endswith("." + secret) for secret in _SECRET_HOSTS)
    return known or bool(parts.username or parts.password or parts.query or parts.fragment)


Address = Annotated[
    SecretStr,
    BeforeValidator(_read_url),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "uri"}, REFERENCE_SCHEMA]}),
]
"""A settings field with an http or https URL: plain, or by reference where it holds a secret."""


@dataclass(frozen=True, slots=True)
class Post:
    """An address to post to. ``where`` names it in errors, ``cure`` says what to check if it declines.

    ``setting`` is the key in the settings that holds the address.
    """

    where: str
    setting: str
    cure: str
    url: str

    def __call__(self, payload: bytes, headers: Mapping[str, str]) -> None:
        """Post ``payload``; a redirection isn't followed. Raises `DeliveryError` unless the answer is 2xx."""
        try:
            status, told = _post(self.url, payload, headers)
        except Exception as error:
            # No answer, or nothing that is HTTP. Its text may quote the address, so only its kind is told.
            raise DeliveryError(f"{self.where} can't be reached: {_reason(error)}") from None
        if refused := self._refused(status, told):
            raise refused

    def _refused(self, status: int, headers: Mapping[str, str]) -> DeliveryError | None:
        """Judge an answer: None for success."""
        if 200 <= status < 300:  # noqa: PLR2004
            return None
        said = f"{self.where} answered HTTP {status}"
        if worth_retrying(status):
            wait_s = retry_after(headers.get("retry-after"), time.time())
            return DeliveryError(said, retry_after_s=wait_s)
        cure = f"; {self.cure}"
        if status == _GONE:
            receiver = self.setting.rpartition(".")[0]
            cure = f": it wants no more webhooks; change or remove {receiver}"
        elif 300 <= status < 400:  # noqa: PLR2004
            target = _target(self.url, headers.get("location", ""))
            cure = f", a redirection{target}, which is not followed; set {self.setting}"
        return DeliveryError(said + cure, permanent=True)


def _post(url: str, payload: bytes, headers: Mapping[str, str]) -> tuple[int, dict[str, str]]:
    import urllib3

    # Alerts are hours apart: a connection kept open till then would be dead. The answer's body
    # says nothing we act on, so it is not read.
    with _pool(url) as pool:
        answer: BaseHTTPResponse = pool.request(
            "POST",
            url,
            body=payload,
            headers={
                "user-agent": "wtwin-watch",
                "connection": "close",
                **_credentials(url),
                **headers,
            },
            timeout=urllib3.Timeout(connect=_CONNECT_TIMEOUT_S, read=_READ_TIMEOUT_S),
            retries=False,
            redirect=False,
            preload_content=False,
        )
        answer.close()
        return answer.status, {key.lower(): value for key, value in answer.headers.items()}


def _credentials(url: str) -> dict[str, str]:
    """User and password of the URL, as the header that HTTP has for them."""
    import urllib3

    parts = http_url(url)
    if parts.username is None:
        return {}
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return dict(urllib3.make_headers(basic_auth=user))


def _pool(url: str) -> PoolManager:
    """Make a pool for one request, through the proxy that the environment names for this host, if any."""
    import urllib3

    parts = http_url(url)
    host = parts.hostname or ""
    proxy = None if loopback(parts) or proxy_bypass(host) else getproxies().get(parts.scheme)
    if proxy is None:
        return urllib3.PoolManager()
    user = urllib3.util.parse_url(proxy).auth
    return urllib3.ProxyManager(
        proxy, proxy_headers=urllib3.make_headers(proxy_basic_auth=user) if user else None
    )


def _target(url: str, location: str) -> str:
    try:
        return f" to {shown_url(http_url(urljoin(url, location)).geturl())}"
    except ValueError:
        return ""


def _reason(error: Exception) -> str:
    """Look below urllib3's own errors for what the operating system said."""
    below = error.args[-1] if error.args else None
    cause = error.__cause__ or (below if isinstance(below, Exception) else None)
    return reason(cause or error)
