"""Who is told of what, as the settings say it."""

from pathlib import Path

import pytest

from wtwin_watch.alerting.matching import parse
from wtwin_watch.alerting.routing import Recipient, Route, Routing
from wtwin_watch.errors import SettingsError
from wtwin_watch.model import Severity
from wtwin_watch.settings import Flags, load_settings

TEAM_AND_HOOK = """\
[[receiver]]
name = "team"
notifier = "terminal"
[[receiver]]
name = "hook"
notifier = "webhook"
url = "http://127.0.0.1:9/"
"""
LINES = len(TEAM_AND_HOOK.splitlines())


@pytest.fixture
def load(tmp_path: Path):
    def loaded(text="", environ=None, **flags):
        path = tmp_path / "config.toml"
        path.write_text(text)
        return load_settings(Flags(config=path, **flags), environ or {}, needs_sources=False)

    return loaded


@pytest.fixture
def mistakes(load, tmp_path: Path):
    def told(text):
        with pytest.raises(SettingsError) as caught:
            load(text)
        return [line.removeprefix(f"{tmp_path}/config.toml:") for line in caught.value.mistakes]

    return told


def recipients(settings):
    return [receiver.recipient for receiver in settings.receivers]


def test_without_routes_every_receiver_is_told_of_everything(load):
    settings = load(TEAM_AND_HOOK)

    assert settings.routing == Routing((), ("team", "hook"))
    assert settings.notes == ()


def test_routes_are_read_in_their_order(load):
    settings = load(
        TEAM_AND_HOOK
        + """
        [alerts]
        receivers = "team"
        [[route]]
        match = 'project=myteam/llm severity=critical'
        receivers = "hook"
        continue = true
        [[route]]
        receivers = ["hook", "team"]
        [[route]]
        match = "run=~debug-.*"
        receivers = []
        """
    )

    assert settings.routing == Routing(
        (
            Route(parse("project=myteam/llm severity=critical"), ("hook",), proceed=True),
            Route((), ("hook", "team")),
            Route(parse("run=~debug-.*"), ()),
        ),
        default=("team",),
    )


def test_every_mistake_in_routes_is_told_with_its_line(mistakes):
    told = mistakes(
        TEAM_AND_HOOK
        + """\
[alerts]
receivers = ["teem"]
[[route]]
match = "projct=x"
receivers = ["team"]
[[route]]
match = 3
receivers = ["hok", "nobody at all"]
[[route]]
recievers = ["team"]
receivers = 3
continue = "yes"
"""
    )

    assert told == [
        f"{LINES + 2}: alerts.receivers: no receiver is called 'teem'; did you mean 'team'?",
        f"{LINES + 4}: route.match: 'projct' is no label; there are source, project, run, group,"
        " tag, family, kind, severity",
        f"{LINES + 7}: route.match: should be a text such as 'project=myteam/llm severity=critical'",
        f"{LINES + 8}: route.receivers: no receiver is called 'hok'; did you mean 'hook'?",
        f"{LINES + 8}: route.receivers: no receiver is called 'nobody at all'; there is: team, hook",
        f"{LINES + 10}: route.recievers: unknown key; did you mean 'receivers'?",
        f'{LINES + 11}: route.receivers: should be names of receivers, such as ["team"]',
        f"{LINES + 12}: route.continue: should be a valid boolean",
    ]


def test_a_route_says_whom_to_tell(mistakes):
    assert mistakes('[[route]]\nmatch = "severity=critical"\n') == [
        "1: route.receivers: is missing; add it"
    ]
    assert mistakes("[route]\nreceivers = []\n") == [
        "1: route: should be tables; write [[route]], with two brackets"
    ]


def test_a_receiver_that_is_told_of_nothing_is_noted(load):
    settings = load('alerts = { receivers = ["team"] }\n' + TEAM_AND_HOOK)

    assert settings.notes == (
        "the receiver 'hook' is told of no alert: no route names it, nor does alerts.receivers",
    )


