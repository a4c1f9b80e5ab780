"""The commands ``monitor`` and ``suggest`` on finished logs, from the arguments to the exit code."""

import csv
import json
import math
import re

import numpy as np
import pytest

from tests.support.classic_series import benchmark_curve, clean, corpus
from wtwin_watch.cli import main
from wtwin_watch.monitor import WTwinMonitor


class Ran:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        def refuse(word):
            raise AssertionError(f"bare {word} is no JSON")

        return [json.loads(line, parse_constant=refuse) for line in self.out.splitlines()]


@pytest.fixture
def wtwin(capsys):
    def run(*args):
        code = main([str(arg) for arg in args])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def classic(wtwin):
    """The commands with the published method."""
    return lambda *args: wtwin(*args, "--detector", "classic")


@pytest.fixture
def log(tmp_path):
    def write(losses, name="run.csv", header="step,train_loss", row="{step},{loss}"):
        rows = [row.format(step=step, loss=loss) for step, loss in enumerate(losses, 1)]
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    return write


def test_a_healthy_log_is_said_to_have_no_alert(classic, log):
    ran = classic("monitor", log(clean(400)))
    assert ran.code == 0
    assert ran.out.endswith("run.csv: no alert in the 201 points judged, of 400 read\n")
    assert "loss 'train_loss', step 'step', 400 points, steps 1 to 400" in ran.err


def test_an_alert_is_exit_code_1_and_told_with_its_steps(classic, log):
    ran = classic("monitor", log(benchmark_curve("spike", 0)))
    assert ran.code == 1
    first, begun, ended = ran.out.splitlines()
    assert first.endswith("1 alert, the first at step 605")
    assert begun.startswith("  step 605  WARNING  drift: Loss ")
    assert ended.startswith("  step 621  resolved  drift: Loss ")


def test_json_holds_one_object_a_run_with_its_alerts(classic, log):
    reference = WTwinMonitor(warmup_steps=100)
    losses = benchmark_curve("spike", 0)
    states = [reference.update(step, loss) for step, loss in enumerate(losses, 1)]

    ran = classic("monitor", log(losses), "--json")

    (one,) = ran.json
    assert one["log"].endswith("run.csv")
    assert one["skipped"] == {}
    assert {
        key: one[key] for key in ("detector", "status", "points", "loss_column", "step_column")
    } == {
        "detector": "classic",
        "status": "judging",
        "points": 1000,
        "loss_column": "train_loss",
        "step_column": "step",
    }
    assert one["first_alert_step"] == 605
    assert one["alerts"] == [
        {
            "kind": "drift",
            "severity": "warning",
            "alert_step": 605,
            "onset_step": 601,
            "resolved_step": 621,
            "W": states[604].W,
        }
    ]


def test_json_is_valid_where_the_loss_is_not_a_number(wtwin, log):
    ran = wtwin("monitor", log([*clean(30), math.nan, math.inf]), "--json")
    (one,) = ran.json
    assert ran.code == 1
    assert one["alerts"] == [
        {
            "kind": "nonfinite",
            "severity": "critical",
            "alert_step": 31,
            "onset_step": 31,
            "resolved_step": None,
            "W": None,
        }
    ]
    assert "still learning" in one["status"]


def test_a_log_too_short_to_judge_is_not_called_healthy(classic, log):
    for command in ("monitor", "suggest"):
        ran = classic(command, log(clean(60)))
        assert ran.code == 0
        assert "still learning, needs about 140 more points (60 read)" in ran.out
        assert "no alert" not in ran.out.lower()


def test_a_log_of_a_single_row_is_judged(classic, log):
    assert classic("monitor", log([math.nan])).code == 1
    assert "still learning, needs about 199 more points" in classic("monitor", log([2.0])).out


