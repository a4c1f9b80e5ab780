"""Connections to a tracker, through the proxy that the environment names for it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3

_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def pool_for(url: str, connections: int, **given: Any) -> urllib3.PoolManager:
    """Make a pool of so many connections to the host of ``url``; ``given`` goes to urllib3.

    A proxy's user and password are sent to the proxy. This very machine is reached without one.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxy = None if host in _HERE or proxy_bypass(host) else getproxies().get(parts.scheme)
    if proxy is None:
        return urllib3.PoolManager(maxsize=connections, **given)
    user = urllib3.util.parse_url(proxy).auth
    auth = urllib3.make_headers(proxy_basic_auth=user) if user else None
    return urllib3.ProxyManager(proxy, proxy_headers=auth, maxsize=connections, **given)
