"""The simulated fortnight: what is planned, and what a z-score would have sent."""

import numpy as np
import pytest

from benchmarks.fortnight import __main__ as fortnight
from benchmarks.fortnight.cluster import A_SWEEP, DAY_S, SWEEPS, plan


@pytest.fixture
def planned(monkeypatch):
    monkeypatch.delenv("WTWIN_WATCH_CORPUS", raising=False)
    return plan(seed=1, runs=60, span_s=DAY_S)


def test_the_plan_has_so_many_runs_three_sweeps_and_two_incidents(planned):
    assert len(planned.runs) == 60
    assert len({run.sweep for run in planned.runs if run.sweep}) == SWEEPS
    assert sum(bool(run.sweep) for run in planned.runs) == SWEEPS * A_SWEEP
    assert sum(run.incident is not None and not run.on_purpose for run in planned.runs) == 2


def test_the_rows_of_a_run_come_in_order_and_none_while_the_storage_hangs(planned):
    begin, end = planned.hang
    for run in planned.runs:
        assert (np.diff(run.times) > 0).all()
        assert not ((run.times > begin) & (run.times < end)).any()
        assert len(run.times) == len(run.log)


def test_the_same_seed_plans_the_same(planned):
    again = plan(seed=1, runs=60, span_s=DAY_S)

    assert all((a.times == b.times).all() for a, b in zip(planned.runs, again.runs, strict=True))


def test_a_z_score_sends_one_message_a_breach():
    calm = np.tile([1.0, 1.1], 30)
    # Two rises of two rows each: the second row of a rise is no new breach.
    spiky = np.concatenate([calm, [9.0, 9.0], calm, [9.0]])

    assert fortnight._breaches(calm) == 0
    assert fortnight._breaches(spiky) == 2
    assert fortnight._breaches(calm[:20]) == 0