def test_columns_that_are_named_are_taken(wtwin, log):
    path = log(clean(400), header="i,loss,objective", row="{step},9,{loss}")
    (one,) = wtwin("monitor", path, "--loss-col", "objective", "--step-col", "i", "--json").json
    assert (one["loss_column"], one["step_column"]) == ("objective", "i")


@pytest.mark.parametrize("option", ["--loss-col", "--step-col"])
def test_a_column_that_is_not_there_is_exit_code_2_with_those_there_are(wtwin, log, option):
    path = log(clean(400), header="step;train_loss;lr;note", row="{step};{loss};1e-3;x")
    ran = wtwin("monitor", path, option, "objectve")
    assert (ran.code, ran.out) == (2, "")
    assert "'objectve'" in ran.err
    assert "the columns there are: step, train_loss, lr, note" in ran.err


def test_the_keys_of_a_jsonl_log_are_its_columns(wtwin, tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("".join(f'{{"step": {i}, "loss": 2.0, "who": "me"}}\n' for i in range(5)))
    ran = wtwin("suggest", path, "--loss-col", "objective")
    assert ran.code == 2
    assert "the columns there are: step, loss, who" in ran.err


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"hello\n", b"step,train_loss\n", b"\x00\xff" * 99]
)
def test_a_file_without_a_loss_is_refused(wtwin, tmp_path, content):
    path = tmp_path / "odd.csv"
    path.write_bytes(content)
    ran = wtwin("monitor", path)
    assert (ran.code, ran.out) == (2, "")
    assert "odd.csv" in ran.err


def test_a_path_that_is_not_there_is_refused(wtwin, tmp_path):
    ran = wtwin("monitor", tmp_path / "none.csv")
    assert ran.code == 2
    assert "none.csv" in ran.err


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--tau", "0"),
        ("--n-consec", "0"),
        ("--mad-window", "1"),
        ("--warmup", "-1"),
        ("--alpha", "nan"),
        ("--alpha", "much"),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_its_name(wtwin, log, option, value):
    ran = wtwin("monitor", log(clean(20)), option, value)
    assert (ran.code, ran.out) == (2, "")
    assert option in ran.err


def test_options_reach_the_monitor(wtwin, log):
    losses = benchmark_curve("drift", 1)
    settings = {"alpha": 3.0, "warmup_steps": 60, "n_consec": 9, "mad_window": 30, "tau": 0.01}
    reference = WTwinMonitor(**settings)
    for step, loss in enumerate(losses, 1):
        reference.update(step, loss)
    options = ("--alpha", 3, "--warmup", 60, "--n-consec", 9, "--mad-window", 30, "--tau", 0.01)
    (one,) = wtwin("monitor", log(losses), *options, "--json").json
    assert one["first_alert_step"] == reference.first_alert_step() is not None


def test_rows_that_are_skipped_are_counted_with_the_reason(wtwin, log):
    path = log(clean(300))
    path.write_text(path.read_text() + "301\n302,abc\n,2.0\n")
    ran = wtwin("monitor", path, "--json")
    (one,) = ran.json
    assert sum(one["skipped"].values()) >= 2
    assert "skipped: " in ran.err
    for reason in one["skipped"]:
        assert reason in ran.err


@pytest.mark.parametrize(
    ("header", "row"),
    [
        pytest.param("\ufeffstep,train_loss", "{step},{loss}", id="bom"),
        pytest.param("step;train_loss", "{step};{loss}", id="semicolons"),
        pytest.param("step\ttrain_loss", "{step}\t{loss}", id="tabs"),
        pytest.param(" step , train_loss ", "{step} , {loss}", id="spaces"),
        pytest.param("Step,Train Loss", '"{step}","{loss}"', id="quotes"),
        pytest.param("step,train_loss", "{step}.0,{loss}", id="fractional"),
    ],
)
def test_tables_of_other_spellings_give_the_same_alerts(wtwin, log, header, row):
    losses = benchmark_curve("spike", 2)
    (plain,) = wtwin("monitor", log(losses, "plain.csv"), "--json").json
    (other,) = wtwin("monitor", log(losses, "other.csv", header, row), "--json").json
    assert other["alerts"] == plain["alerts"] != []


