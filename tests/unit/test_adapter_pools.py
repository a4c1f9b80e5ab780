import pytest
import urllib3

from wtwin_adapters.pools import pool_for


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
