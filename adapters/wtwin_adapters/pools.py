"""Connections to a tracker, through the proxy that the environment names for it, and its answers."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3

_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_PIECE = 1 << 16


class TooLarge(Exception):
    """An answer has more bytes than are read."""


class TooSlow(Exception):
    """An answer wasn't there in time."""


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


def whole_answer(answer: urllib3.BaseHTTPResponse, most_bytes: int, until: float) -> bytes:
    """Read the content of an answer whose request had ``preload_content=False``, unpacked.

    ``until`` is a time of `time.monotonic`. A connection whose answer was read to its end goes back to
    its pool, any other is closed. Raises `TooLarge`, `TooSlow`, and what urllib3 raises.
    """
    pieces, size = [], 0
    try:
        while piece := answer.read1(_PIECE, decode_content=True):  # what has come, not a full piece
            pieces.append(piece)
            size += len(piece)
            if size > most_bytes:
                raise TooLarge
            if time.monotonic() > until:
                raise TooSlow
    except BaseException:
        answer.close()
        raise
    answer.release_conn()
    return b"".join(pieces)
