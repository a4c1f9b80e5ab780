"""Who is told what, and when: between the life of alerts and the outbox.

A `Dispatcher` takes every transition and says what is to be told to whom. It routes an alert, holds it back
while a silence or another alert covers it, puts alerts that belong together into one message, and
repeats what nobody has seen. It knows no clock and no database: time comes with every call, and what it must
not forget comes out as `GroupChange`, to be stored with the transitions it follows from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from wtwin_watch.alerting import grouping
from wtwin_watch.alerting.budget import Budget
from wtwin_watch.alerting.grouping import Group, Key
from wtwin_watch.alerting.inhibition import EXPLAINING, inhibitor
from wtwin_watch.alerting.lifecycle import Transition
from wtwin_watch.alerting.matching import labels_of
from wtwin_watch.alerting.routing import receivers_for
from wtwin_watch.alerting.silences import Silence, silencing
from wtwin_watch.alerting.telling import Choice, Decision, GroupChange, Outcome, Telling, Told
from wtwin_watch.model import WEIGHT, Alert, AlertState, Companion, Event, Run, RunKey

MOST_LISTED = 50
"""So many alerts besides the lead are listed in a message at most."""
LOOK_AGAIN_S = 1.0
"""So often what is held back is looked at again."""
HELD = ""
"""The receiver under which the store keeps what is held back from all of them."""

Place = tuple[str, str]
"""A receiver and the id of a group of its."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An alert and the run it is about, as they are now."""

    alert: Alert
    run: Run

    @property
    def firing(self) -> bool:
        """Whether it still fires."""
        return self.alert.state is AlertState.FIRING


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the store has kept: the alerts that fire or are in a group, and the groups."""

    subjects: Sequence[Subject] = ()
    groups: Sequence[GroupChange] = ()
    told: Sequence[tuple[str, str]] = ()
    """(receiver, alert id) of what receivers were told of alerts that fire."""


class Dispatcher:
    """Decides what is told to whom. `take` what happens to alerts, `advance` when time passes."""

    def __init__(self, telling: Telling, remembered: Remembered = Remembered()) -> None:
        self._routing = telling.routing
        self._timing = telling.timing
        self._recipients = {recipient.name: recipient for recipient in telling.recipients}
        self._known: dict[str, Subject] = {}
        """The alerts that fire, are held back or are in a group, by their id."""
        self._of_run: dict[RunKey, set[str]] = {}
        self._groups: dict[Place, Group] = {}
        self._latest: dict[tuple[str, Key], Group] = {}
        """The group of a receiver and a key that the next alert may join."""
        self._within: dict[str, set[Place]] = {}
        """The groups that an alert is in."""
        self._held: dict[str, Choice] = {}
        self._silences: tuple[Silence, ...] = ()
        self._budget: Budget | None = None
        self._look_again_at = 0.0
        self._now = -math.inf
        self._told: list[Told] = []
        self._decisions: list[Decision] = []
        self._changes: dict[Place, GroupChange] = {}
        self._remember(remembered)
        self._unheard = [id_ for id_ in self._known if self._is_unheard(id_)]
        """What fires and no receiver that there is now has heard of: it was told to others, if to any."""

    # -- what is asked of it ---------------------------------------------------------------------

    def silence(self, silences: Iterable[Silence]) -> None:
        """Heed these silences from now on, and no others."""
        silences = tuple(silences)
        if silences != self._silences:
            self._silences, self._look_again_at = silences, 0.0

    def spend(self, budget: Budget | None) -> None:
        """Tell of rises from now on only what this budget has room for; None: of all of them."""
        self._budget = budget

    def take(self, run: Run, transitions: Iterable[Transition], now: float) -> Outcome:
        """Take what happened to alerts about ``run``, in order; returns what follows at once."""
        self._now = max(self._now, now)
        for transition in transitions:
            alert = transition.alert
            if alert.quiet or alert.state is AlertState.PENDING:
                continue
            if alert.state is not AlertState.FIRING and alert.id not in self._known:
                continue
            subject = Subject(alert, run)
            self._know(subject)
            if subject.firing and alert.id not in self._held:
                self._find_hearers(subject, now, anew=transition.event is Event.FIRING)
            if transition.event is Event.ACKNOWLEDGED:
                self._tell_who_saw(subject, now)
            self._tell_of(alert.id, now)
            self._end_if_over(alert.id, now)
            if not subject.firing and alert.family in EXPLAINING:
                for id_ in [
                    i for i in self._held if self._known[i].run.key.source == run.key.source
                ]:
                    self._look_again(id_, now)
        return self._drained()

    def advance(self, now: float, *, at_once: bool = False) -> Outcome:
        """Let time pass: tell what has waited long enough. ``at_once``: what waits for others as well."""
        if now >= self._look_again_at or self._look_again_at > now + LOOK_AGAIN_S:
            self._look_again_at = now + LOOK_AGAIN_S
            for id_ in list(self._held):
                self._look_again(id_, now)
        self._tell_unheard(now)
        set_back, self._now = now < self._now, now
        for group in list(self._groups.values()):
            if group.next_at <= now or at_once or set_back:
                self._tell(group, now, at_once=at_once)
        return self._drained()

    # -- who hears of it -------------------------------------------------------------------------

    def _find_hearers(self, subject: Subject, now: float, *, anew: bool) -> None:
        """Put an alert into the groups of those who are to hear of it and haven't, unless it is covered.

        ``anew``: it fires from now on; else it may have become graver, which makes it some other receiver's.
        """
        alert = subject.alert
        labels = labels_of(alert, subject.run)
        routed = [n for n in receivers_for(self._routing, labels) if n in self._recipients]
        unheard = [n for n in routed if not self._hears(n, alert.id)]
        grave = [n for n in unheard if WEIGHT[alert.severity] >= WEIGHT[self._recipients[n].least]]
        if anew:
            self._say_who_does_not(alert, routed, set(unheard) - set(grave), now)
        if not grave:
            return
        cover = self._cover(subject, now)
        if cover is not None:
            self._hold(alert, *cover, now)
            return
        for name in grave:
            self._join(name, subject, now)

    def _is_unheard(self, id_: str) -> bool:
        alert = self._known[id_].alert
        firing = alert.state is AlertState.FIRING and not alert.quiet
        return firing and id_ not in self._held and not self._within.get(id_)

    def _tell_unheard(self, now: float) -> None:
        unheard, self._unheard = self._unheard, []
        for id_ in unheard:
            if id_ in self._known and self._is_unheard(id_):
                self._find_hearers(self._known[id_], now, anew=False)
                self._tell_of(id_, now)

    def _say_who_does_not(
        self, alert: Alert, routed: Sequence[str], below: set[str], now: float
    ) -> None:
        if not routed:
            self._decide(alert.id, now, "", Choice.NOBODY, "no route leads to a receiver")
        for name in sorted(below):
            least = self._recipients[name].least.value
            text = f"it hears of what is {least} or graver, and this is {alert.severity.value}"
            self._decide(alert.id, now, name, Choice.BELOW, text)

    def _join(self, name: str, subject: Subject, now: float) -> None:
        id_, key = subject.alert.id, grouping.key_of(subject.alert, subject.run)
        group = self._latest.get((name, key)) if self._recipients[name].grouped else None
        if group is None or not grouping.joins(group, now, self._timing):
            group = Group(name, id_, key, now, now)
            self._keep(group)
        group.members[id_] = None
        group.joined_at = now
        self._within.setdefault(id_, set()).add((name, group.id))
        self._remember_change(group)

    def _hears(self, name: str, id_: str) -> bool:
        return any(receiver == name for receiver, _ in self._within.get(id_, ()))

    # -- what is held back -----------------------------------------------------------------------

    def _cover(self, subject: Subject, now: float) -> tuple[Choice, str] | None:
        """Why nobody is to hear of an alert now, if so."""
        alert = subject.alert
        silence = silencing(self._silences, labels_of(alert, subject.run), now)
        if silence is not None:
            why = f"silence {silence.id[:8]} of {silence.author}: {silence.comment}"
            return Choice.SILENCED, why
        near = {
            *self._of_run.get(alert.run, ()),
            *self._of_run.get(RunKey(alert.run.source, ""), ()),
        }
        cause = inhibitor(alert, (self._known[id_].alert for id_ in near))
        if cause is not None:
            return Choice.INHIBITED, f"alert {cause.id[:8]} explains it: {cause.detection.summary}"
        strength, budget = alert.detection.strength, self._budget
        if budget is not None and strength is not None and strength < budget.bar:
            why = (
                f"chance brings this much once in {math.exp(strength + 1.5):.2g} points,"
                f" and the budget has room for once in {budget.far_to_tell:.2g}"
            )
            return Choice.WEAK, why
        return None

    def _hold(self, alert: Alert, choice: Choice, why: str, now: float) -> None:
        self._held[alert.id] = choice
        self._decide(alert.id, now, "", choice, why)
        self._changes[HELD, alert.id] = GroupChange(HELD, alert.id, {"choice": choice.value})

    def _let_go(self, id_: str) -> None:
        del self._held[id_]
        self._changes[HELD, id_] = GroupChange(HELD, id_, None)

    def _look_again(self, id_: str, now: float) -> None:
        subject = self._known[id_]
        if self._cover(subject, now) is None:
            self._let_go(id_)
            self._decide(id_, now, "", Choice.RELEASED, "nothing covers it any more")
            self._find_hearers(subject, now, anew=True)
            self._tell_of(id_, now)

    # -- telling ---------------------------------------------------------------------------------

    def _tell_of(self, id_: str, now: float) -> None:
        for place in sorted(self._within.get(id_, ())):
            self._tell(self._groups[place], now)

    def _tell(self, group: Group, now: float, *, at_once: bool = False) -> None:
        """Tell of ``group`` what is due, and note when to look at it again."""
        group.not_after(now)
        alerts = self._alerts(group)
        due = grouping.due(group, alerts, now, self._timing)
        if due is None:
            group.next_at = math.inf
            if group.told_at is None:
                for alert in alerts:
                    self._decide(alert.id, now, group.receiver, Choice.BRIEF, alert.outcome)
            self._close_if_over(group)
        elif due.at > now and not (at_once and due.event is Event.FIRING):
            group.next_at = due.at
        elif due.event is Event.RESOLVED or not self._covered(group, now):
            self._say(group, due.event, now)

    def _covered(self, group: Group, now: float) -> bool:
        """Whether what is due must not be told; what nobody was told of yet is held back alert by alert."""
        living = grouping.alive(group, self._alerts(group))
        covers = {alert.id: self._cover(self._known[alert.id], now) for alert in living}
        if group.told_at is not None:
            # What was told isn't taken back by a budget that is smaller now.
            free = [c for c in covers.values() if c is None or c[0] is Choice.WEAK]
            group.next_at = now + LOOK_AGAIN_S
            return not free
        for id_, cover in covers.items():
            if cover is None:
                continue
            self._leave(group, id_)
            if id_ not in self._held:
                self._hold(self._known[id_].alert, *cover, now)
        if not grouping.alive(group, self._alerts(group)):
            self._close(group)
            return True
        if group.id not in group.members:
            self._lead_anew(group)
        return False

    def _say(self, group: Group, event: Event, now: float) -> None:
        self._tell_together(group, event)
        for id_, told in group.members.items():
            if id_ == group.id:
                self._decide(id_, now, group.receiver, Choice.TOLD, event.value)
            elif told != grouping.mark(self._known[id_].alert):
                text = f"{event.value}, with alert {group.id[:8]}"
                self._decide(id_, now, group.receiver, Choice.GROUPED, text)
        self._note_told(group, now)
        following = grouping.due(group, self._alerts(group), now, self._timing)
        group.next_at = math.inf if following is None else following.at
        self._close_if_over(group)

    def _tell_together(self, group: Group, event: Event, seen: Alert | None = None) -> None:
        lead = self._known[group.id]
        alert = grouping.as_one(group, self._alerts(group), lead.alert)
        if seen is not None:
            alert = replace(alert, acknowledged=seen.acknowledged)
        listed = [self._known[id_] for id_ in group.members if id_ != group.id]
        # What fires stands first: of many, not all are listed.
        listed.sort(key=lambda subject: not subject.firing)
        others = tuple(Companion(one.alert, one.run) for one in listed[:MOST_LISTED])
        told = Told(group.receiver, event, alert, lead.run, others, len(group.members))
        self._told.append(told)

    def _note_told(self, group: Group, now: float) -> None:
        alerts = self._alerts(group)
        living = grouping.alive(group, alerts)
        group.told_at = now
        group.told_severity = grouping.gravest(living) if living else group.told_severity
        for alert in alerts:
            group.members[alert.id] = grouping.mark(alert)
            if alert.state is AlertState.RESOLVED and alert.id != group.id:
                self._leave(group, alert.id)
        self._remember_change(group)

    def _alerts(self, group: Group) -> list[Alert]:
        return [self._known[id_].alert for id_ in group.members]

    def _tell_who_saw(self, subject: Subject, now: float) -> None:
        """Tell those who heard of an alert that it was seen, or isn't any more, once all told with it is."""
        id_ = subject.alert.id
        for place in sorted(self._within.get(id_, ())):
            group = self._groups[place]
            living = grouping.alive(group, self._alerts(group))
            others = [alert for alert in living if alert.id != id_]
            if group.told_at is not None and all(alert.acknowledged for alert in others):
                self._tell_together(group, Event.ACKNOWLEDGED, subject.alert)
                text = Event.ACKNOWLEDGED.value
                self._decide(id_, now, group.receiver, Choice.TOLD, text)
            group.next_at = 0.0  # its repeats are another matter now

    # -- what is known ---------------------------------------------------------------------------

    def _remember(self, remembered: Remembered) -> None:
        for subject in remembered.subjects:
            self._know(subject)
        for kept in remembered.groups:
            if kept.state is None:
                continue
            if kept.receiver == HELD:
                if kept.id in self._known:
                    self._held[kept.id] = Choice(kept.state["choice"])
                continue
            group = grouping.restored(kept.receiver, kept.id, kept.state)
            if kept.receiver in self._recipients and {group.id, *group.members} <= set(self._known):
                self._keep(group)
                for id_ in group.members:
                    self._within.setdefault(id_, set()).add((group.receiver, group.id))
        for receiver, id_ in remembered.told:
            known = self._known.get(id_)
            if known is None or receiver not in self._recipients or self._hears(receiver, id_):
                continue
            # A state of before groups were kept: it was told by itself.
            alert = known.alert
            at = alert.fired_at or alert.started_at
            group = Group(receiver, id_, grouping.key_of(alert, known.run), at, at)
            group.members[id_] = grouping.mark(alert)
            group.told_at, group.told_severity = at, alert.severity
            self._keep(group)
            self._within.setdefault(id_, set()).add((receiver, id_))

    def _know(self, subject: Subject) -> None:
        self._known[subject.alert.id] = subject
        self._of_run.setdefault(subject.alert.run, set()).add(subject.alert.id)

    def _close_if_over(self, group: Group) -> None:
        if not grouping.alive(group, self._alerts(group)):
            self._close(group)

    def _end_if_over(self, id_: str, now: float) -> None:
        subject = self._known.get(id_)
        if subject is None or subject.firing:
            return
        if id_ in self._held:
            self._let_go(id_)
            text = "it ended while it was held back"
            self._decide(id_, now, "", Choice.BRIEF, text)
        self._forget(id_)

    def _forget(self, id_: str) -> None:
        """Let go of an alert that is over and that nothing is to be told of any more."""
        if self._within.get(id_) or id_ in self._held or self._known[id_].firing:
            return
        run = self._known.pop(id_).alert.run
        self._within.pop(id_, None)
        self._of_run[run].discard(id_)
        if not self._of_run[run]:
            del self._of_run[run]

    def _keep(self, group: Group) -> None:
        self._groups[group.receiver, group.id] = group
        self._latest[group.receiver, group.key] = group

    def _leave(self, group: Group, id_: str) -> None:
        del group.members[id_]
        self._within[id_].discard((group.receiver, group.id))
        self._remember_change(group)
        if id_ != group.id:
            self._forget(id_)

    def _lead_anew(self, group: Group) -> None:
        """Name a group that nobody was told of after its first member, since its lead has left it."""
        members = dict(group.members)
        self._close(group)
        group.id, group.members = next(iter(members)), members
        self._keep(group)
        for id_ in members:
            self._within.setdefault(id_, set()).add((group.receiver, group.id))
        self._remember_change(group)

    def _close(self, group: Group) -> None:
        place = (group.receiver, group.id)
        del self._groups[place]
        if self._latest.get((group.receiver, group.key)) is group:
            del self._latest[group.receiver, group.key]
        self._changes[place] = GroupChange(*place, None)
        for id_ in {group.id, *group.members}:
            self._within.get(id_, set()).discard(place)
            if id_ in self._known:
                self._forget(id_)

    def _remember_change(self, group: Group) -> None:
        place = (group.receiver, group.id)
        if place in self._groups:
            self._changes[place] = GroupChange(*place, group.stored())

    def _decide(self, id_: str, now: float, receiver: str, choice: Choice, text: str) -> None:
        self._decisions.append(Decision(id_, now, receiver, choice, text))

    def _drained(self) -> Outcome:
        outcome = Outcome(tuple(self._told), tuple(self._decisions), tuple(self._changes.values()))
        self._told, self._decisions, self._changes = [], [], {}
        return outcome
