"""The W&B source with the genuine client, against the stand-in: it lists, reads, and equals the client."""

import math
import random
from pathlib import Path

import pytest

from tests.support.wandb_history import losses_of
from tests.support.wandb_standin import KEY, WandbStandIn, iso
from wtwin_adapters.wandb_api import WandbSource
from wtwin_adapters.wandb_api_options import WandbOptions
from wtwin_watch.errors import SourceError
from wtwin_watch.model import RunStatus
from wtwin_watch.testing import check_adapter, points_of, read_on

pytest.importorskip("wandb", reason="needs the wandb client")
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def wandb():
    with WandbStandIn() as standin:
        yield standin


@pytest.fixture(scope="module")
def _client(wandb):
    """Keeps the client's process for all tests of the module."""
    source = open_source(wandb)
    yield
    source.close()


@pytest.fixture
def source(wandb, _client):
    wandb.runs.clear()
    wandb.asked.clear()
    source = open_source(wandb)
    yield source
    source.close()


def open_source(wandb, **options):
    given = {"project": "myteam/llm", "base_url": wandb.url, "requests_per_minute": 1e6, **options}
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("WANDB_API_KEY", KEY)
        return WandbSource("wandb", WandbOptions(**given))


def losses(count, start=0.0):
    return [{"loss": start + n, "lr": 0.1} for n in range(count)]


def test_a_listed_run_says_what_wandb_knows_of_it(wandb, source):
    wandb.run("ab12", displayName="llm-7b", tags=["big"], group="g", state="crashed")
    wandb.log("ab12", losses(3))

    (run,) = source.runs()

    assert (run.key.source, run.key.run) == ("wandb", "myteam/llm/ab12")
    assert (run.name, run.project, run.group) == ("llm-7b", "myteam/llm", "g")
    assert run.tags == ("big",)
    assert run.status is RunStatus.CRASHED
    assert run.url == f"{wandb.url}/myteam/llm/runs/ab12"
    assert iso(run.last_activity) == wandb.run("ab12").heartbeatAt


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("running", RunStatus.RUNNING),
        ("finished", RunStatus.FINISHED),
        ("failed", RunStatus.FAILED),
        ("killed", RunStatus.KILLED),
        ("preempted", RunStatus.PREEMPTED),
        ("pending", RunStatus.UNKNOWN),
    ],
)
def test_a_state_of_wandb_is_a_state_of_a_run(wandb, source, state, status):
    wandb.run("r", state=state)

    assert [run.status for run in source.runs()] == [status]


def test_a_run_that_begins_later_is_listed(wandb, source):
    wandb.run("a")
    assert [run.name for run in source.runs()] == ["a"]

    wandb.run("b")
    assert [run.name for run in source.runs()] == ["a", "b"]


def test_a_run_that_logs_changes_its_version(wandb, source):
    wandb.log("a", losses(3))
    (before,) = source.runs()
    (same,) = source.runs()
    wandb.log("a", losses(1))
    (after,) = source.runs()

    assert before.version == same.version != after.version


def test_runs_that_ended_long_ago_are_not_listed(wandb, source):
    wandb.run("old", state="finished", heartbeatAt="2026-01-01T00:00:00Z")
    wandb.run("waiting", heartbeatAt="2026-01-01T00:00:00Z")
    wandb.run("new", state="finished")

    assert [run.name for run in source.runs()] == ["waiting", "new"]


def test_filters_are_put_to_the_server(wandb, source):
    wandb.run("a", tags=["x"], sweepName="s", group="g")
    wandb.run("b", tags=["y"])
    picky = open_source(wandb, tag=["x", "z"], sweep="s", group="g", state="running", run_name="?")

    assert [run.name for run in picky.runs()] == ["a"]

    picky.close()
    assert "sweep" in wandb.asked[-1].variables["filters"]


def test_thousands_of_runs_are_listed_by_the_hundred(wandb, source):
    for number in range(2_000):
        wandb.run(f"r{number}")

    assert len(list(source.runs())) == 2_000
    assert wandb.count("Runs") == 20


def test_several_projects_share_the_client_and_the_budget(wandb, source):
    wandb.run("a")
    wandb._run("other", "vision", "b")
    both = open_source(wandb, project=["myteam/llm", "other/vision"])

    assert [run.key.run for run in both.runs()] == ["myteam/llm/a", "other/vision/b"]
    assert both._host is source._host

    both.close()
    assert [run.name for run in source.runs()] == ["a"]


def test_a_project_that_is_not_there_is_an_error_that_names_it(wandb, source):
    lost = open_source(wandb, project="myteam/lim")

    with pytest.raises(SourceError, match="shows no project myteam/lim: check its spelling"):
        list(lost.runs())

    lost.close()


