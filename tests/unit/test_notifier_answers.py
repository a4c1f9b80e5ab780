"""What an HTTP answer says about trying again."""

import ssl
from urllib.error import URLError

import pytest

from wtwin_notifiers.answers import MAX_RETRY_AFTER_S, reason, retry_after, worth_retrying

NOW = 1_445_412_480.0  # Wed, 21 Oct 2015 07:28:00 GMT, the example of RFC 9110


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        ("120", 120.0),
        (" 1.5 ", 1.5),
        ("0", 0.0),
        ("Wed, 21 Oct 2015 07:29:30 GMT", 90.0),
        ("Wed, 21 Oct 2015 07:29:30 -0000", 90.0),
        ("Wed, 21 Oct 2015 09:29:30 +0200", 90.0),
        ("Wed, 21 Oct 2015 07:00:00 GMT", 0.0),
        ("9" * 5000, MAX_RETRY_AFTER_S),
        ("999999999", MAX_RETRY_AFTER_S),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MAX_RETRY_AFTER_S),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header, wait_s):
    assert retry_after(header, NOW) == wait_s


@pytest.mark.parametrize(
    "header",
    [
        *(None, "", "soon", "-5", "nan", "inf", "1e9", "\u0661\u0662", "12:30", "0x10"),
        "Wed, 99 Oct 2015 07:28:00 GMT",
    ],
)
def test_a_retry_after_that_is_neither_is_ignored(header):
    assert retry_after(header, NOW) is None


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 599])
def test_a_busy_or_broken_receiver_is_tried_again(status):
    assert worth_retrying(status)


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 410, 413, 422])
def test_a_receiver_that_declines_is_not_tried_again(status):
    assert not worth_retrying(status)


def test_a_reason_quotes_the_system_but_no_other_error():
    assert (
        reason(URLError(ConnectionRefusedError(111, "Connection refused"))) == "Connection refused"
    )
    assert reason(URLError(TimeoutError())) == "timed out"
    assert reason(ValueError("Invalid header value b'Bearer xoxb-secret'")) == "ValueError"
    assert reason(URLError("unknown url type: https://u:p@host")) == "URLError"
    assert "certificate" in reason(URLError(ssl.SSLError(1, "certificate verify failed")))
