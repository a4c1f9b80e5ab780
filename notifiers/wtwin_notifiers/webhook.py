"""A webhook of your own: each event is one signed POST, as Standard Webhooks 1.0 has it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, ClassVar
from urllib.parse import SplitResult, urljoin
from urllib.request import getproxies, proxy_bypass

from pydantic import BeforeValidator, ConfigDict, SecretStr, WithJsonSchema

from wtwin_notifiers import webhook_body
from wtwin_notifiers.answers import reason, retry_after, worth_retrying
from wtwin_notifiers.deadline import Deadline
from wtwin_notifiers.urls import http_url, loopback
from wtwin_watch import protocols
from wtwin_watch.errors import DeliveryError
from wtwin_watch.model import Notification, Receipt
from wtwin_watch.secrets import read_reference, shown_url

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

_CONNECT_TIMEOUT_S = 5.0
_READ_TIMEOUT_S = 10.0
_MOST_SECRETS = 2
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

_REFERENCE_SCHEMA = {"type": "object", "minProperties": 1, "maxProperties": 1}


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


def _read_secrets(given: Any) -> tuple[SecretStr, ...]:
    """Take one signing secret by reference, or the new and the old one while it is being changed."""
    references = given if isinstance(given, (list, tuple)) else [given]
    if not 1 <= len(references) <= _MOST_SECRETS:
        raise ValueError("one secret, or two while it is being changed: [new, old]")
    secrets = tuple(read_reference(reference) for reference in references)
    for secret in secrets:
        webhook_body.signing_key(secret.get_secret_value())
    return secrets


class WebhookOptions(protocols.Options):
    """Where to post, and how to sign."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    url: Annotated[
        SecretStr,
        BeforeValidator(_read_url),
        WithJsonSchema({"anyOf": [{"type": "string", "format": "uri"}, _REFERENCE_SCHEMA]}),
    ]
    """The address: plain, or by reference where it holds a secret (a user, a query, a secret path)."""
    secret: Annotated[
        tuple[SecretStr, ...],
        BeforeValidator(_read_secrets),
        WithJsonSchema(
            {
                "anyOf": [
                    _REFERENCE_SCHEMA,
                    {
                        "type": "array",
                        "items": _REFERENCE_SCHEMA,
                        "minItems": 1,
                        "maxItems": _MOST_SECRETS,
                    },
                ]
            }
        ),
    ] = ()
    """By reference, ``whsec_`` and base64; two while it is being changed. Without it nothing is signed."""


class WebhookNotifier:
    """One address that takes webhooks. Called by one thread at a time."""

    Options: ClassVar[type[protocols.Options]] = WebhookOptions

    min_interval_s = 0.0

    def __init__(self, name: str, options: WebhookOptions) -> None:
        self._name = name
        self._url = options.url.get_secret_value()
        self._keys = [
            webhook_body.signing_key(secret.get_secret_value()) for secret in options.secret
        ]
        self._deadline = Deadline(self.describe())

    def send(self, notification: Notification) -> Receipt:
        """Post one event. Done when the receiver answers 2xx; a redirection isn't followed."""
        return self._deadline.run(lambda: self._send(notification))

    def describe(self) -> str:
        """Say where it goes: scheme and host."""
        return f"webhook at {shown_url(self._url)}"

    def close(self) -> None:
        """Nothing to let go of: every attempt has a connection of its own."""

    def _send(self, notification: Notification) -> Receipt:
        payload = webhook_body.body(notification)
        headers = webhook_body.headers(notification.id, time.time(), payload, self._keys)
        try:
            status, told = self._post(payload, headers)
        except Exception as error:
            # No answer, or nothing that is HTTP. Its text may quote the address, so only its kind is told.
            raise DeliveryError(f"{self.describe()} can't be reached: {_reason(error)}") from None
        if refused := self._refused(status, told):
            raise refused
        return Receipt()

    def _post(self, payload: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
        import urllib3

        # Alerts are hours apart: a connection kept open till then would be dead. The answer's body
        # says nothing we act on, so it is not read.
        with _pool(self._url) as pool:
            answer: BaseHTTPResponse = pool.request(
                "POST",
                self._url,
                body=payload,
                headers={"user-agent": "wtwin-watch", "connection": "close", **headers},
                timeout=urllib3.Timeout(connect=_CONNECT_TIMEOUT_S, read=_READ_TIMEOUT_S),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            answer.close()
            return answer.status, {key.lower(): value for key, value in answer.headers.items()}

    def _refused(self, status: int, headers: dict[str, str]) -> DeliveryError | None:
        """Judge an answer: None for success."""
        if 200 <= status < 300:  # noqa: PLR2004
            return None
        said = f"{self.describe()} answered HTTP {status}"
        if worth_retrying(status):
            wait_s = retry_after(headers.get("retry-after"), time.time())
            return DeliveryError(said, retry_after_s=wait_s)
        cure = f"; check receiver.{self._name}.url and .secret"
        if status == _GONE:
            cure = f": it wants no more webhooks; change or remove receiver.{self._name}"
        elif 300 <= status < 400:  # noqa: PLR2004
            target = _target(self._url, headers.get("location", ""))
            cure = f", a redirection{target}, which is not followed; set receiver.{self._name}.url"
        return DeliveryError(said + cure, permanent=True)


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
