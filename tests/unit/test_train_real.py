"""The training example: what its runs log, and that a run which is forked or resumed is the same run."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is missing; pip install '.[train]' brings it")

from benchmarks.published.experiments import Experiment
from benchmarks.published.training import train_missing
from examples.train_real import COLUMNS, MODES, Settings, Training, main

ROOT = Path(__file__).parents[2]
FAST = ("--quick", "--steps", "12", "--failure-step", "6", "--ramp-steps", "6", "--batch-size", "2")


def train(output: Path, *more: str | Path) -> list[dict[str, str]]:
    assert main([*map(str, more), "--output", str(output)]) == 0
    with output.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_quick_form_runs_as_a_command_and_logs_every_step(tmp_path: Path):
    script = ROOT / "examples" / "train_real.py"
    command = [sys.executable, script, "--quick", "--mode", "progressive_label"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == "run.csv: 60 steps of progressive_label\n"
    with (tmp_path / "run.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [row["step"] for row in rows] == [str(step) for step in range(1, 61)]
    assert [row["step"] for row in rows if row["val_loss"]] == ["1", "51"]
    assert float(rows[0]["train_loss"]) == pytest.approx(5.545, abs=0.2)  # ln 256: it knows nothing
    assert float(rows[29]["train_loss"]) < 4.0


def test_small_has_the_parameters_of_the_published_model():
    parameters = Training(Settings(model_size="small")).model.parameters()

    # 256 + 128 rows of 128; 4 blocks of 12 x 128² weights, 9 x 128 biases, 4 x 128 of norms; 2 x 128.
    assert sum(p.numel() for p in parameters) == 842_496


def test_the_learning_rate_warms_up_and_falls_in_a_line_to_a_tenth():
    settings = Settings()

    # The published logs: 3e-6, 3e-4, 0.00025852 at 501, 0.00010345 at 2000, 3e-05 at 3000.
    steps = (1, 100, 501, 2000, 3000)
    rates = [3e-6, 3e-4, 2.5852e-4, 1.0345e-4, 3e-5]
    assert [settings.rate(step) for step in steps] == pytest.approx(rates, rel=1e-4)


@pytest.mark.parametrize(
    ("profile", "half_way"), [("linear", 0.25), ("quadratic", 0.125), ("sigmoid", 0.25)]
)
def test_ramps_begin_after_the_failure_step_and_end_at_their_most(profile: str, half_way: float):
    settings = Settings(mode="progressive_label", ramp_profile=profile, max_noise_prob=0.5)

    assert settings.noise_prob(2000) == 0.0
    assert settings.noise_prob(2500) == pytest.approx(half_way)
    assert settings.noise_prob(3000) == pytest.approx(0.5, abs=0.004)
    assert settings.noise_prob(9000) == settings.noise_prob(3000)


@pytest.mark.parametrize(
    ("mode", "before", "after"),
    [
        ("lr_spike", 1.0345e-4, 3e-3),
        ("marginal_lr", 1.0345e-4, 9e-4),
        ("divergent_lr", 1.0345e-4, 3e-2),
        ("lr_drop", 1.0345e-4, 1.0334e-6),
    ],
)
def test_a_wrong_learning_rate_begins_after_the_failure_step(
    mode: str, before: float, after: float
):
    settings = Settings(mode=mode)

    assert settings.rate(2000) == pytest.approx(before, rel=1e-4)
    assert settings.rate(2001) == pytest.approx(after, rel=1e-3)


def test_a_seed_decides_every_number(tmp_path: Path):
    first = train(tmp_path / "a.csv", *FAST)

    assert train(tmp_path / "b.csv", *FAST) == first
    assert train(tmp_path / "c.csv", *FAST, "--seed", "43") != first


@pytest.mark.parametrize("mode", sorted(MODES.keys() - {"none"}))
def test_a_failure_forked_from_a_healthy_run_is_that_of_a_run_of_its_own(mode: str, tmp_path: Path):
    healthy = tmp_path / "healthy.pt"
    before = train(tmp_path / "healthy.csv", *FAST, "--stop-at", "6", "--checkpoint", healthy)

    forked = train(tmp_path / "forked.csv", "--fork", healthy, "--mode", mode)

    assert forked == train(tmp_path / "whole.csv", *FAST, "--mode", mode)
    assert forked[:6] == before
    assert len(forked) == 12
    assert forked != train(tmp_path / "none.csv", "--fork", healthy, "--mode", "none")


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path):
    failing = (*FAST, "--mode", "progressive_weight")
    stopped = tmp_path / "stopped.pt"
    train(tmp_path / "run.csv", *failing, "--stop-at", "8", "--checkpoint", stopped)

    resumed = train(tmp_path / "run.csv", "--resume", stopped)

    assert resumed == train(tmp_path / "whole.csv", *failing)


def test_gradients_are_logged_as_they_were_before_they_were_clipped(tmp_path: Path):
    rows = train(tmp_path / "run.csv", *FAST, "--mode", "weight_corrupt", "--corrupt-std", "1.0")

    assert max(float(row["grad_norm"]) for row in rows) > 1.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--mode", "dropout"), "a fork needs a healthy one of step 6 or before"),
        (("--seed", "1"), "decides seed; leave these options out"),
    ],
)
def test_a_fork_that_would_not_be_one_run_is_refused(given, said: str, tmp_path: Path):
    late = tmp_path / "late.pt"
    train(tmp_path / "run.csv", *FAST, "--stop-at", "8", "--checkpoint", late)

    with pytest.raises(SystemExit, match=said):
        main(["--fork", str(late), *given, "--output", str(tmp_path / "x.csv")])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--steps", "0"), "--steps must be at least 1"),
        (("--fork", "gone.pt"), "there is no checkpoint gone.pt; --checkpoint writes one"),
        (("--fork", "a.pt", "--resume", "b.pt"), "--resume and --fork exclude each other"),
        (("--mode", "other"), "invalid choice: 'other'"),
    ],
)
def test_what_can_not_be_is_refused(given, said: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        main(given)

    assert said in capsys.readouterr().err


def test_the_help_shows_an_example_and_every_mode(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])

    shown = capsys.readouterr().out
    assert "python examples/train_real.py --mode progressive_label" in shown
    assert [mode for mode in MODES if mode not in shown] == []


def test_the_set_is_trained_as_far_as_it_is_missing(tmp_path: Path):
    logs, work = tmp_path / "logs", tmp_path / "work"
    logs.mkdir()
    done = logs / "none_seed1.csv.gz"
    done.write_bytes(b"there already")
    tiny = {"model_size": "tiny", "batch_size": 2, "steps": 8, "failure_step": 4, "warmup_steps": 2}
    wanted = [Experiment("none", 1), Experiment("proglabel_linear", 2), Experiment("dropout", 2)]

    train_missing(wanted, logs, work, tiny)

    assert done.read_bytes() == b"there already"
    assert sorted(path.name for path in logs.iterdir()) == [
        "dropout_seed2.csv.gz",
        "none_seed1.csv.gz",
        "proglabel_linear_seed2.csv.gz",
    ]
    assert sorted(path.name for path in work.iterdir()) == ["healthy_seed2.csv", "healthy_seed2.pt"]

    def again(*names: str) -> list[bytes]:
        return [(logs / f"{name}.csv.gz").read_bytes() for name in names]

    first = again("dropout_seed2", "proglabel_linear_seed2")
    (logs / "dropout_seed2.csv.gz").unlink()
    train_missing(wanted, logs, work, tiny)
    assert again("dropout_seed2", "proglabel_linear_seed2") == first
