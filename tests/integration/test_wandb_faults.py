"""A W&B server that misbehaves, and a client that hangs or dies: each is an error in words, within bounds."""

import os
import signal
import time

import pytest

from tests.support.faulty_http import Fault
from tests.support.process import wait_until
from tests.support.processes import descendants, gone
from tests.support.wandb_standin import KEY, WandbStandIn
from wtwin_adapters import wandb_api_http
from wtwin_adapters.wandb_api import WandbSource
from wtwin_adapters.wandb_api_options import WandbOptions
from wtwin_adapters.wandb_child import Child, ClientFailed, child_environment
from wtwin_watch.errors import SourceError

pytest.importorskip("wandb", reason="needs the wandb client")
pytestmark = pytest.mark.integration

LIST, PAGE = "#Runs", "#HistoryPage"
FOR_EVER = 1_000
LISTING = {"project": "myteam/llm", "filters": {}, "per_page": 50}


@pytest.fixture(scope="module")
def wandb():
    with WandbStandIn() as standin:
        yield standin


@pytest.fixture(scope="module")
def watched(wandb):
    source = opened(wandb.url, requests_per_minute=1e6)
    yield source
    source.close()


@pytest.fixture
def source(wandb, watched):
    wandb.runs.clear()
    wandb.log("r", [{"loss": float(n)} for n in range(20)])
    yield watched
    wandb.faults.clear()
    rested(watched)


def opened(url, **options):
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("WANDB_API_KEY", KEY)
        return WandbSource("wandb", WandbOptions(project="myteam/llm", base_url=url, **options))


def rested(source):
    """Let the rest be over that the server asked for."""
    source._host.budget._rests_until = 0.0


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(status=429, path=PAGE, times=FOR_EVER), "too many requests"),
        (Fault(status=500, path=PAGE, times=FOR_EVER), "in trouble .HTTP 500"),
        (Fault(status=503, path=PAGE, times=FOR_EVER), "in trouble .HTTP 503"),
        (Fault(status=401, path=PAGE, times=FOR_EVER), "refused the key .401"),
        (Fault(status=403, path=PAGE, times=FOR_EVER), "refused the key .403"),
        (Fault(status=404, path=PAGE, times=FOR_EVER), "answered HTTP 404; check base_url"),
        (Fault(html=True, path=PAGE, times=FOR_EVER), "something else than JSON"),
        (Fault(drop=True, path=PAGE, times=FOR_EVER), "can't be reached"),
        (Fault(truncate=True, accept=True, path=PAGE, times=FOR_EVER), "broke off its answer"),
    ],
    ids=["429", "500", "503", "401", "403", "404", "html", "drop", "truncate"],
)
def test_what_a_server_does_wrong_with_rows_is_an_error_in_words(wandb, source, fault, said):
    (run,) = source.runs()
    cursor = source.fetch(run, None, 100).cursor
    wandb.log("r", [{"loss": 1.0}])
    wandb.faults.append(fault)

    with pytest.raises(SourceError, match=said) as failed:
        source.fetch(run, cursor, 100)

    assert KEY not in str(failed.value)
    wandb.faults.clear()
    rested(source)
    assert len(source.fetch(run, cursor, 100).points) == 1


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(status=429, path=LIST, times=FOR_EVER), "429|too many requests"),
        (Fault(status=500, path=LIST, times=FOR_EVER), "500"),
        (Fault(status=401, path=LIST, times=FOR_EVER), "refused the key .401"),
        (Fault(html=True, path=LIST, times=FOR_EVER), "invalid character"),
        (
            Fault(status=200, body='{"errors": [{"message": "no such field"}]}', path=LIST),
            "no such field",
        ),
    ],
    ids=["429", "500", "401", "html", "graphql"],
)
def test_what_a_server_does_wrong_with_the_list_is_an_error_in_words(wandb, source, fault, said):
    wandb.faults.append(fault)

    with pytest.raises(SourceError, match=said) as failed:
        list(source.runs())

    assert KEY not in str(failed.value)
    wandb.faults.clear()
    assert [run.name for run in source.runs()] == ["r"]


def test_a_rest_that_a_server_asks_for_is_told_and_kept_to(wandb, source):
    (run,) = source.runs()
    cursor = source.fetch(run, None, 100).cursor
    wandb.faults.append(Fault(status=429, headers={"Retry-After": "3600"}, path=PAGE))

    with pytest.raises(SourceError, match="wants none for 60 s") as failed:
        source.fetch(run, cursor, 100)
    assert failed.value.retry_after_s == 60

    asked = len(wandb.requests)
    with pytest.raises(SourceError, match="is given a rest of"):
        source.fetch(run, cursor, 100)
    assert len(wandb.requests) == asked


