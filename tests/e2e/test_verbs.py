"""What people say to a running daemon about its alerts: silence, acknowledge, accept."""

import json

import pytest

from tests.support.curves import healthy as falling
from tests.support.curves import with_rise
from tests.support.process import wait_until
from tests.support.slack_standin import CHANNEL, TOKEN, SlackStandIn
from tests.support.training import NAN, healthy

pytestmark = pytest.mark.e2e

SETTINGS = """
[alerts]
cooldown = "0s"

[[source]]
name = "logs"
adapter = "csv"
path = "{path}"

[[receiver]]
name = "team"
notifier = "slack"
token = {{ env = "SLACK_BOT_TOKEN" }}
channel = "{channel}"
api_url = "{api_url}"
mention = {{ critical = ["here"], warning = ["here"] }}
"""
ADA = ("--by", "ada", "--comment", "moving the cluster")


def rows(losses, start=0):
    return "".join(f"{step},{loss}\n" for step, loss in enumerate(losses, start=start))


class Team:
    """A daemon that watches one log and tells Slack, and the people who talk to it."""

    def __init__(self, program, slack, losses):
        self.program, self.slack = program, slack
        self.log = program.folder / "log.csv"
        self.log.write_text("step,loss\n" + rows(losses))
        self.steps = len(losses)
        program.env |= {"SLACK_BOT_TOKEN": TOKEN}
        program.configure(SETTINGS.format(path=self.log, channel=CHANNEL, api_url=slack.api_url))
        self.daemon = program.start()
        assert program.known(), self.daemon.log

    def logs(self, losses):
        with self.log.open("a") as out:
            out.write(rows(losses, start=self.steps))
        self.steps += len(losses)

    def has_read_all(self):
        return bool(wait_until(lambda: self.program.runs()["logs"].points == self.steps))

    def says(self, *words):
        """Run a command, and return what it prints."""
        done = self.program.command(*words, "--state", self.program.state, "--json")
        assert done.returncode in {0, 1}, done.stderr
        return json.loads(done.stdout)

    def open_alerts(self):
        return self.says("alerts", "--open")

    def is_told(self):
        """Wait until Slack has taken what there is to tell, and that is written down."""
        return wait_until(lambda: set(self.program.rows("SELECT state FROM outbox")) == {("sent",)})

    def killed(self):
        """Kill the daemon, and start another one."""
        self.daemon.kill()
        self.daemon = self.program.start()
        self.daemon.ready()


@pytest.fixture
def slack():
    with SlackStandIn(message_gap_s=0.0) as slack:
        yield slack
    assert slack.mistakes == []


def test_a_silenced_alert_is_told_when_its_silence_ends(program, slack):
    team = Team(program, slack, healthy(40))
    [silence] = team.says("silence", "severity=critical", "--for", "1h", *ADA)

    team.logs(NAN)
    decided = "SELECT decision FROM decisions"
    assert wait_until(lambda: ("silenced",) in program.rows(decided)), team.daemon.log

    [alert] = team.open_alerts()
    assert (alert["state"], alert["silenced"]["id"]) == ("firing", silence["id"])
    assert [one["alerts"] for one in team.says("silence", "list")] == [[alert["id"]]]
    assert slack.messages == []
    team.says("silence", "end", silence["id"])
    assert wait_until(lambda: slack.messages), team.daemon.log
    assert "loss is not finite" in slack.parents[0].title


def test_a_silence_made_while_no_daemon_runs_holds_from_its_start_on(program, slack):
    team = Team(program, slack, healthy(40))
    team.daemon.kill()
    team.says("silence", 'run=~".*/log"', "--for", "1h", *ADA)
    team.logs(NAN)
    team.daemon = program.start()

    decided = "SELECT decision FROM decisions"
    assert wait_until(lambda: ("silenced",) in program.rows(decided)), team.daemon.log
    assert team.daemon.stop() == 0
    assert slack.messages == []


def test_an_acknowledgement_edits_the_message_and_pings_nobody_also_after_a_kill(program, slack):
    team = Team(program, slack, healthy(40))
    team.logs(NAN)
    assert wait_until(lambda: slack.parents), team.daemon.log
    [parent] = slack.parents
    assert parent.pings == ["<!here>"]
    [alert] = team.open_alerts()

    [answer] = team.says("ack", alert["id"][:6], "--by", "ada", "--for", "2h")

    assert (answer["state"], answer["outcome"]) == ("done", "acknowledged by ada")
    assert wait_until(lambda: parent.title.startswith("👀 Acknowledged: ")), team.daemon.log
    assert "seen by ada" in parent
    team.killed()
    [seen] = team.says("status")["alerts"]
    assert (seen["state"], seen["acknowledged"]["by"]) == ("firing", "ada")
    team.says("ack", alert["id"], "--undo")
    assert wait_until(lambda: "No longer acknowledged" in parent.title), team.daemon.log
    # Over the post and all edits: the post alone pinged.
    assert slack.messages == [parent]
    assert parent.pings == ["<!here>"]
    assert len(slack.calls("chat.postMessage")) == 1


def test_an_accepted_level_is_resolved_and_stays_so_through_a_kill(program, slack):
    losses = with_rise(falling(3200), 1500, [0.3] * 1200 + [0.6])
    team = Team(program, slack, losses[:1500])
    team.logs(losses[1500:1560])
    assert team.is_told(), team.daemon.log
    assert team.has_read_all()
    [alert] = team.open_alerts()

    [answer] = team.says("accept", alert["id"], "--by", "ada", "--comment", "harder data")
    team.daemon.kill()

    said = "Accepted as the new normal by ada: harder data"
    assert (answer["state"], answer["outcome"]) == ("done", said)
    team.daemon = program.start()
    assert wait_until(lambda: slack.parents[0].title.startswith("✅ Resolved: ")), team.daemon.log
    assert said in slack.parents[0]
    team.logs(losses[1560:2700])
    assert team.has_read_all(), team.daemon.log
    assert team.open_alerts() == []
    assert len(slack.parents) == 1

    team.logs(losses[2700:2760])
    assert wait_until(lambda: len(slack.parents) == 2), team.daemon.log
    [further] = team.open_alerts()
    assert further["id"] != alert["id"]
    assert abs(further["detection"]["onset_step"] - 2700) <= 8


def test_a_nan_is_not_accepted(program, slack):
    team = Team(program, slack, healthy(40))
    team.logs(NAN)
    assert wait_until(lambda: slack.parents), team.daemon.log
    [alert] = team.open_alerts()

    done = program.command("accept", alert["id"], "--by", "ada", "--state", program.state)

    assert done.returncode == 2
    assert "not done: an alert of the kind nonfinite is about no level" in done.stdout
    assert [one["state"] for one in team.open_alerts()] == ["firing"]


def test_what_is_asked_while_no_daemon_runs_is_done_by_the_next_one(program, slack):
    team = Team(program, slack, healthy(40))
    team.logs(NAN)
    assert team.is_told(), team.daemon.log
    team.daemon.kill()
    [alert] = team.open_alerts()

    [answer] = team.says("ack", alert["id"], "--by", "ada")

    assert (answer["state"], answer["daemon"]) == ("waiting", False)
    team.daemon = program.start()
    assert wait_until(lambda: "seen by ada" in slack.parents[0]), team.daemon.log
