import gzip
import io
import math
import time

import pytest
import urllib3

from wtwin_adapters.pools import TooLarge, TooSlow, pool_for, whole_answer


@pytest.fixture(autouse=True)
def _proxy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("https_proxy", "http://me:pass@proxy.example.test:3128")
    monkeypatch.setenv("no_proxy", ".internal.test")


def test_a_tracker_is_reached_through_the_proxy_with_its_login():
    pool = pool_for("https://tracker.example.test", 3)

    assert isinstance(pool, urllib3.ProxyManager)
    assert pool.proxy is not None
    assert (pool.proxy.host, pool.proxy.port) == ("proxy.example.test", 3128)
    assert pool.proxy_headers == {"proxy-authorization": "Basic bWU6cGFzcw=="}


@pytest.mark.parametrize(
    "url",
    ["https://localhost:8080", "https://127.0.0.1", "https://[::1]:1", "https://a.internal.test"],
)
def test_this_machine_and_hosts_that_need_none_are_reached_without(url: str):
    assert not isinstance(pool_for(url, 3), urllib3.ProxyManager)


def _answer(content: bytes, **headers: str) -> urllib3.HTTPResponse:
    return urllib3.HTTPResponse(io.BytesIO(content), headers, preload_content=False)


def test_an_answer_is_read_whole_and_unpacked():
    packed = _answer(gzip.compress(b"loss" * 100_000), **{"content-encoding": "gzip"})

    assert whole_answer(packed, 400_000, math.inf) == b"loss" * 100_000


def test_an_answer_is_bounded_by_what_it_unpacks_to_and_its_connection_is_closed():
    packed = _answer(gzip.compress(b"loss" * 100_000), **{"content-encoding": "gzip"})

    with pytest.raises(TooLarge):
        whole_answer(packed, 399_999, math.inf)
    assert packed.closed


def test_an_answer_that_is_still_coming_when_its_time_is_over_is_given_up():
    slow = _answer(b"loss")

    with pytest.raises(TooSlow):
        whole_answer(slow, 100, time.monotonic() - 1)
    assert slow.closed
