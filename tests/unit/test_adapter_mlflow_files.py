"""The adapter `mlflow-files`, on stores written by hand."""

import errno
import json
import math
import os
import shutil

import pytest

from tests.support.mlflow_store import NOW_MS, Store
from wtwin_adapters import tree
from wtwin_adapters.mlflow_files import MlflowFilesSource
from wtwin_watch.errors import SourceError
from wtwin_watch.model import Point, Restart, RunStatus
from wtwin_watch.testing import check_adapter, points_of, read_on


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "mlruns")


@pytest.fixture
def run(store):
    return store.run(store.experiment("pre"))


def source(store, **options):
    given = {"path": str(store.folder), **options}
    return MlflowFilesSource("m", MlflowFilesSource.Options.model_validate(given))


def everything(store, limit=10_000):
    watched = source(store)
    [run] = watched.runs()
    return read_on(watched, run, limit=limit)


def read(store):
    return [(point.metric, point.step, point.value) for point in points_of(everything(store))]


def names(store, **options):
    return sorted(run.name for run in source(store, **options).runs())


# -- listing -----------------------------------------------------------------------------------------


def test_a_run_of_a_store_has_its_name_experiment_state_tags_and_parent(store):
    run = store.run(store.experiment("pre training"), "bright-owl")
    run.tag("team", "llm")
    run.tag("mlflow.user", "me")
    run.tag("mlflow.parentRunId", "abc")
    written = run.log([1.0])
    os.utime(written, (1_790_000_500, 1_790_000_500))

    [listed] = source(store).runs()

    assert listed.key.run == f"1001/{run.folder.name}"
    assert (listed.name, listed.project, listed.group) == ("bright-owl", "pre training", "abc")
    assert listed.tags == ("team=llm",)
    assert listed.status is RunStatus.RUNNING
    assert listed.last_activity == 1_790_000_500


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (1, RunStatus.RUNNING),
        (2, RunStatus.UNKNOWN),
        (3, RunStatus.FINISHED),
        (4, RunStatus.FAILED),
        (5, RunStatus.KILLED),
    ],
)
def test_the_state_of_a_run_is_that_of_its_meta_file(store, run, number, status):
    watched = source(store)
    [before] = watched.runs()
    run.meta(status=number)

    [after] = watched.runs()

    assert (before.status, after.status) == (RunStatus.RUNNING, status)


def test_a_deleted_run_of_a_store_is_not_listed(store, run):
    watched = source(store)
    assert len(watched.runs()) == 1

    run.meta(stage="deleted")

    assert watched.runs() == []


def test_the_runs_of_a_deleted_experiment_are_not_listed(store, run):
    store.run(store.experiment("old", stage="deleted"), "gone")
    shutil.move(store.folder / store.experiment("moved"), store.folder / ".trash" / "1009")

    assert names(store) == ["owl"]


def test_the_experiments_of_a_store_are_chosen_by_name_or_id(store):
    for name in ("a", "b", "c"):
        store.run(store.experiment(name), f"run-{name}")

    assert names(store) == ["run-a", "run-b", "run-c"]
    assert names(store, experiments="b") == ["run-b"]
    assert names(store, experiments=["a", "1005"]) == ["run-a", "run-c"]


def test_an_experiment_that_a_store_lacks_is_an_error_that_names_those_it_has(store):
    store.experiment("a")
    watched = source(store, experiments="b")

    with pytest.raises(SourceError, match=r"no active experiment 'b'.*there is: a"):
        watched.runs()
    store.run(store.experiment("b"), "later")
    assert [run.name for run in watched.runs()] == ["later"]


def test_one_of_several_experiments_that_a_store_lacks_does_not_hide_the_others(store):
    store.run(store.experiment("a"), "run-a")
    watched = source(store, experiments=["a", "b"])

    there, missing = watched.runs()

    assert there.name == "run-a"
    with pytest.raises(SourceError, match="no active experiment 'b'"):
        watched.fetch(missing, None, 100)


