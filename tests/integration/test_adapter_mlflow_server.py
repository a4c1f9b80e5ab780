"""The adapter `mlflow` on a real server, written to by MLflow's own client."""

import json
import math
import random
from dataclasses import replace

import pytest

from tests.support.mlflow_fixtures import everything, only, steps_of
from tests.support.mlflow_server import NOW_MS
from wtwin_adapters import mlflow_search
from wtwin_adapters.mlflow_server import MlflowSource
from wtwin_watch.errors import SourceError
from wtwin_watch.model import Point, Run, RunKey, RunStatus
from wtwin_watch.testing import check_adapter, points_of, read_on

pytestmark = pytest.mark.integration


def stored(cursor):
    return json.loads(json.dumps(cursor))


def test_the_adapter_for_mlflow_keeps_the_contract(mlflow_here):
    job, run, empty = mlflow_here.job, mlflow_here.run(), mlflow_here.run()
    job.log(run, [1 / (1 + i) for i in range(40)])
    job.log(run, [0.1] * 20, "lr", each_ms=2000)
    job.log(run, [0.5, math.nan], "val/loss", first=10, at=NOW_MS + 10_000, each_ms=10_000)
    job.log(run, [0.7] * 9, first=20, at=NOW_MS + 100_000)

    points = check_adapter(mlflow_here.source)

    assert {run: len(found) for run, found in points.items()} == {run: 40 + 20 + 2 + 9, empty: 0}


def test_what_is_read_is_what_mlflows_client_reads(mlflow_here):
    job, run = mlflow_here.job, mlflow_here.run()
    rng = random.Random(7)
    rows = [["loss", rng.random(), NOW_MS + 10 * i, i * 3 - 2000] for i in range(4000)]
    job.rows(run, rows)

    points = points_of(everything(mlflow_here.source()))

    theirs = job.call("get_metric_history", run, "loss")
    assert points == [Point("loss", float(s), v, t / 1000) for _, v, t, s in theirs]
    assert len(points) == 4000


def test_a_look_tells_what_a_person_wants_to_know_of_a_run(mlflow_here):
    job = mlflow_here.job
    run = mlflow_here.run("bright-owl-7", {"team": "llm", "mlflow.parentRunId": "p" * 32})
    job.log(run, [1.0, 2.0], at=NOW_MS)

    found = only(mlflow_here.source())

    url = f"{mlflow_here.server.uri}/#/experiments/{mlflow_here.number}/runs/{run}"
    assert replace(found, version=None) == Run(
        RunKey("mlflow", run),
        "bright-owl-7",
        project=mlflow_here.experiment,
        status=RunStatus.RUNNING,
        url=url,
        last_activity=NOW_MS / 1000 + 1,
        group="p" * 32,
        tags=("team=llm",),
    )


@pytest.mark.parametrize("status", ["FINISHED", "FAILED", "KILLED"])
def test_a_run_that_ended_is_still_listed_with_how_it_ended(mlflow_here, status):
    run = mlflow_here.run()
    mlflow_here.job.call("set_terminated", run, status)

    assert only(mlflow_here.source()).status == RunStatus[status]


def test_a_run_that_ended_long_ago_is_not_listed(mlflow_here):
    run = mlflow_here.run()
    mlflow_here.job.call("set_terminated", run, "FINISHED", NOW_MS - 10**9)

    assert list(mlflow_here.source().runs()) == []


def test_a_killed_run_is_running_for_ever_but_its_last_point_grows_old(mlflow_here):
    run = mlflow_here.run()
    mlflow_here.job.log(run, [1.0], at=NOW_MS - 86_400_000 * 30)

    found = only(mlflow_here.source())

    assert found.status is RunStatus.RUNNING
    assert found.last_activity == NOW_MS / 1000 - 86_400 * 30


def test_a_deleted_run_is_not_listed(mlflow_here):
    run, other = mlflow_here.run(), mlflow_here.run()
    mlflow_here.job.call("delete_run", run)

    assert [found.key.run for found in mlflow_here.source().runs()] == [other]


