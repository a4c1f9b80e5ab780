"""The commands ``monitor`` and ``suggest`` on finished logs, from the arguments to the exit code."""

import csv
import json
import math

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
def log(tmp_path):
    def write(losses, name="run.csv", header="step,train_loss", row="{step},{loss}"):
        rows = [row.format(step=step, loss=loss) for step, loss in enumerate(losses, 1)]
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    return write


def test_a_healthy_log_is_said_to_have_no_alert(wtwin, log):
    ran = wtwin("monitor", log(clean(400)))
    assert ran.code == 0
    assert ran.out.endswith("run.csv: no alert in the 201 points judged, of 400 read\n")
    assert "loss 'train_loss', step 'step', 400 points, steps 1 to 400" in ran.err


def test_an_alert_is_exit_code_1_and_told_with_its_steps(wtwin, log):
    ran = wtwin("monitor", log(benchmark_curve("spike", 0)))
    assert ran.code == 1
    first, begun, ended = ran.out.splitlines()
    assert first.endswith("1 alert, the first at step 605")
    assert begun.startswith("  step 605  WARNING  drift: Loss ")
    assert ended.startswith("  step 621  resolved  drift: Loss ")


def test_json_holds_one_object_a_run_with_its_alerts(wtwin, log):
    reference = WTwinMonitor(warmup_steps=100)
    losses = benchmark_curve("spike", 0)
    states = [reference.update(step, loss) for step, loss in enumerate(losses, 1)]

    ran = wtwin("monitor", log(losses), "--json")

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


def test_a_log_too_short_to_judge_is_not_called_healthy(wtwin, log):
    for command in ("monitor", "suggest"):
        ran = wtwin(command, log(clean(60)))
        assert ran.code == 0
        assert "still learning, needs about 140 more points (60 read)" in ran.out
        assert "no alert" not in ran.out.lower()


def test_a_log_of_a_single_row_is_judged(wtwin, log):
    assert wtwin("monitor", log([math.nan])).code == 1
    assert "still learning, needs about 199 more points" in wtwin("monitor", log([2.0])).out


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


def test_decimal_commas_are_read(wtwin, tmp_path):
    rows = [
        f"{i};{loss!r}".replace(".", ",") for i, loss in enumerate(benchmark_curve("spike", 2), 1)
    ]
    path = tmp_path / "commas.csv"
    path.write_text("\n".join(["step;train_loss", *rows]) + "\n")
    (one,) = wtwin("monitor", path, "--json").json
    assert one["first_alert_step"] == 605


def test_scores_are_written_with_the_published_columns(wtwin, log, tmp_path):
    losses = benchmark_curve("spike", 0)
    losses[700] = math.nan
    reference = WTwinMonitor(warmup_steps=100)
    for step, loss in enumerate(losses, 1):
        reference.update(step, loss)

    wtwin("monitor", log(losses), "--output", tmp_path / "scores.csv")

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


def test_a_folder_is_judged_run_by_run(wtwin, log, tmp_path):
    log(clean(400), "logs/good.csv")
    log(benchmark_curve("spike", 0), "logs/bad.csv")
    (tmp_path / "logs" / "notes.txt").write_text("nothing to see")
    (tmp_path / "logs" / "people.csv").write_text("name,age\nAnn,40\nBo,41\n")

    ran = wtwin("monitor", tmp_path / "logs", "--json", "--output", tmp_path / "scores.csv")

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


def test_suggest_prints_the_published_lines(wtwin, log):
    ran = wtwin("suggest", log(benchmark_curve("spike", 0)))
    assert ran.code == 1
    lines = [line.strip() for line in ran.out.splitlines()]
    assert lines[0].endswith("W-Twin alert at step 605")
    assert lines[1].startswith("Failure type : abrupt_spike (confidence ")
    assert lines[2] == "Suggestion   : consider_rollback"
    assert lines[3] == "Action       : manual_review"
    assert lines[4].startswith("Reasoning    : ")
    assert "EXPERIMENTAL and advisory" in lines[5]


def test_suggest_says_nothing_is_wrong(wtwin, log):
    ran = wtwin("suggest", log(clean(400)))
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
    (one,) = wtwin("monitor", path, "--json").json
    assert (one["first_alert_step"], one["loss_column"], one["points"]) == (
        2203,
        "train_loss",
        3000,
    )


@pytest.mark.parametrize("command", ["monitor", "suggest"])
def test_every_sample_is_judged_or_refused_without_a_mistake(wtwin, command):
    for path in sorted((corpus() / "samples").iterdir()):
        ran = wtwin(command, path)
        assert ran.code in {0, 1, 2}
        # A folder's results come before what couldn't be read of it.
        assert ran.out if ran.code != 2 else ran.err


def test_suggest_writes_scores_too(wtwin, log, tmp_path):
    wtwin("suggest", log(clean(300)), "--output", tmp_path / "scores.csv")
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 1 + 101