def test_registered_models_and_artifacts_of_a_store_are_no_runs(store, run):
    model = store.folder / "models" / "mine"
    model.mkdir(parents=True)
    (model / "meta.yaml").write_text("name: mine\nlast_updated_timestamp: 1\n")
    below = run.folder / "artifacts" / "metrics"
    below.mkdir()
    (below / "loss").write_text(f"{NOW_MS} 1.0 0\n")
    logged = store.folder / run.folder.parent.name / "models" / "m-1"
    logged.mkdir(parents=True)
    (logged / "meta.yaml").write_text("model_id: m-1\nlifecycle_stage: active\n")

    assert names(store) == ["owl"]
    assert read(store) == []


@pytest.mark.parametrize("text", ["", "run_id: [", "status: !!python/object:os.x {}", "[" * 9000])
def test_a_meta_file_that_can_not_be_read_leaves_the_run_as_it_was_known(store, run, text):
    watched = source(store)
    run.log([1.0])
    [before] = watched.runs()
    (run.folder / "meta.yaml").write_text(text)

    [after] = watched.runs()
    [fresh] = source(store).runs()

    assert after == before
    assert (fresh.key, fresh.status) == (before.key, RunStatus.UNKNOWN)


def test_a_run_of_an_old_store_has_its_name_in_a_tag(store, run):
    text = f"run_uuid: {run.folder.name}\nexperiment_id: 1001\nstatus: 3\nname: ''\n"
    (run.folder / "meta.yaml").write_text(text)
    run.tag("mlflow.runName", "from a tag")

    [listed] = source(store).runs()

    assert (listed.name, listed.status) == ("from a tag", RunStatus.FINISHED)


def test_a_store_that_is_not_there_is_an_error_and_an_empty_one_has_no_runs(store):
    watched = source(store)
    with pytest.raises(SourceError, match="mlruns can't be read: No such file or directory"):
        watched.runs()

    store.folder.mkdir()

    assert watched.runs() == []


def test_a_part_of_a_store_that_can_not_be_listed_is_an_error_of_its_run_alone(
    store, run, monkeypatch
):
    store.run("1001", "other").log([1.0])
    closed = str(run.folder / "metrics")
    scan = os.scandir

    def scandir(path):
        if path == closed:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(tree.os, "scandir", scandir)
    watched = source(store)
    listed = {run.name: run for run in watched.runs()}

    with pytest.raises(SourceError, match=r"metrics can't be read: Permission denied; give"):
        watched.fetch(listed["owl"], None, 100)
    assert len(points_of(read_on(watched, listed["other"]))) == 1


@pytest.mark.parametrize("form", ["{0}", "file:{0}", "file://{0}", "file://localhost{0}"])
def test_a_store_is_named_by_its_folder_or_a_file_uri(tmp_path, form):
    store = Store(tmp_path / "ml runs[1]")
    store.run(store.experiment("a"), "run-a").log([1.0])
    path = form.format(store.folder)
    if form != "{0}":
        path = path.replace(" ", "%20")

    assert names(store, path=path) == ["run-a"]


def test_a_folder_that_holds_mlruns_is_taken_for_that_store(store, run):
    run.log([1.0])
    options = MlflowFilesSource.Options(path=str(store.folder.parent))

    assert [run.name for run in MlflowFilesSource("m", options).runs()] == ["owl"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "at least 1 item"),
        ("file:", "is empty; name the folder"),
        ("file://host/mlruns", "names another machine"),
        ("http://host:5000", "watched by the adapter mlflow, with its uri"),
    ],
)
def test_a_path_that_names_no_store_is_a_mistake_that_says_what_to_do(path, said):
    with pytest.raises(ValueError, match=said):
        MlflowFilesSource.Options(path=path)


def test_a_store_is_recognised_by_its_experiments(store, run):
    written = run.log([1.0], "train/loss")
    artifact = run.folder / "artifacts" / "log.csv"

    assert MlflowFilesSource.recognise(store.folder).format == "mlflow"
    assert MlflowFilesSource.recognise(store.folder.parent) is None
    assert MlflowFilesSource.recognise(run.folder) is None
    assert MlflowFilesSource.owns(written)
    assert MlflowFilesSource.owns(run.folder / "meta.yaml")
    assert not MlflowFilesSource.owns(artifact)


# -- reading -----------------------------------------------------------------------------------------