def test_a_run_that_is_not_on_the_server_is_an_error_though_its_history_is_answered(mlflow_here):
    source = mlflow_here.source()

    with pytest.raises(SourceError, match=r"run f{32} isn't on the server any more"):
        source.fetch(Run(RunKey("mlflow", "f" * 32), "gone"), None, 10)


def test_experiments_are_found_by_name_or_id_and_left_out_all_of_them_are(mlflow_here):
    run = mlflow_here.run()

    for experiments in (mlflow_here.experiment, [mlflow_here.number], []):
        listed = {r.key.run: r for r in mlflow_here.source(experiments=experiments).runs()}
        assert listed[run].project == mlflow_here.experiment


def test_an_experiment_that_is_not_there_is_an_error_that_names_those_that_are(mlflow_here):
    with pytest.raises(SourceError, match=r"no active experiment 'nope'.*there is: .*Default"):
        mlflow_here.source(experiments="nope").runs()


def test_one_of_several_experiments_that_is_not_there_does_not_hide_the_others(mlflow_here):
    run = mlflow_here.run()
    source = mlflow_here.source(experiments=[mlflow_here.experiment, "nope"])

    found, missing = source.runs()

    assert found.key.run == run
    with pytest.raises(SourceError, match="no active experiment 'nope'"):
        source.fetch(missing, None, 10)
    mlflow_here.job.experiment("nope")
    assert [r.key.run for r in source.runs()] == [run]


def test_a_filter_in_mlflows_language_chooses_runs(mlflow_here):
    mlflow_here.run("a", {"team": "vision"})
    run = mlflow_here.run("b", {"team": "llm"})

    assert only(mlflow_here.source(filter="tags.team = 'llm'")).key.run == run
    with pytest.raises(SourceError, match=r"HTTP 400.*Invalid clause"):
        mlflow_here.source(filter="bogus !").runs()


def test_a_page_of_runs_may_be_followed_by_others(mlflow_here, monkeypatch):
    monkeypatch.setattr(mlflow_search, "PAGE", 2)
    runs = [mlflow_here.run() for _ in range(5)]

    assert [found.key.run for found in mlflow_here.source().runs()] == runs


def test_the_version_changes_when_a_wanted_metric_moves_and_at_nothing_else(mlflow_here):
    job, run, source = mlflow_here.job, mlflow_here.run(), mlflow_here.source()
    job.log(run, [1.0], at=NOW_MS)
    before = only(source).version

    job.log(run, [1.0], "system/gpu", first=9)
    assert only(source).version == before
    job.log(run, [1.0], first=1, at=NOW_MS + 1000)
    assert only(source).version != before


def test_what_is_new_is_read_once_over_many_fetches_and_starts(mlflow_here):
    job, run, source = mlflow_here.job, mlflow_here.run(), mlflow_here.source()
    points, cursor = [], None
    for begin in range(0, 3000, 300):
        job.log(
            run,
            [float(i) for i in range(begin, begin + 300)],
            first=begin,
            at=NOW_MS + begin * 1000,
        )
        job.log(run, [0.1] * 30, "lr", first=begin, at=NOW_MS + begin * 1000, each_ms=10_000)
        if begin % 900 == 0:
            source = mlflow_here.source()
        batches = read_on(source, only(source), cursor, limit=250)
        cursor = stored(batches[-1].cursor)
        points += points_of(batches)

    assert [p.value for p in points if p.metric == "loss"] == [float(i) for i in range(3000)]
    assert sum(p.metric == "lr" for p in points) == 300


def test_infinity_nan_and_negative_zero_come_as_they_were_logged(mlflow_here):
    run = mlflow_here.run()
    mlflow_here.job.log(run, [math.inf, -math.inf, math.nan, -0.0, 1e300])

    values = [p.value for p in points_of(everything(mlflow_here.source()))]

    assert [repr(v) for v in values] == ["inf", "-inf", "nan", "0.0", "1e+300"]


