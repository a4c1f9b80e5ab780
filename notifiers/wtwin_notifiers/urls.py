"""Addresses of receivers, checked when the settings are read. No message quotes one: it may hold a secret."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

_PRINTABLE = re.compile(r"[\x21-\x7e]+", re.ASCII)


def http_url(url: str) -> SplitResult:
    """Split an http or https URL. Raises ValueError saying what is wrong with it."""
    if not _PRINTABLE.fullmatch(url):
        raise ValueError("a URL is printable ASCII without spaces")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError("not a URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("a URL starts with https:// (or http://) and a host")
    return parts


def loopback(parts: SplitResult) -> bool:
    """Whether the URL names this very machine."""
    host = parts.hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def encrypted_url(url: str) -> SplitResult:
    """Split a URL that is https, or http on loopback. Raises ValueError saying what is wrong with it."""
    parts = http_url(url)
    if parts.scheme != "https" and not loopback(parts):
        raise ValueError("http:// is only for this very machine; use https://")
    return parts


def check_bare_url(key: str, url: str) -> str:
    """Return an encrypted URL that holds no secret. Raises ValueError, naming the ``key`` of the setting."""
    parts = encrypted_url(url)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(f"{key} has no user, password, query or fragment")
    return url