def test_decimal_commas_are_read(classic, tmp_path):
    rows = [
        f"{i};{loss!r}".replace(".", ",") for i, loss in enumerate(benchmark_curve("spike", 2), 1)
    ]
    path = tmp_path / "commas.csv"
    path.write_text("\n".join(["step;train_loss", *rows]) + "\n")
    (one,) = classic("monitor", path, "--json").json
    assert one["first_alert_step"] == 605


def test_scores_are_written_with_the_published_columns(classic, log, tmp_path):
    losses = benchmark_curve("spike", 0)
    losses[700] = math.nan
    reference = WTwinMonitor(warmup_steps=100)
    for step, loss in enumerate(losses, 1):
        reference.update(step, loss)

    classic("monitor", log(losses), "--output", tmp_path / "scores.csv")

    with (tmp_path / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "step",
        "loss",
        "wtwin_D",
        "wtwin_Q",
        "wtwin_T",
        "wtwin_W",
        "wtwin_alert",
    ]
    assert len(rows) == len(reference.history) == 801
    for row, state in zip(rows, reference.history, strict=True):
        assert row["step"] == str(state.step)
        wanted = [state.l_obs, state.D, state.Q, state.T, state.W, float(state.alert)]
        assert [float(value) for value in list(row.values())[1:]] == pytest.approx(
            wanted, rel=1e-12, nan_ok=True
        )


def test_scores_that_cannot_be_written_are_said(wtwin, log, tmp_path):
    ran = wtwin("monitor", log(clean(300)), "--output", tmp_path / "no" / "scores.csv")
    assert ran.code == 2
    assert "scores.csv" in ran.err


