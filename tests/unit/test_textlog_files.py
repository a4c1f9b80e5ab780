"""Text logs and trainer files as they lie on disk and grow, read by the adapter ``log``."""

import gzip
import json
import os

import pytest

from wtwin_adapters.logfiles import LogSource, TrainerSource
from wtwin_watch.errors import SourceError
from wtwin_watch.testing import ManualClock, check_adapter, points_of, read_on

MEGATRON = (
    " iteration {0:8d}/ 1000 | learning rate: 1.0E-04 | lm loss: {1:.6E} | grad norm: 0.5 |\n"
)


def source(path, clock=None, **options):
    options = LogSource.Options(path=str(path), **options)
    return LogSource("logs", options, clock) if clock else LogSource("logs", options)


def losses(batches, metric):
    return [(p.step, p.value) for p in points_of(batches) if p.metric == metric]


def test_a_text_log_is_read_on_as_it_grows(tmp_path):
    log = tmp_path / "slurm-1.out"
    log.write_text("loading …\n" + MEGATRON.format(10, 2.5))
    logs = source(tmp_path)
    (run,) = logs.runs()
    first = read_on(logs, run)

    with log.open("a") as file:
        file.write(
            "saved a checkpoint\n" + MEGATRON.format(20, 2.25) + MEGATRON.format(30, 2.0)[:40]
        )
    then = read_on(logs, run, first[-1].cursor)

    assert losses(first, "lm loss") == [(10, 2.5)]
    assert losses(then, "lm loss") == [(20, 2.25)]
    assert then[-1].restart is None


