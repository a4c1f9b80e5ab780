"""The published table: its comparators, its cells, and the logs that lie beside it."""

import csv
import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.curves import read
from benchmarks.published.detectors import (
    DETECTORS,
    cusum_fair,
    cusum_published,
    threshold_fair,
    threshold_published,
)
from benchmarks.published.document import there
from benchmarks.published.experiments import (
    ABRUPT,
    CLEAN,
    GRADUAL,
    LOGS,
    Experiment,
    kind_of,
    missing,
    published_set,
)
from benchmarks.published.measures import measures
from benchmarks.published.table import Cell, Judged, cell, judge, markdown
from benchmarks.report import Measure

CORPUS = os.environ.get("WTWIN_WATCH_CORPUS")
needs_logs = pytest.mark.skipif(not CORPUS, reason="WTWIN_WATCH_CORPUS names no folder of logs")


def firsts(alarms):
    return np.flatnonzero(alarms)[:1].tolist()


def test_the_published_threshold_alerts_on_no_step_of_any_size_and_the_fair_one_at_its_fifth_point():
    losses = np.full(200, 1.0)
    losses[::2] += 0.01
    losses[100:] += 1000.0

    assert firsts(threshold_published(losses)) == []
    assert firsts(threshold_fair(losses)) == [104]


def test_the_published_cusum_wants_more_than_the_mean_of_the_first_hundred():
    # The first hundred: mean 3, sd 1. A loss of 3.5 adds nothing at k = 0.5; each of 5.5 adds 2: 6 > 5.
    losses = np.array([2.0, 4.0] * 50 + [0.1] * 50 + [3.5] * 50 + [5.5] * 5)

    assert np.flatnonzero(cusum_published(losses)).tolist() == [202, 203, 204]


def test_the_fair_cusum_compares_with_the_losses_from_600_to_100_before():
    # Mean 1, sd 1 of those; a loss of 4.5 adds 3: 3, 6, 9, 12 > 10.
    losses = np.array([0.0, 2.0] * 350 + [4.5] * 6)

    assert np.flatnonzero(cusum_fair(losses)).tolist() == [703, 704, 705]


def test_a_cell_gives_mean_and_deviation_of_the_delays_of_what_was_seen():
    # The delays that were measured on the published logs: 203, 198, 219, 223.
    judged = [
        Judged(f"proglabel_linear_seed{i}", "proglabel_linear", {"x": 2000.0 + delay})
        for i, delay in enumerate((203, 198, 219, 223))
    ]

    found = cell(judged, "x")

    assert found == Cell(4, (203.0, 198.0, 219.0, 223.0), 0)
    assert found.mean == pytest.approx(210.75)
    assert found.sd == pytest.approx(12.1, abs=0.05)
    assert found.shown("proglabel_linear") == "4/4, 211 ± 12"


def test_an_alert_before_the_failure_is_no_detection_and_one_in_a_clean_run_is_an_alarm():
    early = Judged("progweight_seed42", "progweight", {"x": 2000.0})
    unseen = Judged("progweight_seed43", "progweight", {"x": None})
    clean = Judged("none_seed42", CLEAN, {"x": 2500.0})

    assert cell([early, unseen], "x") == Cell(2, (), 1)
    assert cell([early, unseen], "x").shown("progweight") == "0/2 (1 early)"
    assert cell([clean], "x").shown(CLEAN) == "1/1 alarms"


def test_the_set_is_nine_progressive_two_abrupt_six_others_and_thirty_clean():
    kinds = [one.kind for one in published_set()]

    assert sum(kind in GRADUAL for kind in kinds) == 9
    assert (kinds.count(ABRUPT), kinds.count(CLEAN), len(kinds)) == (2, 30, 47)
    assert len({one.name for one in published_set()}) == 47


def test_a_log_is_known_by_its_name():
    assert kind_of("proglabel_sigmoid_seed42.csv.gz") == "proglabel_sigmoid"
    assert Experiment("proglabel_sigmoid", 42).profile == "sigmoid"
    with pytest.raises(ValueError, match="names no experiment"):
        kind_of("other_seed1.csv.gz")