def test_a_store_keeps_the_contract(store):
    experiment = store.experiment("pre")
    run, empty = store.run(experiment, "full"), store.run(experiment, "empty")
    run.log([1 / (1 + i) for i in range(40)])
    run.log([0.1] * 20, "lr", each_ms=2000)
    run.log([0.5, math.nan], "val/loss", first=10, at=NOW_MS + 10_000, each_ms=10_000)
    run.log([0.7] * 9, first=20, at=NOW_MS + 100_000)
    run.write("loss", "torn\n\n" + f"{NOW_MS} 0.3 29\n{NOW_MS} 0.2")

    points = check_adapter(lambda: source(store))

    assert {key[-1:]: len(found) for key, found in points.items()} == {
        run.folder.name[-1:]: 40 + 20 + 2 + 9 + 1,
        empty.folder.name[-1:]: 0,
    }


def test_metric_names_of_a_store_may_be_paths_and_hold_spaces(store, run):
    run.log([1.0], "train/loss")
    run.log([2.0], "val loss", at=NOW_MS + 1)
    run.log([3.0], "gpu/memory", at=NOW_MS + 2)

    assert read(store) == [("train/loss", 0, 1.0), ("val loss", 0, 2.0)]


def test_infinity_and_nan_of_a_store_come_as_they_were_logged(store, run):
    logged = ["nan", "inf", "-inf", "1.7976931348623157e+308", "-1.7976931348623157e+308", "-0.0"]
    run.write("loss", "".join(f"{NOW_MS + i} {v} {i}\n" for i, v in enumerate(logged)))

    values = [value for _, _, value in read(store)]

    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf, math.inf, -math.inf, 0.0]


def test_metrics_of_a_run_are_merged_by_time(store, run):
    run.log([1.0, 2.0], at=NOW_MS)
    run.log([0.1, 0.2], "lr", at=NOW_MS + 500)

    assert [metric for metric, _, _ in read(store)] == ["loss", "lr", "loss", "lr"]
    assert [point.wall_time for point in points_of(everything(store, 1))] == [
        1_790_000_000.0,
        1_790_000_000.5,
        1_790_000_001.0,
        1_790_000_001.5,
    ]


def test_a_last_line_without_its_end_waits_for_it(store, run):
    watched = source(store)
    run.write("loss", f"{NOW_MS} 0.5 0\n{NOW_MS + 1} 0.2")
    [listed] = watched.runs()
    first = watched.fetch(listed, None, 100)

    run.write("loss", f"5 1\n{NOW_MS + 2} 0.125 2\n")
    [listed] = watched.runs()
    second = watched.fetch(listed, first.cursor, 100)

    assert first.points == [Point("loss", 0.0, 0.5, NOW_MS / 1000)]
    assert [point.value for point in second.points] == [0.25, 0.125]


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_what_is_new_in_a_store_is_read_once_over_many_fetches_and_starts(store, run, limit):
    cursor, steps = None, []
    for first in range(0, 60, 20):
        run.log([0.5] * 20, first=first, at=NOW_MS + first * 1000)
        run.log([0.1] * 20, f"lr/group{first}", first=first, at=NOW_MS + first * 1000)
        watched = source(store)
        [listed] = watched.runs()
        batches = read_on(watched, listed, cursor, limit)
        cursor = json.loads(json.dumps(batches[-1].cursor))
        steps += [point.step for point in points_of(batches) if point.metric == "loss"]

    assert steps == list(range(60))


def test_the_version_of_a_run_changes_when_a_metric_that_is_wanted_grows(store, run):
    watched = source(store)
    run.log([1.0])
    versions = [watched.runs()[0].version]
    run.log([1.0], "gpu/memory")
    versions += [watched.runs()[0].version]
    run.log([1.0], first=1)
    versions += [watched.runs()[0].version]
    run.log([1.0], "lr")
    versions += [watched.runs()[0].version]

    assert versions[0] == versions[1]
    assert len(set(versions)) == 3


def test_late_and_repeated_rows_of_a_store_come_in_the_order_they_were_written(store, run):
    rows = [(0, 0.5, 0), (3000, 0.4, 3), (1000, 0.6, 1), (3000, 0.4, 3), (4000, 0.3, 4)]
    run.write("loss", "".join(f"{NOW_MS + at} {value} {step}\n" for at, value, step in rows))

    batches = everything(store)

    assert [point.step for point in points_of(batches)] == [0, 3, 1, 3, 4]
    assert [batch.restart for batch in batches] == [None]