def test_an_answer_of_another_form_is_left_to_the_client(wandb, source):
    (run,) = source.runs()
    wandb.asked.clear()
    unknown = '{"errors": [{"message": "Unknown argument minStep"}]}'
    wandb.faults.append(Fault(status=200, body=unknown, path=PAGE))

    batch = source.fetch(run, None, 100)

    assert [point.value for point in batch.points] == [float(n) for n in range(20)]
    assert wandb.count("RunParquetHistory") > 0


def test_a_server_that_says_nothing_costs_a_bounded_time(wandb, source, monkeypatch):
    monkeypatch.setattr(wandb_api_http, "REQUEST_S", 0.5)
    (run,) = source.runs()
    cursor = source.fetch(run, None, 100).cursor
    wandb.faults.append(Fault(hang=True, path=PAGE))

    with pytest.raises(SourceError, match="can't be reached"):
        source.fetch(run, cursor, 100)


def test_a_server_that_is_not_there_is_an_error_in_words():
    with WandbStandIn() as standin:
        address = standin.url
    lost = opened(address)

    with pytest.raises(SourceError, match=f"W&B at {address}"):
        list(lost.runs())

    lost.close()


# -- the client's process ----------------------------------------------------------------------------


def client(wandb, call_s=30.0):
    return Child(child_environment(os.environ, wandb.url, KEY), call_s)


def test_a_helper_that_is_killed_is_replaced_without_a_word(source):
    list(source.runs())
    first = source._host.pid
    for pid in descendants(first):
        os.kill(pid, signal.SIGKILL)

    assert [run.name for run in source.runs()] == ["r"]
    assert source._host.pid != first


def test_a_client_that_is_killed_is_started_again_without_a_word(source):
    list(source.runs())
    first = source._host.pid
    os.kill(first, signal.SIGKILL)

    assert [run.name for run in source.runs()] == ["r"]
    assert source._host.pid != first


@pytest.mark.parametrize(
    "fault",
    [Fault(hang=True, path=LIST), Fault(status=429, headers={"Retry-After": "3600"}, path=LIST)],
    ids=["hang", "Retry-After 3600"],
)
def test_a_client_that_waits_too_long_is_ended_with_its_helper_and_started_again(
    wandb, source, fault
):
    child = client(wandb, call_s=1.0)
    try:
        child.ask("runs", 40, **LISTING)
        wandb.faults.append(fault)
        pids = [child.pid, *descendants(child.pid)]
        assert len(pids) > 1

        began = time.monotonic()
        with pytest.raises(SourceError, match="gave no answer in time and was ended"):
            child.ask("runs", 40, **LISTING)

        assert time.monotonic() - began < 40
        assert wait_until(lambda: all(map(gone, pids)))
        assert len(child.ask("runs", 40, **LISTING)["runs"]) == 1
    finally:
        child.close()


def test_a_client_that_grows_too_large_is_started_anew(wandb, monkeypatch):
    monkeypatch.setattr("wtwin_adapters.wandb_child.MOST_MEMORY", 1)
    child = client(wandb)
    try:
        assert child.ask("runs", 40, **LISTING)["memory"] > 1 << 20
        assert child.pid is None
    finally:
        child.close()


def test_a_client_without_a_key_says_so_at_once(wandb, tmp_path):
    places = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    child = Child(child_environment({**places, "HOME": str(tmp_path)}, wandb.url, None))
    try:
        with pytest.raises(ClientFailed) as failed:
            child.ask("runs", 40, **LISTING)
        assert failed.value.kind == "UsageError"
    finally:
        child.close()


def test_the_client_gets_no_secret_but_its_own():
    env = child_environment(
        {"SLACK_BOT_TOKEN": "xoxb", "HOME": "/h", "WANDB_MODE": "offline", "WANDB_RUN_ID": "x"},
        "http://x",
        KEY,
    )

    assert env["WANDB_API_KEY"] == KEY
    assert env["HOME"] == "/h"
    assert {"SLACK_BOT_TOKEN", "WANDB_MODE", "WANDB_RUN_ID"}.isdisjoint(env)


def test_nobody_is_left_behind_when_the_client_is_closed(wandb):
    child = client(wandb)
    child.ask("runs", 40, **LISTING)
    pids = [child.pid, *descendants(child.pid)]

    child.close()

    assert wait_until(lambda: all(map(gone, pids)))
    with pytest.raises(SourceError, match="was ended"):
        child.ask("runs", 40, **LISTING)
