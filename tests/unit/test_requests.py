"""What people ask about alerts, and what the engine makes of it."""

import math
import sqlite3

import pytest

from tests.support.curves import healthy, with_rise
from tests.support.memory import World
from wtwin_watch.errors import StoreError
from wtwin_watch.model import AlertState, Event, Family, RunKey
from wtwin_watch.monitor.options import TrendOptions
from wtwin_watch.notify.refusals import Refusals
from wtwin_watch.store import Verb, requests
from wtwin_watch.store.history import read_story

HEALTHY = [2.0 + 0.01 * math.sin(i) for i in range(20)]
A_DAY = 86_400.0


class Desk(World):
    """A world in which somebody asks for things."""

    def open_alert(self, run="a", source="memory"):
        [alert] = self.store.latest_alerts(source)[RunKey(source, run)].values()
        return alert

    def ask(self, verb, id_, *, until=None, comment=""):
        """Ask as the command does, and return the answer that there is then."""
        state, now = self.url.database, self.clock.time()
        asked = requests.ask(
            state, verb, [id_], by="ada", now=now, until=until, comment=comment
        ).requests
        self.settle(2)
        return requests.answers(state, asked).get(asked[0].seq)

    def story(self, id_):
        return [
            (c.reason, c.event)
            for c in read_story(self.url.database, self.clock.time(), id_).changes
        ]


@pytest.fixture
def world(tmp_path):
    world = Desk(tmp_path)
    yield world
    world.store.close()


@pytest.fixture
def nan(world):
    """The open alert about a NaN."""
    world.source.log("a", HEALTHY)
    world.settle()
    world.source.log("a", [math.nan])
    world.settle(2)
    return world.open_alert()


@pytest.fixture
def risen(tmp_path):
    """A world with the default detector, whose run has just risen by 0.3."""
    world = Desk(tmp_path, detector=TrendOptions())
    world.losses = with_rise(healthy(6000), 1500, [0.3] * 3000 + [0.6])
    world.source.log("a", world.losses[:1500])
    world.settle()
    world.source.log("a", world.losses[1500:1560])
    world.settle(2)
    yield world
    world.store.close()


# -- seen ------------------------------------------------------------------------------------------


def test_an_acknowledgement_is_kept_with_the_alert_and_told(world, nan):
    answer = world.ask(Verb.ACKNOWLEDGE, nan.id, until=2e9, comment="on it")

    assert (answer.outcome, answer.refused) == ("acknowledged by ada", False)
    seen = world.open_alert().acknowledged
    assert (seen.by, seen.until, seen.comment) == ("ada", 2e9, "on it")
    assert world.open_alert().state is AlertState.FIRING
    assert world.story(nan.id)[-1] == ("acknowledged", "acknowledged")
    assert [event for event, _, _ in world.outbox()] == ["firing", "acknowledged"]


def test_an_acknowledgement_outlives_a_kill_and_ends_with_the_alert(world, nan):
    world.ask(Verb.ACKNOWLEDGE, nan.id)
    world.kill()
    world.start()
    world.settle()
    assert world.open_alert().acknowledged.by == "ada"

    world.source.log("a", HEALTHY * 4)
    world.settle(2)
    world.source.log("a", [math.nan])
    world.settle(2)

    assert world.open_alert().id != nan.id
    assert world.open_alert().acknowledged is None


def test_an_acknowledgement_can_be_taken_back(world, nan):
    world.ask(Verb.ACKNOWLEDGE, nan.id)

    answer = world.ask(Verb.UNACKNOWLEDGE, nan.id)

    assert answer.outcome == "no longer acknowledged"
    assert world.open_alert().acknowledged is None
    again = world.ask(Verb.UNACKNOWLEDGE, nan.id)
    assert (again.outcome, again.refused) == ("the alert isn't acknowledged", True)


def test_the_alert_about_a_source_can_be_acknowledged_but_not_accepted(world, nan):
    world.source.down = "no route to host"
    world.settle(2)
    world.settle(400)
    down = world.open_alert(run="")
    assert down.family is Family.SOURCE

    refused = world.ask(Verb.ACCEPT, down.id)
    answer = world.ask(Verb.ACKNOWLEDGE, down.id)

    assert refused.refused
    assert "source_down is about no level" in refused.outcome
    assert not answer.refused
    assert world.open_alert(run="").acknowledged.by == "ada"
    world.source.down = None
    world.settle(400)
    world.settle(400)
    assert world.open_alert(run="").state is AlertState.RESOLVED


def test_what_is_asked_while_no_daemon_runs_is_done_at_the_next_start(world, nan):
    world.kill()
    [asked] = requests.ask(
        world.url.database, Verb.ACKNOWLEDGE, [nan.id], by="ada", now=world.clock.time()
    ).requests
    assert requests.answers(world.url.database, [asked]) == {}

    world.start()
    world.settle(2)

    assert requests.answers(world.url.database, [asked])[asked.seq].outcome == "acknowledged by ada"


def test_an_answer_that_could_not_be_saved_is_saved_later_and_the_request_done_once(
    world, nan, monkeypatch
):
    def refuse(*_):
        raise StoreError("disk full")

    save = world.store.save
    monkeypatch.setattr(world.store, "save", refuse)
    assert world.ask(Verb.ACKNOWLEDGE, nan.id) is None
    world.settle(2)
    monkeypatch.setattr(world.store, "save", save)
    world.settle(10)

    assert world.store.requests() == []
    assert [reason for reason, _ in world.story(nan.id)].count("acknowledged") == 1


