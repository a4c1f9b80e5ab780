"""Logs that two processes write to in turn, and logs that only look so."""

from tests.support.writers import Log, skipped_of


def table(path, steps):
    log = Log(path)
    log.write("step,loss\n" + "".join(f"{step},{step / 8}\n" for step in steps))
    return log


def test_of_two_processes_in_one_log_the_one_behind_is_left_out(tmp_path):
    ahead = range(10, 1000)
    log = table(tmp_path / "run.csv", [s for step in ahead for s in (step, step - 3)])

    batches = log.read()

    losses = [p.step for batch in batches for p in batch.points]
    assert sum(batch.restart is not None for batch in batches) == 2
    assert losses[-900:] == list(ahead)[-900:]
    assert skipped_of(batches) == {"row of another writer": 988}


def test_two_processes_are_known_after_a_restart_of_the_watcher_too(tmp_path):
    log = table(tmp_path / "run.csv", [10, 9, 11, 10, 12])
    log.read()

    log.write("11,1.5\n13,1.75\n")
    batches = log.read()

    assert [(p.step, p.value) for batch in batches for p in batch.points] == [(13, 1.75)]
    assert skipped_of(batches) == {"row of another writer": 1}


def test_a_run_that_goes_back_again_and_again_is_one_writer(tmp_path):
    stretches = [range(first, first + 20) for first in (0, 10, 20, 30)]
    log = table(tmp_path / "run.csv", [step for stretch in stretches for step in stretch])

    batches = log.read()

    assert [b.restart.step for b in batches if b.restart] == [10, 20, 30]
    assert skipped_of(batches) == {}


def test_a_log_of_two_processes_that_goes_on_far_back_is_followed_there(tmp_path):
    log = table(tmp_path / "run.csv", [1000, 999, 1001, 1000, 1002, *range(500, 700)])

    batches = log.read()

    assert batches[-1].restart is not None
    assert batches[-1].restart.step == 599
    assert [p.step for p in batches[-1].points] == list(range(599, 700))
    assert skipped_of(batches) == {"row of another writer": 99}
