"""The daemon's own decisions over a fortnight: every run looked at in its rhythm, then who is told what."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise

from benchmarks.fortnight.cluster import Fortnight, Planned
from wtwin_watch.alerting.budget import WEEK_S, Budget
from wtwin_watch.alerting.dispatch import Dispatcher
from wtwin_watch.alerting.lifecycle import Policy, Transition
from wtwin_watch.alerting.routing import Recipient, Routing
from wtwin_watch.alerting.telling import Telling, Timing, Told
from wtwin_watch.ingest.judging import Judging, Rules
from wtwin_watch.ingest.plan import Patience, SourcePlan
from wtwin_watch.ingest.watched import WatchedRun
from wtwin_watch.metrics import Names
from wtwin_watch.model import Batch, Point, Restart, Run, RunKey, RunStatus, Severity
from wtwin_watch.monitor.options import TrendOptions

LOOK_S = 30.0
BUDGET_S = 600.0
BEGAN = 1_700_000_000.0
"""When the fortnight begins, unix seconds."""
FAR = 1e5


@dataclass(frozen=True, slots=True)
class Happened:
    """What came of one look at one run."""

    at: float
    run: Run
    transitions: tuple[Transition, ...]
    rate: float
    """Losses a second that the run logs."""


def watch(planned: Planned) -> list[Happened]:
    """Look at a run from its first row to an hour after its last, as the daemon does."""
    key = RunKey("cluster", planned.name)
    group = planned.sweep or None
    plan = SourcePlan("simulated", Names(), LOOK_S)
    ids = count(1)
    rules = Rules(Policy(0.0, 600.0), Patience(), plan, lambda: f"{planned.name}#{next(ids)}")
    judging = Judging(Names(), TrendOptions(far=FAR))
    times = planned.times
    rewinds = dict(planned.rewinds)
    found: list[Happened] = []
    if not len(times):
        return found
    now = BEGAN + float(times[0])
    run = WatchedRun(Run(key, planned.name, group=group), judging, judging.new_monitor(), now)
    run.newborn = True
    read, noted = 0, 0.0
    last = BEGAN + float(times[-1])
    while now <= last + LOOK_S:
        ended = now > last
        status = RunStatus.FINISHED if ended else _status(planned, now - BEGAN)
        listed = Run(key, planned.name, status=status, group=group)
        run.see(listed, now)
        transitions: list[Transition] = []
        upto = int(times.searchsorted(now - BEGAN, side="right"))
        if upto > read:
            for begin, end in _stretches(read, upto, rewinds):
                back = rewinds.get(begin)
                step = float(planned.log.steps[begin])
                restart = None if back is None else Restart("begun again", step)
                transitions += run.take(_batch(planned, begin, end, restart), now, now, rules)
            read = upto
        else:
            run.cadence.looked(now, LOOK_S)
        transitions += run.judge(now, rules)
        transitions += run.advance(now, rules)
        if transitions or now - noted >= BUDGET_S or ended:
            noted = now
            rate = run.points_a_second(now)
            found.append(Happened(now, listed, tuple(transitions), rate))
        now += LOOK_S
    return found


def _status(planned: Planned, at: float) -> RunStatus:
    """What the scheduler says of it: it was preempted between the last row before a rewind and the next."""
    for row, _ in planned.rewinds:
        if row < len(planned.times) and planned.times[row - 1] < at < planned.times[row]:
            return RunStatus.PREEMPTED
    return RunStatus.RUNNING


def _stretches(read: int, upto: int, rewinds: dict[int, int]) -> Iterator[tuple[int, int]]:
    inside = sorted(at for at in rewinds if read < at < upto)
    edges = [read, *inside, upto]
    return pairwise(edges)


def _batch(planned: Planned, begin: int, end: int, restart: Restart | None) -> Batch:
    log = planned.log
    points = []
    for row in range(begin, end):
        step = float(log.steps[row])
        if log.lrs is not None:
            points.append(Point("lr", step, float(log.lrs[row])))
        points.append(Point("loss", step, float(log.losses[row])))
    return Batch(points, {"row": end}, restart=restart)


@dataclass(frozen=True, slots=True)
class Message:
    """One message to the team. ``at`` in seconds from the beginning of the fortnight."""

    at: float
    told: Told


def tell(
    fortnight: Fortnight, happened: Sequence[Sequence[Happened]], allowed: float | None
) -> list[Message]:
    """Let the dispatcher decide, with its defaults, what one team is told."""
    telling = Telling((Recipient("team", Severity.WARNING),), Routing((), ("team",)), Timing())
    dispatcher = Dispatcher(telling)
    messages: list[Message] = []
    rates: dict[str, float] = {}
    next_budget = BEGAN
    for one in heapq.merge(*happened, key=lambda one: one.at):
        messages += _messages(one.at, dispatcher.advance(one.at).told)
        rates[one.run.name] = 0.0 if one.run.status.ended else one.rate
        if allowed is not None and one.at >= next_budget:
            next_budget = one.at + BUDGET_S
            live = [rate for rate in rates.values() if rate > 0.0]
            dispatcher.spend(Budget(allowed, sum(live), len(live), FAR))
        if one.transitions:
            messages += _messages(one.at, dispatcher.take(one.run, one.transitions, one.at).told)
    end = BEGAN + fortnight.span_s + 3_600.0
    messages += _messages(end, dispatcher.advance(end).told)
    return messages


def _messages(at: float, told: Sequence[Told]) -> list[Message]:
    return [Message(at - BEGAN, one) for one in told]


ONE_A_WEEK = 1.0 / WEEK_S