def test_a_request_about_an_alert_that_has_ended_meanwhile_is_refused(world, nan):
    world.kill()
    [asked] = requests.ask(
        world.url.database, Verb.ACKNOWLEDGE, [nan.id], by="ada", now=world.clock.time()
    ).requests
    world.source.log("a", HEALTHY * 4)
    world.start()
    # The log is read before anything is answered.
    world.engine._requests.serve = lambda: None
    world.settle(2)
    del world.engine._requests.serve
    world.settle(2)

    answer = requests.answers(world.url.database, [asked])[asked.seq]
    assert (answer.outcome, answer.refused) == ("the alert is over", True)


def test_a_request_about_the_alert_of_a_receiver_is_refused_since_it_is_not_repeated(world):
    Refusals(world.store, world.clock, ["slack"], told=lambda: None).parked("slack", "no channel")

    answer = world.ask(Verb.ACKNOWLEDGE, world.store.open_alerts(Family.RECEIVER)[0].id)

    assert answer.refused
    assert answer.outcome.startswith("an alert about a receiver isn't repeated")


def test_a_request_about_a_source_that_is_not_watched_any_more_is_refused(world, nan):
    world.engine._pollers.pop("memory").let_go()

    answer = world.ask(Verb.ACKNOWLEDGE, nan.id)

    assert (answer.outcome, answer.refused) == (
        "the source of the alert is not watched any more",
        True,
    )


# -- accepted --------------------------------------------------------------------------------------


@pytest.mark.parametrize("killed", [False, True])
def test_an_accepted_level_is_told_no_more_and_a_further_rise_is(risen, killed):
    world, alert = risen, risen.open_alert()

    answer = world.ask(Verb.ACCEPT, alert.id, comment="harder data")

    assert answer.outcome == "Accepted as the new normal by ada: harder data"
    over = world.open_alert()
    assert (over.id, over.state, over.outcome) == (alert.id, AlertState.RESOLVED, answer.outcome)
    assert over.resolved_step == 1560.0
    assert world.story(alert.id)[-1] == ("accepted as the new normal", "resolved")
    if killed:
        world.kill()
        world.start()
    world.source.log("a", world.losses[1560:4500], start=1561)
    world.settle(2)
    assert world.open_alert().id == alert.id

    world.source.log("a", world.losses[4500:4600], start=4501)
    world.settle(A_DAY)
    further = world.open_alert()
    assert further.id != alert.id
    assert (further.state, further.family) == (AlertState.FIRING, Family.LOSS)


def test_what_was_accepted_before_a_kill_that_came_before_its_commit_is_accepted_again(
    risen, monkeypatch
):
    def refuse(*_):
        raise StoreError("killed before the commit")

    world, alert = risen, risen.open_alert()
    monkeypatch.setattr(world.store, "save", refuse)
    assert world.ask(Verb.ACCEPT, alert.id) is None
    world.kill()
    world.start()
    world.settle(2)

    assert world.store.requests() == []
    assert world.open_alert().outcome == "Accepted as the new normal by ada."


def test_what_is_no_level_is_not_accepted_and_nothing_changes(world, nan):
    answer = world.ask(Verb.ACCEPT, nan.id)

    assert answer.refused
    assert "kind nonfinite is about no level" in answer.outcome
    assert world.open_alert() == nan
    assert world.outbox() == [("firing", "a", "nonfinite")]


def test_a_run_whose_history_is_read_anew_is_accepted_at_its_end(risen):
    world, alert = risen, risen.open_alert()
    world.kill()
    requests.ask(world.url.database, Verb.ACCEPT, [alert.id], by="ada", now=world.clock.time())
    # Another false-alarm rate makes the whole log be judged anew.
    world.start(detector=TrendOptions(far=2e5))
    world.settle(2)
    world.settle(2)

    assert world.store.requests() == []
    over = read_story(world.url.database, 0.0, alert.id).alert
    assert over.outcome == "Accepted as the new normal by ada."


def test_an_alert_of_history_can_be_accepted_but_there_is_nobody_to_stop_telling(tmp_path):
    world = Desk(tmp_path, detector=TrendOptions())
    world.source.log("a", with_rise(healthy(1700), 1500, [0.3]))
    world.source.last_activity["a"] = world.clock.now - A_DAY
    world.settle()
    alert = world.open_alert()
    assert alert.quiet

    seen = world.ask(Verb.ACKNOWLEDGE, alert.id)
    accepted = world.ask(Verb.ACCEPT, alert.id)

    assert (seen.refused, "nobody is told" in seen.outcome) == (True, True)
    assert not accepted.refused
    assert world.open_alert().state is AlertState.RESOLVED
    assert world.outbox() == []
    world.store.close()


def test_a_run_at_rest_is_taken_up_for_a_request(tmp_path):
    world = Desk(tmp_path, detector=TrendOptions())
    world.source.log("a", with_rise(healthy(1700), 1500, [0.3]))
    world.source.last_activity["a"] = world.clock.now - A_DAY
    world.settle()
    for _ in range(3):
        world.settle(4000.0)
    assert world.engine._pollers["memory"].roster.resting.keys() == {"a"}

    answer = world.ask(Verb.ACCEPT, world.open_alert().id)

    assert not answer.refused
    assert world.open_alert().state is AlertState.RESOLVED
    world.store.close()


# -- kept ------------------------------------------------------------------------------------------


def test_answered_requests_are_forgotten_in_time_and_open_ones_are_not(world, nan):
    world.ask(Verb.ACKNOWLEDGE, nan.id)
    world.kill()
    requests.ask(world.url.database, Verb.UNACKNOWLEDGE, [nan.id], by="ada", now=world.clock.time())
    world.start()

    world.store.prune(before=2e9, gone_before=0.0)

    with sqlite3.connect(world.url.database) as connection:
        rows = connection.execute("SELECT verb, done_at FROM requests").fetchall()
    assert rows == [("unacknowledge", None)]
    assert Event.ACKNOWLEDGED in [event for event, _, _ in world.outbox()]