def test_what_is_there_is_not_missing(tmp_path: Path):
    wanted = [Experiment(CLEAN, 1), Experiment(CLEAN, 2)]
    (tmp_path / "none_seed1.csv.gz").touch()

    assert missing(tmp_path, wanted) == [Experiment(CLEAN, 2)]


def test_our_logs_are_whole_small_and_of_the_set():
    known = {f"{one.name}.csv.gz": one for one in published_set()}
    paths = sorted(LOGS.glob("*.csv.gz"))

    assert paths
    assert sum(path.stat().st_size for path in paths) < 5_000_000
    for path in paths:
        steps = read(path, column="train_loss").steps
        assert steps.tolist() == list(range(1, known[path.name].stop_at + 1)), path.name


def test_runs_of_one_seed_are_the_same_until_they_fail():
    by_seed: dict[int, list[list[float]]] = {}
    for one in published_set():
        path = LOGS / f"{one.name}.csv.gz"
        if path.exists():
            by_seed.setdefault(one.seed, []).append(
                read(path, column="train_loss").losses[:2000].tolist()
            )

    assert max(map(len, by_seed.values())) > 1
    assert all(losses == runs[0] for runs in by_seed.values() for losses in runs)


def test_our_logs_keep_every_target_as_far_as_so_many_runs_can_tell():
    found = list(measures(judge(LOGS), "our logs", quick=True))

    assert [m.line for m in found if not isinstance(m, Measure) or not m.kept] == []


@pytest.mark.parametrize(
    ("delays", "quick", "missed"),
    [
        ((12.0,), False, True),
        ((12.0,), True, False),  # one run doesn't tell whether the mean is above 11
        ((12.0, 10.5), True, False),
        ((20.0, 20.1), True, True),
        ((), True, True),
    ],
)
def test_the_quick_form_misses_a_mean_delay_only_where_it_is_sure(delays, quick, missed):
    judged = [Judged("a", "weightcorrupt", dict.fromkeys(DETECTORS, 2003.0))]
    judged += [Judged("b", "none", dict.fromkeys(DETECTORS))]
    judged += [
        Judged("c", "proglabel_linear", dict.fromkeys(DETECTORS, 2000.0 + delay))
        for delay in delays
    ] or [Judged("c", "proglabel_linear", dict.fromkeys(DETECTORS))]

    [found] = [
        m
        for m in measures(judged, "x", quick)
        if m.name == "ours, x: linear label noise, mean delay"
    ]

    assert (found.verdict == "MISSED") == missed


def test_the_page_shows_the_table_that_our_logs_give():
    page = (LOGS.parents[2] / "docs" / "published.md").read_text(encoding="utf-8")

    assert markdown(judge(LOGS)) in page
    assert there(judge(LOGS)) in page


@needs_logs
def test_the_published_comparators_are_the_columns_of_the_published_logs():
    for path in sorted(Path(CORPUS, "nanogpt").glob("*.csv.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        losses = np.array([float(row["train_loss"]) for row in rows])
        columns = {
            name: np.array([row[f"published_{name}_alert"] == "1" for row in rows])
            for name in ("threshold", "cusum")
        }

        assert (threshold_published(losses) == columns["threshold"]).all(), path.name
        assert (cusum_published(losses) == columns["cusum"]).all(), path.name


@needs_logs
def test_the_published_logs_give_the_published_numbers():
    judged = judge(Path(CORPUS, "nanogpt"))
    linear = [one for one in judged if one.kind == "proglabel_linear"]

    # As measured with the published program.
    assert cell(linear, "W-Twin, warm-up 100").delays == (203.0, 198.0, 219.0, 223.0)
    assert [m.line for m in measures(judged, "x") if not isinstance(m, Measure) or not m.kept] == []
    assert "| label noise, linear | 4 | 4/4, 211 ± 12 |" in markdown(judged)