def test_names_with_slashes_and_spaces_are_read(mlflow_here):
    run = mlflow_here.run()
    mlflow_here.job.log(run, [1.0], "my odd/loss: part 1.0")

    batches = everything(mlflow_here.source(loss="my odd/loss: part 1.0"))

    assert [p.metric for p in points_of(batches)] == ["my odd/loss: part 1.0"]


def test_negative_and_very_large_steps_are_steps(mlflow_here):
    run = mlflow_here.run()
    mlflow_here.job.log(run, [1.0, 2.0, 3.0], first=-2)
    mlflow_here.job.log(run, [4.0, 5.0], first=2**40, at=NOW_MS + 5000)

    for limit in (1, 100):
        assert steps_of(everything(mlflow_here.source(), limit)) == [-2, -1, 0, 2**40, 2**40 + 1]


def test_rows_without_steps_are_counted(mlflow_here):
    job, run, source = mlflow_here.job, mlflow_here.run(), mlflow_here.source()
    rows = [["loss", float(i), NOW_MS + i, 0] for i in range(3000)]
    job.rows(run, rows[:10])
    batches = everything(source)
    job.rows(run, rows[10:])
    batches += read_on(source, only(source), stored(batches[-1].cursor), limit=700)

    assert [(p.step, p.value) for p in points_of(batches)] == [(i, i) for i in range(3000)]
    assert batches[-1].step_name == "row number"


def test_several_rows_of_one_step_are_all_read_even_if_they_are_more_than_a_window_holds(
    mlflow_here,
):
    job, run = mlflow_here.job, mlflow_here.run()
    job.log(run, [0.0] * 100)
    flood = [["loss", float(i), NOW_MS + 100_000 + i, 100] for i in range(2600)]
    job.rows(run, flood)
    job.log(run, [0.0] * 100, first=101, at=NOW_MS + 200_000)

    steps = steps_of(everything(mlflow_here.source()))

    assert steps == [*range(100), *[100] * 2600, *range(101, 201)]


@pytest.mark.parametrize("count", [2499, 2500, 2501, 5000])
def test_an_answer_that_may_be_a_sample_is_asked_for_in_parts(mlflow_here, count):
    job, run, source = mlflow_here.job, mlflow_here.run(), mlflow_here.source()
    job.log(run, [1.0] * 40, each_ms=1)
    batches = everything(source)
    # Far apart at first and close together then, so that guesses of how many there are go wrong.
    job.log(run, [2.0] * count, first=10_000, at=NOW_MS + 50_000, each_ms=1)
    batches += read_on(source, only(source), batches[-1].cursor)

    assert steps_of(batches) == [*range(40), *range(10_000, 10_000 + count)]


def test_a_gap_of_a_million_steps_is_crossed(mlflow_here):
    job, run = mlflow_here.job, mlflow_here.run()
    job.log(run, [1.0] * 1100, each_ms=1)
    job.log(run, [1.0] * 5, first=10**6, at=NOW_MS + 10_000)

    assert steps_of(everything(mlflow_here.source())) == [*range(1100), *range(10**6, 10**6 + 5)]


def test_rows_logged_late_and_exact_duplicates_come_once(mlflow_here):
    job, run, source = mlflow_here.job, mlflow_here.run(), mlflow_here.source()
    late = ["loss", 99.0, NOW_MS + 95_500, 95]
    job.rows(run, [["loss", float(i), NOW_MS + 1000 * i, i] for i in range(100)])
    batches = everything(source)
    job.rows(run, [late, ["loss", 100.0, NOW_MS + 100_000, 100]])
    batches += read_on(source, only(source), batches[-1].cursor)
    job.rows(run, [late, ["loss", 101.0, NOW_MS + 101_000, 101]])
    batches += read_on(source, only(source), batches[-1].cursor)

    points = points_of(batches)
    assert [p.value for p in points] == [*map(float, range(100)), 99.0, 100.0, 101.0]
    assert all(batch.restart is None for batch in batches)


