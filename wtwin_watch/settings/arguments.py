"""Secrets that must not stand on a command line, where every user of the machine can read them."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

_HOOK_HOSTS = re.compile(
    r"(^|\.)(hooks\.slack(-gov)?\.com|discord(app)?\.com|webhook\.office\.com|outlook\.office(365)?\.com"
    r"|logic\.azure\.com|powerplatform\.com|chat\.googleapis\.com|api\.telegram\.org|hooks\.zapier\.com|maker\.ifttt\.com)$"
)
_SECRET_WORDS = re.compile(
    r"token|secret|password|passwd|pwd|api_?key|access_?key|^key$|^sig(nature)?$|^auth$", re.I
)
_TOKENS = re.compile(r"(xox[a-z]-|xapp-|whsec_|ghp_|Bearer )")


def secret_in(argument: str) -> str | None:
    """Say what is secret in a command line's value, without repeating it, or None."""
    if _TOKENS.match(argument):
        return "a token"
    if "://" not in argument:
        return None
    try:
        url = urlsplit(argument)
        host = (url.hostname or "").lower()
        query = parse_qsl(url.query, keep_blank_values=True)
    except ValueError:
        return None
    if url.password is not None:
        return "a password"
    if url.username and url.scheme in {"http", "https"}:
        return "a user name or token"
    if _HOOK_HOSTS.search(host):
        return "a webhook address, which is a secret by itself"
    if any(_SECRET_WORDS.search(name) for name, _ in query):
        return "a token in its query"
    return None