def test_a_resume_at_a_lower_step_in_a_store_is_a_restart_there(store, run):
    run.log([1.0] * 100)
    run.log([0.5] * 30, first=80, at=NOW_MS + 200_000)

    first, second = everything(store)

    assert [point.step for point in first.points] == list(range(100))
    assert second.restart == Restart("steps go back from 99 to 80", 80.0)
    assert [point.step for point in second.points] == list(range(80, 110))


def test_rows_of_a_store_without_steps_are_counted(store, run):
    run.write("loss", "".join(f"{NOW_MS + i} 0.5 0\n" for i in range(5)))

    [batch] = everything(store)

    assert [point.step for point in batch.points] == [0, 1, 2, 3, 4]
    assert batch.step_name == "row number"


def test_rows_of_two_fields_have_the_step_0_and_those_with_a_data_set_have_their_own(store, run):
    run.write("loss", f"{NOW_MS} 0.5\n{NOW_MS + 1} 0.4 7 corpus 1a2b\n")

    assert read(store) == [("loss", 0, 0.5), ("loss", 7, 0.4)]


def test_negative_and_very_large_steps_of_a_store_are_steps(store, run):
    run.write("loss", f"{NOW_MS} 0.5 -5\n{NOW_MS + 1} 0.4 {2**40}\n")

    assert [step for _, step, _ in read(store)] == [-5, 2**40]


@pytest.mark.parametrize(
    "junk",
    [
        "torn",
        "1 2 3 4",
        "x 0.5 1",
        "1790000000000 0.5 1.5",
        "1790000000000 0,5 1",
        "9" * 400 + " 1 2",
    ],
)
def test_a_line_of_a_store_that_is_no_metric_is_counted(store, run, junk):
    run.write("loss", f"{NOW_MS} 0.5 0\n{junk}\n{NOW_MS + 1} 0.4 1\n")

    batches = everything(store, 1)

    assert [point.step for point in points_of(batches)] == [0, 1]
    assert sum(dict(b.skipped).get("line that is no metric", 0) for b in batches) == 1


def test_a_line_longer_than_any_metrics_is_passed_over_once_it_has_its_end(store, run):
    watched = source(store)
    run.write("loss", f"{NOW_MS} 0.5 0\n" + "x" * 300_000)
    [listed] = watched.runs()
    first = watched.fetch(listed, None, 100)
    run.write("loss", f"x\n{NOW_MS + 1} 0.4 1\n")
    second = watched.fetch(listed, first.cursor, 100)

    assert [point.step for point in first.points] == [0]
    assert [point.step for point in second.points] == [1]
    assert second.skipped == {"line too long": 1}


def test_zeros_that_a_crash_left_in_a_metric_are_no_row(store, run):
    run.write("loss", f"{NOW_MS} 0.5 0\n".encode() + bytes(5000))
    assert read(store) == [("loss", 0, 0.5)]

    run.write("loss", f"{NOW_MS + 1} 0.4 1\n")

    assert read(store) == [("loss", 0, 0.5), ("loss", 1, 0.4)]


@pytest.mark.parametrize("text", ["", f"{NOW_MS + 9} 0.9 0\n" * 30])
def test_a_metric_file_that_was_cut_or_replaced_begins_the_run_anew(store, run, text):
    watched = source(store)
    path = run.log([0.5] * 20)
    run.log([0.1] * 3, "lr")
    [listed] = watched.runs()
    [before] = read_on(watched, listed)
    path.write_text(text)
    [listed] = watched.runs()

    [after] = read_on(watched, listed, before.cursor)

    assert after.restart == Restart("metric loss was replaced or cut")
    assert len(after.points) == 3 + text.count("\n")


def test_a_run_whose_folder_went_away_is_an_error_that_says_so(store, run):
    watched = source(store)
    run.log([0.5])
    [listed] = watched.runs()
    shutil.rmtree(run.folder)

    assert watched.runs() == []
    with pytest.raises(SourceError, match=r"isn't in .*mlruns any more"):
        watched.fetch(listed, None, 100)


def test_a_position_of_another_version_begins_the_run_anew(store, run):
    run.log([0.5] * 3)
    watched = source(store)
    [listed] = watched.runs()

    batch = watched.fetch(listed, {"v": 0}, 100)

    assert batch.restart == Restart("the position was stored by another version")
    assert len(batch.points) == 3