def test_rows_logged_too_late_are_counted_and_nothing_comes_twice(mlflow_here):
    job, run, source = mlflow_here.job, mlflow_here.run(), mlflow_here.source()
    job.log(run, [1.0] * 100)
    batches = everything(source)
    job.rows(run, [["loss", 9.0, NOW_MS + 10_500, 10], ["loss", 9.0, NOW_MS + 11_500, 11]])
    # Steps go back, so the rows are looked for by their time.
    job.log(run, [2.0] * 80, first=30, at=NOW_MS + 500_000)
    batches += read_on(source, only(source), batches[-1].cursor)

    assert steps_of(batches) == [*range(100), *range(30, 110)]
    assert [batch.skipped for batch in batches if batch.skipped] == [{"logged too late": 2}]


def test_a_resume_at_a_lower_step_is_a_restart_there(mlflow_here):
    job, run, source = mlflow_here.job, mlflow_here.run(), mlflow_here.source()
    job.log(run, [1.0] * 100)
    job.log(run, [0.1] * 100, "lr")
    batches = everything(source)
    job.log(run, [2.0] * 90, first=60, at=NOW_MS + 500_000)
    job.log(run, [0.2] * 90, "lr", first=60, at=NOW_MS + 500_000)
    batches += read_on(source, only(source), batches[-1].cursor, limit=50)

    restarts = [batch.restart for batch in batches if batch.restart]
    assert [(r.reason, r.step) for r in restarts] == [("steps go back from 99 to 60", 60.0)]
    loss = [p.step for p in points_of(batches) if p.metric == "loss"]
    assert loss == [*range(100), *range(60, 150)]


def test_a_history_with_a_resume_in_it_is_read_in_the_order_of_its_time(mlflow_here):
    job, run = mlflow_here.job, mlflow_here.run()
    job.log(run, [1.0] * 1500, each_ms=1)
    job.log(run, [2.0] * 3000, first=1100, at=NOW_MS + 60_000, each_ms=1)

    for limit in (999, 5000):
        batches = everything(mlflow_here.source(), limit)
        assert steps_of(batches) == [*range(1500), *range(1100, 4100)]
        assert [b.restart.step for b in batches if b.restart] == [1100.0]


class Later:
    """The present time, and some hours more."""

    def __init__(self, now_s):
        self.now_s = now_s

    def time(self):
        return self.now_s

    def monotonic(self):
        return self.now_s


def test_a_resume_below_the_highest_step_is_noticed_though_the_latest_row_stands_still(mlflow_here):
    job, run = mlflow_here.job, mlflow_here.run()
    clock = Later(NOW_MS / 1000 + 100)
    options = mlflow_here.source()._options
    source = MlflowSource("mlflow", options, clock)
    job.log(run, [1.0] * 100)
    first = only(source)
    batches = read_on(source, first)
    job.log(run, [2.0] * 10, first=50, at=NOW_MS + 200_000)
    assert only(source).version == first.version

    clock.now_s += 500
    assert only(source).version != first.version
    batches += read_on(source, only(source), batches[-1].cursor)
    assert steps_of(batches) == [*range(100), *range(50, 60)]

    # From now on it is looked into each time, until it has come to where it was.
    assert only(source).version is None
    job.log(run, [2.0] * 50, first=60, at=NOW_MS + 700_000)
    batches += read_on(source, only(source), batches[-1].cursor)
    assert only(source).version is not None
    assert steps_of(batches) == [*range(100), *range(50, 110)]


def test_a_resume_on_a_machine_whose_clock_is_behind_is_read(mlflow_here):
    job, run, source = mlflow_here.job, mlflow_here.run(), mlflow_here.source()
    job.log(run, [1.0] * 200)
    batches = everything(source)
    job.log(run, [2.0] * 20, first=200, at=NOW_MS + 100_500, each_ms=1)
    batches += read_on(source, only(source), batches[-1].cursor)
    job.log(run, [2.0] * 20, first=220, at=NOW_MS + 101_500, each_ms=1)
    batches += read_on(source, only(source), batches[-1].cursor)

    assert steps_of(batches) == list(range(240))