def test_a_run_that_is_deleted_between_list_and_fetch_is_an_error(wandb, source):
    wandb.log("a", losses(3))
    (run,) = source.runs()
    wandb.delete("a")

    with pytest.raises(SourceError, match="the run a is no longer in myteam/llm"):
        source.fetch(run, None, 100)


def test_the_source_keeps_the_contract(wandb, source):
    wandb.log("live", losses(10))
    wandb.log("live", [{"loss": math.nan}, {"images": 1}, {"val_loss": 1.0}, {"loss": None}])
    wandb.log("done", losses(10))
    wandb.export("done")
    wandb.run("done", state="finished")
    wandb.log("half", losses(10))
    wandb.export("half", below=5)
    wandb.run("empty")

    points = check_adapter(lambda: open_source(wandb), limits=(1, 100_000))

    counts = {run.rpartition("/")[2]: len(found) for run, found in points.items()}
    assert counts == {"live": 24, "done": 20, "half": 20, "empty": 0}


def test_a_base_url_may_end_with_a_slash(wandb, source):
    wandb.log("a", losses(3))
    slashed = open_source(wandb, base_url=wandb.url + "/")
    (run,) = slashed.runs()

    assert len(slashed.fetch(run, None, 100).points) == 6

    slashed.close()


def random_row(chance, step):
    row = {"_step": step}
    if chance.random() < 0.9:
        row["loss"] = chance.choice([math.nan, math.inf, -math.inf, 1, 0.1 + 0.2, 1e-300, -3.5])
    if chance.random() < 0.3:
        row["val_loss"] = chance.choice([2, 2.5, None])
    if chance.random() < 0.5:
        row["train"] = {"lr": chance.random(), "note": "text"}
    return row


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gap", [1, 50])
def test_rows_by_own_requests_are_those_of_the_client(wandb, source, seed, gap):
    chance = random.Random(seed)
    steps = sorted(chance.sample(range(300 * gap), 200))
    wandb.log("r", [random_row(chance, step) for step in steps])
    (run,) = source.runs()

    own = points_of(read_on(source, run, limit=77))
    wandb.asked.clear()
    scanned = source._host.ask("scan", 30, project="myteam/llm", run="r", min_step=0, rows=1_000)[
        "rows"
    ]

    assert {asked.agent for asked in wandb.asked} == {"W&B Public Client 0.31.0"}
    assert [(p.step, repr(p.value)) for p in own if p.metric == "loss"] == [
        (step, repr(loss)) for step, loss in losses_of(scanned)
    ]
    assert [p.step for p in own if p.metric == "val_loss"] == [
        row["_step"] for row in scanned if row.get("val_loss") is not None
    ]
    nested = [(row["_step"], row["train"]["lr"]) for row in scanned if "train" in row]
    assert [(p.step, p.value) for p in own if p.metric == "train.lr"] == nested


def test_exported_rows_that_the_server_gives_twice_count_once(wandb, source):
    wandb.log("r", losses(1_200))
    wandb.export("r", below=900)
    wandb.run("r").live_from = 0
    (run,) = source.runs()

    assert [p.step for p in points_of(read_on(source, run)) if p.metric == "loss"] == [
        float(step) for step in range(1_200)
    ]


def test_a_run_is_exported_while_it_is_watched(wandb, source):
    wandb.log("r", losses(50))
    (run,) = source.runs()
    first = source.fetch(run, None, 1_000)
    wandb.log("r", losses(50))
    wandb.export("r")

    batches = read_on(source, run, first.cursor)

    assert [p.step for p in points_of(batches) if p.metric == "loss"] == [
        float(step) for step in range(50, 100)
    ]
    assert not any(batch.restart for batch in batches)


def test_a_rewind_at_the_server_restarts_the_run(wandb, source):
    wandb.log("r", losses(100))
    (run,) = source.runs()
    first = source.fetch(run, None, 1_000)
    wandb.rewind("r", 59)
    wandb.log("r", losses(10, 7.0))

    batches = read_on(source, run, first.cursor)

    assert [batch.restart.step for batch in batches if batch.restart] == [60.0]
    assert [p.step for p in points_of(batches) if p.metric == "loss"] == [
        float(step) for step in range(60, 70)
    ]


def test_what_is_new_in_a_long_live_run_costs_one_request(wandb, source):
    wandb.log("r", losses(6_000))
    (run,) = source.runs()
    cursor = read_on(source, run)[-1].cursor
    wandb.log("r", losses(100))
    wandb.asked.clear()

    batch = source.fetch(run, cursor, 5_000)

    assert len(batch.points) == 200
    assert [asked.operation for asked in wandb.asked] == ["HistoryPage"]


def test_the_key_is_in_no_argument_of_the_client(wandb, source):
    list(source.runs())

    arguments = Path(f"/proc/{source._host.pid}/cmdline").read_bytes()

    assert b"wandb_child_main" in arguments
    assert KEY.encode() not in arguments