def test_a_folder_is_judged_run_by_run(classic, log, tmp_path):
    log(clean(400), "logs/good.csv")
    log(benchmark_curve("spike", 0), "logs/bad.csv")
    (tmp_path / "logs" / "notes.txt").write_text("nothing to see")
    (tmp_path / "logs" / "people.csv").write_text("name,age\nAnn,40\nBo,41\n")

    ran = classic("monitor", tmp_path / "logs", "--json", "--output", tmp_path / "scores.csv")

    assert ran.code == 1
    assert {one["run"].rpartition("/")[2]: one["first_alert_step"] for one in ran.json} == {
        "bad": 605,
        "good": None,
    }
    with (tmp_path / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert next(iter(rows[0])) == "run"
    assert len({row["run"] for row in rows}) == 2


def test_a_folder_without_the_column_is_refused(wtwin, log, tmp_path):
    log(clean(40), "logs/one.csv")
    log(clean(40), "logs/two.csv")
    ran = wtwin("monitor", tmp_path / "logs", "--loss-col", "objective")
    assert ran.code == 2
    assert ran.err.count("no loss column 'objective'") == 2


def test_a_run_without_the_column_is_passed_over_where_another_has_it(wtwin, log, tmp_path):
    log(clean(40), "logs/one.csv")
    log(clean(40), "logs/two.csv", header="step,objective")
    ran = wtwin("monitor", tmp_path / "logs", "--loss-col", "objective")
    assert ran.code == 0
    assert "passed over: " in ran.err
    assert "the columns there are: step, train_loss" in ran.err


def test_suggest_prints_the_published_lines(classic, log):
    ran = classic("suggest", log(benchmark_curve("spike", 0)))
    assert ran.code == 1
    lines = [line.strip() for line in ran.out.splitlines()]
    assert lines[0].endswith("W-Twin alert at step 605")
    assert lines[1].startswith("Failure type : abrupt_spike (confidence ")
    assert "): drift, " in lines[1]
    assert lines[1].endswith(" above the forecast, since step 601, last healthy step 600")
    assert lines[2] == "Suggestion   : consider_rollback"
    assert lines[3] == "Action       : manual_review"
    assert lines[4].startswith("Reasoning    : ")
    assert "EXPERIMENTAL and advisory" in lines[5]


def test_suggest_says_nothing_is_wrong(classic, log):
    ran = classic("suggest", log(clean(400)))
    assert (ran.code, ran.out.rpartition(": ")[2]) == (
        0,
        "no alert in the 201 points judged, of 400 read\n",
    )


def test_suggest_as_json_is_valid_also_after_a_nan(wtwin, log):
    ran = wtwin("suggest", log([*clean(30), math.nan]), "--json")
    (one,) = ran.json
    assert (ran.code, one["failure_type"], one["suggestion"]) == (
        1,
        "abrupt_spike",
        "consider_rollback",
    )
    assert one["first_alert_step"] == 31
    assert one["w_at_alert"] is None


@pytest.mark.parametrize("command", ["monitor", "suggest"])
def test_the_example_of_the_help_works(wtwin, log, command, monkeypatch):
    path = log(benchmark_curve("spike", 0))
    monkeypatch.chdir(path.parent)
    help_text = wtwin(command, "--help").out
    (example,) = [line for line in help_text.splitlines() if line.startswith("    wtwin-watch")]
    assert wtwin(*example.split()[1:]).code == 1


def test_a_real_log_is_judged_as_measured(wtwin, tmp_path):
    import gzip

    path = tmp_path / "real.csv"
    packed = corpus() / "nanogpt" / "proglabel_linear_seed42.csv.gz"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    (one,) = wtwin("monitor", path, "--json", "--warmup", 100).json
    assert (one["detector"], one["first_alert_step"], one["loss_column"], one["points"]) == (
        "classic",
        2203,
        "train_loss",
        3000,
    )
    # The failure begins at step 2000.
    (one,) = wtwin("monitor", path, "--json").json
    assert one["detector"] == "trend"
    assert 2000 < one["first_alert_step"] < 2030
    (alert,) = one["alerts"]
    assert alert["kind"] == "divergence"
    assert abs(alert["onset_step"] - 2000) < 20


@pytest.mark.parametrize("command", ["monitor", "suggest"])
def test_every_sample_is_judged_or_refused_without_a_mistake(wtwin, command):
    for path in sorted((corpus() / "samples").iterdir()):
        ran = wtwin(command, path)
        assert ran.code in {0, 1, 2}
        # A folder's results come before what couldn't be read of it.
        assert ran.out if ran.code != 2 else ran.err


def test_suggest_writes_scores_too(classic, log, tmp_path):
    classic("suggest", log(clean(300)), "--output", tmp_path / "scores.csv")
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 1 + 101


def jump(at, size, until, seed=0):
    rng = np.random.default_rng(seed)
    steps = np.arange(1, until + 1)
    losses = 2.0 + 3.0 * steps**-0.5 + rng.normal(0.0, 0.02, until)
    losses[at - 1 :] += size
    return losses.tolist()


def test_a_jump_that_stays_is_told_from_its_first_sight_to_its_kind(wtwin, log):
    ran = wtwin("monitor", log(jump(1500, 0.3, 2000)))

    assert ran.code == 1
    first, begun, *later = ran.out.splitlines()
    assert first.endswith("1 alert, the first at step 1502")
    assert begun.startswith("  step 1502  INFO  spike: Loss jumped to ")
    assert begun.endswith("; whether that lasts isn't known yet.")
    assert [line.split()[2:4] for line in later] == [["WARNING", "level_shift:"]]


def test_kind_and_severity_in_json_are_what_they_became(wtwin, log):
    (one,) = wtwin("monitor", log(jump(1500, 0.3, 2000)), "--json").json

    (alert,) = one["alerts"]
    assert (one["detector"], one["first_alert_step"]) == ("trend", 1502)
    assert (alert["kind"], alert["severity"], alert["resolved_step"]) == (
        "level_shift",
        "warning",
        None,
    )
    assert alert["alert_step"] == 1502
    assert 1490 <= alert["onset_step"] <= 1502
    assert alert["W"] > 0


def test_scores_of_the_trend_detector_have_the_same_columns(wtwin, log, tmp_path):
    wtwin("monitor", log(jump(1500, 0.3, 2000)), "--output", tmp_path / "scores.csv")

    with (tmp_path / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[2:] == ["wtwin_D", "wtwin_Q", "wtwin_T", "wtwin_W", "wtwin_alert"]
    # All but the first 64.
    assert [int(row["step"]) for row in rows] == list(range(65, 2001))
    for row in rows:
        d, q, t, w = (float(row[f"wtwin_{name}"]) for name in "DQTW")
        assert w == pytest.approx(q * (d - t))
        assert (w > 0) == (row["wtwin_alert"] == "1") == (int(row["step"]) >= 1502)


def test_a_short_log_is_told_what_it_lacks(wtwin, log):
    ran = wtwin("monitor", log(jump(1500, 0.3, 60)))
    assert (ran.code, ran.out.rpartition(": ")[2]) == (
        0,
        "still learning, needs 5 more points (60 read)\n",
    )


def test_suggest_says_the_kind_with_its_size_and_onset(wtwin, log):
    lines = wtwin("suggest", log(jump(1500, 0.3, 2000))).out.splitlines()

    assert lines[0].endswith("W-Twin alert at step 1502")
    assert re.fullmatch(
        r"  Failure type : abrupt_spike \(confidence \d+%\): level_shift, 0\.[23]\d* \([0-9.]+ sigma\)"
        r" above the forecast, since step 1[45]\d\d, last healthy step 1[45]\d\d",
        lines[1],
    )
    assert lines[2:4] == [
        "  Suggestion   : consider_rollback",
        "  Action       : manual_review",
    ]
    assert lines[4].startswith("  Reasoning    : ")


def test_suggest_as_json_has_the_facts_of_the_kind(wtwin, log):
    (one,) = wtwin("suggest", log(jump(1500, 0.3, 2000)), "--json").json

    assert (one["failure_type"], one["kind"], one["detector"]) == (
        "abrupt_spike",
        "level_shift",
        "trend",
    )
    assert one["excess"] == pytest.approx(0.3, rel=0.2)
    assert one["excess_sigma"] == pytest.approx(0.3 / 0.02, rel=0.4)
    assert 0.5 < one["confidence"] <= 1.0
    assert one["onset_step"] - one["last_healthy_step"] == 1


def test_suggest_tells_an_alert_that_is_not_of_the_forecast(wtwin, log):
    path = log(jump(400, 0.0, 400), header="step,train_loss,lr", row="{step},{loss},0.1")
    with path.open("a") as file:
        file.writelines(f"{step},,0.1\n" for step in range(401, 431))

    ran = wtwin("suggest", path)

    assert ran.code == 1
    assert "W-Twin alert at step 421" in ran.out
    assert "uncertain (confidence not measured): loss_missing, last healthy step 400" in ran.out
    assert "Reasoning    : The last 21 rows of the log hold no loss" in ran.out
    (one,) = wtwin("suggest", path, "--json").json
    assert (one["failure_type"], one["kind"], one["first_alert_step"]) == (
        "uncertain",
        "loss_missing",
        421,
    )


def test_a_parameter_of_the_published_method_asks_for_it_and_is_told(wtwin, log):
    ran = wtwin("monitor", log(clean(400)), "--alpha", 3, "--json")
    assert ran.json[0]["detector"] == "classic"
    assert "--alpha is a parameter of the detector 'classic', so that one is used\n" in ran.err
    assert wtwin("monitor", log(clean(400)), "--alpha", 3, "--detector", "trend").code == 2