@pytest.mark.parametrize("after", ["", "[[route]]\nmatch = 'kind=spike'\nreceivers = ['hook']\n"])
def test_what_stands_behind_a_route_that_takes_everything_is_noted(load, after):
    settings = load(TEAM_AND_HOOK + "[[route]]\nreceivers = ['team']\n" + after)

    assert settings.notes == (
        "the receiver 'hook' is told of no alert: a route that takes all alerts stands before what"
        " names it",
    )


def test_a_route_behind_one_that_lets_everything_proceed_is_reached(load):
    settings = load(
        TEAM_AND_HOOK
        + "[[route]]\nreceivers = ['team']\ncontinue = true\n"
        + "[[route]]\nmatch = 'kind=spike'\nreceivers = ['hook']\n"
    )

    assert settings.notes == ()


def test_a_route_may_name_a_receiver_of_the_command_line(load):
    settings = load(
        "[[route]]\nmatch = 'severity=critical'\nreceivers = ['webhook']\n",
        webhook="http://127.0.0.1:9/",
    )

    assert settings.routing.routes[0].receivers == ("webhook",)


def test_information_begins_no_message_to_a_receiver_of_the_file(load):
    settings = load(
        TEAM_AND_HOOK
        + """
        [[receiver]]
        name = "log"
        notifier = "terminal"
        severity = "info"
        group = false
        [[receiver]]
        name = "pager"
        notifier = "terminal"
        severity = "critical"
        group = true
        """
    )

    assert recipients(settings) == [
        Recipient("team", Severity.WARNING, grouped=True),
        Recipient("hook", Severity.WARNING, grouped=True),
        Recipient("log", Severity.INFO, grouped=False),
        Recipient("pager", Severity.CRITICAL, grouped=True),
    ]


def test_a_receiver_that_groups_by_itself_is_told_of_each_alert(load):
    table = '[[receiver]]\nnotifier = "alertmanager"\nurl = "http://127.0.0.1:9093"\n'

    assert [r.grouped for r in recipients(load(table))] == [False]
    assert [r.grouped for r in recipients(load(table + "group = true\n"))] == [True]


@pytest.mark.parametrize(
    ("environ", "flags"),
    [
        ({}, {}),
        ({}, {"webhook": "http://127.0.0.1:9/"}),
        ({"WTWIN_WATCH_WEBHOOK_URL": "http://127.0.0.1:9/"}, {}),
        ({"SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T0/B0/x"}, {}),
        ({"SLACK_BOT_TOKEN": "xoxb-not-a-real-token"}, {"slack_channel": "C012AB3CD"}),
    ],
)
def test_receivers_without_a_table_are_told_of_information_too(load, environ, flags):
    settings = load("", environ, **flags)

    [receiver] = settings.receivers
    assert receiver.recipient == Recipient(receiver.name, Severity.INFO, grouped=True)
    assert settings.routing == Routing((), (receiver.name,))


@pytest.mark.parametrize("severity", ['"fatal"', "1"])
def test_a_severity_that_there_is_not_is_a_mistake(mistakes, severity):
    [told] = mistakes(TEAM_AND_HOOK + f"severity = {severity}\n")

    assert told == (f"{LINES + 1}: receiver.severity: should be 'critical', 'warning' or 'info'")


def test_how_alerts_are_put_together_has_defaults_and_can_be_set(load):
    alerts = load().alerts
    assert (alerts.group_wait_s, alerts.group_interval_s) == (5.0, 300.0)
    assert (alerts.group_window_s, alerts.repeat_s) == (600.0, 86_400.0)

    alerts = load(
        'alerts = { group_wait = "0s", group_interval = "1m", group_window = 0, repeat = "4h" }'
    ).alerts
    assert (alerts.group_wait_s, alerts.group_interval_s) == (0.0, 60.0)
    assert (alerts.group_window_s, alerts.repeat_s) == (0.0, 14_400.0)
