"""What an HTTP answer, or the lack of one, says about trying again."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.error import URLError

MAX_RETRY_AFTER_S = 3600.0
"""A receiver that asks for more is asked again after an hour: a wrong header must not mute it for days."""

_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)


def retry_after(header: str | None, now: float) -> float | None:
    """Read a ``Retry-After`` header, seconds or an HTTP date, as seconds from ``now``; None for junk.

    Bounded to 0 … `MAX_RETRY_AFTER_S`.
    """
    if header is None:
        return None
    header = header.strip()
    if _SECONDS.fullmatch(header):
        return min(float(header), MAX_RETRY_AFTER_S)
    try:
        when = parsedate_to_datetime(header)
        # A date without a zone counts as GMT, the only zone an HTTP date has.
        wait_s = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(wait_s, 0.0), MAX_RETRY_AFTER_S)


def worth_retrying(status: int) -> bool:
    """Whether the same request may succeed later: the server is busy, broken or in the middle of it."""
    return status in {408, 409, 425, 429} or status >= 500  # noqa: PLR2004


def reason(error: BaseException) -> str:
    """Say why there was no answer, in words that can hold no URL, header or secret.

    Only the operating system and TLS are quoted; of other errors the name of the class alone is told.
    """
    if isinstance(error, URLError) and isinstance(error.reason, BaseException):
        error = error.reason
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