def test_a_log_that_tells_no_loss_yet_is_waited_for(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("arguments: lr=1e-4\n")
    logs = source(log)
    (run,) = logs.runs()
    first = read_on(logs, run)

    with log.open("a") as file:
        file.write("iter 0: loss 4.25, time 9ms\niter 1: loss 4.0, time 9ms\n")

    assert [batch.position for batch in first] == ["no loss yet"]
    assert losses(read_on(logs, run, first[-1].cursor), "loss") == [(0, 4.25), (1, 4.0)]


def test_a_log_without_a_loss_a_step_is_refused_once_it_has_come_to_rest(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("dynamic loss scale from 65536 to 32768.0\n")
    clock = ManualClock(log.stat().st_mtime + 3600)
    logs = source(log, clock)
    (run,) = logs.runs()

    with pytest.raises(SourceError, match=r"no line has both a step and a loss.*option pattern"):
        logs.fetch(run, None, 100)


def test_a_log_that_grows_without_a_loss_is_refused_after_half_an_hour(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("compiling\n")
    clock = ManualClock(log.stat().st_mtime)
    logs = source(log, clock)
    (run,) = logs.runs()
    cursor = read_on(logs, run)[-1].cursor

    for _ in range(3):
        clock.now += 599.0
        with log.open("a") as file:
            file.write("still compiling\n")
        os.utime(log, (clock.now, clock.now))
        batch = read_on(logs, run, cursor)[-1]
        cursor = json.loads(json.dumps(batch.cursor))
        assert batch.position == "no loss yet"
    clock.now += 3.0
    with pytest.raises(SourceError, match=r"no line has both a step and a loss"):
        logs.fetch(run, cursor, 100)
    with log.open("a") as file:
        file.write("iter 0: loss 4.25, time 9ms\n")

    assert losses(read_on(logs, run, cursor), "loss") == [(0, 4.25)]


def test_a_log_begun_anew_is_given_its_own_half_hour(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("compiling\n")
    clock = ManualClock(log.stat().st_mtime)
    logs = source(log, clock)
    (run,) = logs.runs()
    cursor = read_on(logs, run)[-1].cursor
    clock.now += 3600.0
    (tmp_path / "next").write_text("compiling\n")
    os.utime(tmp_path / "next", (clock.now, clock.now))
    (tmp_path / "next").rename(log)

    assert read_on(logs, run, cursor)[-1].position == "no loss yet"


def test_a_log_of_validation_alone_is_refused_but_by_name(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("step:0/9 val_loss:4.5 train_time:0ms\nstep:5/9 val_loss:4.25 train_time:9ms\n")
    found = LogSource.recognise(log)
    logs = source(log, loss="val_loss")
    (run,) = logs.runs()

    assert found is not None
    assert found.refused == "it tells no loss but that of validation; name that by the option loss"
    assert losses(read_on(logs, run), "val_loss") == [(0, 4.5), (5, 4.25)]


def test_a_rotated_log_starts_anew(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("".join(MEGATRON.format(i, 2.5) for i in (10, 20, 30)))
    logs = source(log)
    (run,) = logs.runs()
    cursor = read_on(logs, run)[-1].cursor

    log.rename(tmp_path / "train.log.1")
    log.write_text(MEGATRON.format(40, 2.0))
    then = read_on(logs, run, cursor)

    assert then[0].restart is not None
    assert losses(then, "lm loss") == [(40, 2.0)]


def test_a_progress_bar_is_a_row_for_each_step_it_shows(tmp_path):
    log = tmp_path / "job.err"
    bar = "\r {0}%|#  | {0}/100 [00:01<00:08, 10.3it/s, loss={1}]"
    log.write_bytes((bar.format(1, 2.5) + bar.format(1, 2.5) + bar.format(2, 2.25) + "\n").encode())
    logs = source(log)
    (run,) = logs.runs()

    batches = read_on(logs, run)

    assert losses(batches, "loss") == [(1, 2.5), (2, 2.25)]
    assert batches[0].skipped == {"another row of the same step": 1}


def test_the_bars_of_keras_count_on_over_epochs(tmp_path):
    log = tmp_path / "job.out"
    bar = "{0}/9 [====>] - 5s 2ms/step - loss: {1} - accuracy: 0.9\n"
    log.write_text(
        "".join(f"Epoch {e}/2\n" + bar.format(5, 3 - e) + bar.format(9, 2.5 - e) for e in (1, 2))
    )
    logs = source(log)
    (run,) = logs.runs()

    batches = read_on(logs, run)

    assert losses(batches, "loss") == [(5, 2), (9, 1.5), (14, 1), (18, 0.5)]
    assert not any(batch.restart or batch.skipped for batch in batches)


def test_colours_do_not_matter(tmp_path):
    log = tmp_path / "train.log"
    log.write_text(
        "".join(f"\x1b[32mstep\x1b[0m: {i} \x1b[1;31mloss: {i / 4}\x1b[0m\n" for i in (1, 2))
    )
    logs = source(log)
    (run,) = logs.runs()

    assert losses(read_on(logs, run), "loss") == [(1, 0.25), (2, 0.5)]


def test_of_several_ranks_in_a_log_the_first_row_of_a_step_counts(tmp_path):
    log = tmp_path / "train.log"
    rows = [(1, 0, 2.5), (1, 1, 2.75), (2, 1, 2.25), (2, 0, 2.0)]
    log.write_text(
        "".join(f"[rank{rank}]: step: {step} loss: {loss}\n" for step, rank, loss in rows)
    )
    logs = source(log)
    (run,) = logs.runs()

    batches = read_on(logs, run)

    assert losses(batches, "loss") == [(1, 2.5), (2, 2.25)]
    assert batches[0].skipped == {"another row of the same step": 2}


def test_rows_that_count_epochs_alone_all_count(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("".join(f"epoch: 1 loss: {loss}\n" for loss in (2.5, 2.25, 2.0)))
    logs = source(log)
    (run,) = logs.runs()

    assert losses(read_on(logs, run), "loss") == [(1, 2.5), (1, 2.25), (1, 2.0)]


def test_a_pattern_of_the_users_own_reads_any_line(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("it 5 > L 2.5 g 0.5\nnothing\nit 6 > L nan g 0.25\n")
    logs = source(log, pattern=r"it (?P<step>\d+) > L (?P<loss>\S+) g (?P<grad_norm>\S+)")
    (run,) = logs.runs()

    points = points_of(read_on(logs, run))

    assert [(p.metric, p.step, str(p.value)) for p in points] == [
        ("loss", 5, "2.5"),
        ("grad_norm", 5, "0.5"),
        ("loss", 6, "nan"),
        ("grad_norm", 6, "0.25"),
    ]


def test_a_pattern_without_a_step_counts_its_rows(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("L 2.5\nL 2.25\n")
    logs = source(log, pattern=r"L (?P<loss>\S+)")
    (run,) = logs.runs()

    batches = read_on(logs, run)

    assert losses(batches, "loss") == [(1, 2.5), (2, 2.25)]
    assert batches[0].step_name == "row number"


def test_a_long_line_is_no_matter_for_a_pattern_of_the_users_own(tmp_path):
    log = tmp_path / "train.log"
    log.write_text("L" * 5000 + " 2.5\nL 2.25\n")
    logs = source(log, pattern=r"L+ (?P<loss>\S+)")
    (run,) = logs.runs()

    assert losses(read_on(logs, run), "loss") == [(1, 2.25)]


@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        ("loss (", "is no regular expression"),
        (r"step (?P<step>\d+)", "names no metric"),
        (r"(a+)+ (?P<loss>\S+)", "may take for ever"),
        (r"(?:\w+\s*)* (?P<loss>\S+)", "may take for ever"),
        (r"(?:(x*)|b){2,}(?P<loss>\S+)", "may take for ever"),
    ],
)
def test_a_pattern_that_cannot_do_is_refused_with_the_reason(regex, reason):
    with pytest.raises(ValueError, match=reason):
        LogSource.Options(path="x", pattern=regex)


@pytest.mark.parametrize(
    "regex",
    [
        r"step[:=]\s*(?P<step>\d+).*?loss[:=]\s*(?P<loss>[-+.\deE]+)",
        r"(?:\w++ )+(?P<loss>\S+)",
        r"(?>a+)+(?P<loss>\S+)",
        r"(?:ab?)+(?P<loss>[(+*]+)",
        r"(?P<loss>\d{1,9})",
    ],
)
def test_a_pattern_that_takes_its_time_or_less_is_taken(regex):
    assert LogSource.Options(path="x", pattern=regex).pattern == regex


def test_a_folder_is_searched_for_what_its_content_says_is_a_log(tmp_path):
    (tmp_path / "a.out").write_text(MEGATRON.format(1, 2.5))
    (tmp_path / "b.csv").write_text("step,loss\n1,2\n")
    (tmp_path / "c.json").write_text('{"loss": "mse"}')
    (tmp_path / "d.json").write_text(
        '{"iteration": 1, "total_loss": 2}\n{"iteration": 2, "total_loss": 1}\n'
    )
    (tmp_path / "e.txt").write_text("numpy==2.0\ntorch==2.5\n")
    (tmp_path / "f.json").write_text('[{"epoch": 1, "loss": 2.5}, {"epoch": 2, "loss": 2.0}]')

    assert sorted(run.key.run for run in source(tmp_path).runs()) == [
        "a.out",
        "b.csv",
        "d.json",
        "f.json",
    ]


def test_a_file_of_a_folder_is_listed_once_it_has_become_a_log(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("starting\n")
    logs = source(tmp_path)
    assert list(logs.runs()) == []

    with log.open("a") as file:
        file.write(MEGATRON.format(1, 2.5))

    assert [run.key.run for run in logs.runs()] == ["a.log"]


def state(steps):
    rows = [{"epoch": s / 100, "loss": 100 / s, "learning_rate": 1e-4, "step": s} for s in steps]
    head = {"best_metric": None, "epoch": 1.0, "global_step": steps[-1]}
    return json.dumps({**head, "log_history": rows}, indent=2)


def checkpoint(folder, steps):
    (folder / f"checkpoint-{steps[-1]}").mkdir(parents=True)
    path = folder / f"checkpoint-{steps[-1]}" / "trainer_state.json"
    path.write_text(state(steps))
    return path


def test_the_checkpoints_of_a_trainer_are_one_run(tmp_path):
    checkpoint(tmp_path / "sft", [10, 20])
    logs = source(tmp_path)
    (run,) = logs.runs()
    first = read_on(logs, run)

    checkpoint(tmp_path / "sft", [10, 20, 30, 100])
    (again,) = logs.runs()
    then = read_on(logs, again, first[-1].cursor)

    assert (run.key.run, run.name) == ("sft/trainer_state.json", "sft")
    assert again.key == run.key
    assert again.version != run.version
    assert losses(first, "loss") == [(10, 10), (20, 5)]
    assert losses(then, "loss") == [(30, 100 / 30), (100, 1)]
    assert not any(batch.restart for batch in then)


def test_the_state_at_the_end_of_a_training_follows_its_checkpoints(tmp_path):
    checkpoint(tmp_path, [10, 20])
    (tmp_path / "trainer_state.json").write_text(state([10, 20, 30]))
    logs = TrainerSource("t", TrainerSource.Options(path=str(tmp_path)))
    (run,) = logs.runs()

    assert losses(read_on(logs, run), "loss")[-1] == (30, 100 / 30)


def test_a_state_left_from_an_earlier_training_gives_way_to_later_checkpoints(tmp_path):
    (tmp_path / "trainer_state.json").write_text(state([10, 20]))
    checkpoint(tmp_path, [10, 20, 30])
    logs = source(tmp_path)
    (run,) = logs.runs()

    assert losses(read_on(logs, run), "loss")[-1] == (30, 100 / 30)


def test_the_mean_at_the_end_of_a_training_is_no_point(tmp_path):
    path = checkpoint(tmp_path, [10, 20])
    document = json.loads(path.read_text())
    document["log_history"].append({"epoch": 1, "step": 20, "train_loss": 7.5, "train_runtime": 9})
    path.write_text(json.dumps(document))
    logs = source(path)
    (run,) = logs.runs()

    assert {p.metric for p in points_of(read_on(logs, run))} == {"loss", "learning_rate"}


def test_a_state_that_is_being_written_is_waited_for(tmp_path):
    path = checkpoint(tmp_path, [10, 20])
    logs = source(path)
    (run,) = logs.runs()
    cursor = read_on(logs, run)[-1].cursor
    whole = state([10, 20, 30])

    path.write_text(whole[: len(whole) // 2])
    between = read_on(logs, run, cursor)
    path.write_text(whole)

    assert [(list(batch.points), batch.restart) for batch in between] == [([], None)]
    assert losses(read_on(logs, run, between[-1].cursor), "loss") == [(30, 100 / 30)]


def test_a_state_that_stays_cut_is_an_error(tmp_path):
    path = checkpoint(tmp_path, [10, 20])
    path.write_text(path.read_text()[:-20])
    logs = source(path, finished=True)
    (run,) = logs.runs()

    with pytest.raises(SourceError, match="no whole JSON"):
        logs.fetch(run, None, 100)


def test_a_state_of_another_training_starts_anew(tmp_path):
    path = checkpoint(tmp_path, [10, 20])
    logs = source(path)
    (run,) = logs.runs()
    cursor = read_on(logs, run)[-1].cursor

    path.write_text(state([5, 15]))
    then = read_on(logs, run, cursor)

    assert then[0].restart is not None
    assert [step for step, _ in losses(then, "loss")] == [5, 15]


def test_a_compressed_log_is_read_like_what_is_in_it(tmp_path):
    path = tmp_path / "run.csv.gz"
    path.write_bytes(gzip.compress(b"step,loss\n1,2.5\n2,2.25\n"))
    logs = source(path)
    (run,) = logs.runs()

    assert losses(read_on(logs, run), "loss") == [(1, 2.5), (2, 2.25)]


def test_a_damaged_compressed_log_is_an_error(tmp_path):
    path = tmp_path / "run.csv.gz"
    path.write_bytes(gzip.compress(b"step,loss\n1,2.5\n" * 100)[:-9])
    logs = source(path)
    (run,) = logs.runs()

    with pytest.raises(SourceError, match="can't be unpacked"):
        logs.fetch(run, None, 100)


def test_every_kind_of_log_keeps_the_contract(tmp_path):
    (tmp_path / "a.out").write_text("".join(MEGATRON.format(i, 2.5) for i in (1, 2, 3, 2, 3, 4)))
    (tmp_path / "b.log").write_text("".join(f"step: {i} loss: {i / 4}\r" for i in range(9)) + "\n")
    checkpoint(tmp_path / "sft", [10, 20, 30])

    points = check_adapter(lambda: source(tmp_path, finished=True))

    assert set(points) == {"a.out", "b.log", "sft/trainer_state.json"}
