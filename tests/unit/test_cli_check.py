import json
import re
import threading
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.plugin_site import TOY, installed
from wtwin_watch.cli import check

CONFIG = """
state = "here.db"
[[source]]
adapter = "toy"
interval = "5s"
path = "x.toy"
[[receiver]]
notifier = "webhook"
url = "http://127.0.0.1:9/hook"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG)
    return path


@pytest.mark.usefixtures("toy_adapter")
def test_right_settings_are_shown_with_what_is_watched_and_who_is_told(
    wtwin_watch: CommandLine, config: Path
):
    done = wtwin_watch("check", "--config", config)

    assert (done.code, done.err) == (0, "")
    assert f"settings: {config}" in done.out
    assert "  toy  toy  every 5s  1 run now" in done.out
    assert "  webhook  webhook  webhook at http://127.0.0.1:9  from warning on\n" in done.out


@pytest.mark.usefixtures("toy_adapter")
def test_right_settings_are_shown_to_a_program(
    wtwin_watch: CommandLine, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)

    done = wtwin_watch("check", "--config", config, "--json")

    assert done.code == 0
    assert done.json == {
        "ok": True,
        "file": str(config),
        "state": str(tmp_path / "here.db"),
        "sources": [
            {
                "name": "toy",
                "adapter": "toy",
                "interval_s": 5.0,
                "from": f"{config}:3",
                "runs": 1,
                "error": None,
            }
        ],
        "receivers": [
            {
                "name": "webhook",
                "notifier": "webhook",
                "from": f"{config}:7",
                "goes_to": "webhook at http://127.0.0.1:9",
                "severity": "warning",
            }
        ],
        "digests": [],
        "maintenance": [],
        "notes": [],
        "mistakes": [],
    }
    assert not (tmp_path / "here.db").exists()


@pytest.mark.usefixtures("toy_adapter")
def test_maintenance_windows_are_shown_with_when_they_hold(wtwin_watch: CommandLine, config: Path):
    config.write_text(
        CONFIG
        + """
[[maintenance]]
match = "source=toy"
days = ["tue"]
start = "22:00"
end = "02:00"
comment = "backup"
"""
    )

    shown = wtwin_watch("check", "--config", config).out

    assert "maintenance:\n  source=toy  on Tuesdays from 22:00 to 02:00 UTC  backup\n" in shown


@pytest.mark.usefixtures("toy_adapter")
def test_digests_are_shown_with_when_they_come(wtwin_watch: CommandLine, config: Path):
    daily = '[[digest]]\nreceiver = "webhook"\n'
    weekly = daily + 'every = "week"\nweekday = "friday"\ntimezone = "Europe/Berlin"\n'
    config.write_text(CONFIG + daily + weekly)

    done = wtwin_watch("check", "--config", config)

    assert (
        "digests:\n"
        "  webhook  every day at 09:00 UTC\n"
        "  webhook  on Fridays at 09:00 Europe/Berlin\n"
    ) in done.out


@pytest.mark.usefixtures("toy_adapter")
def test_mistakes_are_exit_code_78_in_the_file_and_2_on_the_command_line(
    wtwin_watch: CommandLine, config: Path
):
    config.write_text(CONFIG + '[alerts]\ncool = 1\n[detector]\nname = "classic"\nalpha = -1\n')

    done = wtwin_watch("check", "--config", config)
    assert done.code == 78
    assert done.err == (
        "wtwin-watch: error: 2 mistakes in the settings:\n"
        f"  {config}:11: alerts.cool: unknown key; did you mean 'cooldown'?\n"
        f"  {config}:14: detector.alpha: should be greater than 0\n"
    )

    done = wtwin_watch("check", "--config", config, "--json")
    assert done.code == 78
    assert done.json["ok"] is False
    assert len(done.json["mistakes"]) == 2

    assert wtwin_watch("check", "--interval", "soon", "--tau", "0").code == 2


def test_a_mistake_told_on_several_lines_is_one_text_to_a_program(
    wtwin_watch: CommandLine, config: Path
):
    config.write_text("")

    done = wtwin_watch("check", "--config", config, "--json")
    assert done.code == 78
    [told] = done.json["mistakes"]
    assert told.startswith(f"{config}: holds no source")

    done = wtwin_watch("check", "--json")
    assert done.code == 2
    [told] = done.json["mistakes"]
    assert told.startswith("nothing to watch.")

    done = wtwin_watch("check", "--interval", "soon", "--tau", "0", "--csv", "x", "--json")
    told = {text.split(":")[0] for text in done.json["mistakes"]}
    assert (told, len(done.json["mistakes"])) == ({"--interval", "--tau"}, 2)


def test_a_source_that_cannot_be_read_is_exit_code_69(
    wtwin_watch: CommandLine, config: Path, tmp_path: Path
):
    broken = TOY.replace(
        "yield Run(", "raise SourceError('the toy box is shut')\n        yield Run("
    )
    site = tmp_path / "site"
    with installed(site, modules={"acme_toy": broken}, adapters={"toy": "acme_toy:ToySource"}):
        done = wtwin_watch("check", "--config", config)

        assert done.code == 69
        assert done.out.splitlines()[4] == "  toy  toy  every 5s  the toy box is shut"


def test_a_path_that_is_not_there_is_told_once(wtwin_watch: CommandLine, tmp_path: Path):
    done = wtwin_watch("check", "--csv", tmp_path / "runs")

    assert done.code == 69
    assert f"every 2s  {tmp_path}/runs can't be read: No such file or directory; " in done.out
    assert done.out.count("can't be read") == 1


@pytest.mark.parametrize(
    ("flag", "path", "note"),
    [
        ("--csv", "*.csvx", "csv: no log files match {}/*.csvx yet"),
        ("--csv", "", "csv: no log files below {}/ yet"),
        ("--tensorboard", "", "tensorboard: no event files below {}/ yet"),
    ],
)
def test_a_source_without_runs_is_no_mistake_but_is_noted(
    flag: str, path: str, note: str, wtwin_watch: CommandLine, tmp_path: Path
):
    place = f"{tmp_path}/{path}"

    done = wtwin_watch("check", flag, place)

    assert done.code == 0
    assert f"note: {note.format(tmp_path)}\n" in done.out
    assert note.format(tmp_path) in wtwin_watch("check", flag, place, "--json").json["notes"]


def test_a_source_without_runs_whose_adapter_knows_no_better_words_is_noted(
    wtwin_watch: CommandLine, config: Path, tmp_path: Path
):
    empty = TOY.replace("yield Run(", "return\n        yield Run(")
    site = tmp_path / "site"
    with installed(site, modules={"acme_toy": empty}, adapters={"toy": "acme_toy:ToySource"}):
        done = wtwin_watch("check", "--config", config)

    assert done.code == 0
    assert "note: toy: there is no run yet\n" in done.out


def test_a_source_that_never_answers_is_not_waited_for(
    wtwin_watch: CommandLine, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(check, "PATIENCE_S", 0.2)
    hanging = TOY.replace(
        "yield Run(", "import tests_gate\n        tests_gate.wait()\n        yield Run("
    )
    gate = threading.Event()
    monkeypatch.setitem(__import__("sys").modules, "tests_gate", gate)
    site = tmp_path / "site"
    with installed(site, modules={"acme_toy": hanging}, adapters={"toy": "acme_toy:ToySource"}):
        done = wtwin_watch("check", "--config", config, "--json")
        gate.set()

    assert done.code == 69
    assert done.json["sources"][0]["error"] == "does not answer"


def test_the_schema_is_printed(wtwin_watch: CommandLine):
    done = wtwin_watch("check", "--schema")

    assert done.code == 0
    assert set(json.loads(done.out)["properties"]) == {
        "state",
        "alerts",
        "detector",
        "source",
        "receiver",
        "route",
        "digest",
        "maintenance",
    }


ROUTED = """
[[receiver]]
name = "team"
notifier = "terminal"
[[receiver]]
name = "pager"
notifier = "terminal"
severity = "critical"
[[receiver]]
name = "hook"
notifier = "terminal"
[[route]]
match = "project=myteam/llm severity=critical"
receivers = ["pager"]
continue = true
[[route]]
match = "project=myteam/llm"
receivers = ["team", "pager"]
[[route]]
match = "run=~'debug-.*'"
receivers = []
"""


@pytest.fixture
def where_to(wtwin_watch: CommandLine, config: Path):
    def asked(labels: str, *more: str):
        config.write_text(ROUTED)
        return wtwin_watch("check", "--config", config, "--route", labels, *more)

    return asked


def test_where_an_alert_would_go_is_shown(where_to):
    done = where_to("project=myteam/llm severity=critical")

    assert done.code == 0
    assert done.out == (
        "routes:\n"
        "  1  project=myteam/llm severity=critical"
        "  matches: pager; the routes after it are asked as well\n"
        "  2  project=myteam/llm                    matches: team, pager\n"
        "  3  run=~'debug-.*'                       not asked\n"
        "\n"
        "told: team, pager\n"
        "\n"
        "not told:\n"
        "  hook  no route that matches names it\n"
    )


def test_the_answer_shown_in_the_documentation_is_the_one_given(where_to):
    text = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    asked, shown = re.search(r"check --route '([^']*)'\n(.*?)```", text, re.DOTALL).groups()

    assert where_to(asked).out == shown


def test_who_is_told_of_graver_alerts_only_is_left_out_with_that_reason(where_to):
    told = where_to("project=myteam/llm severity=warning", "--json").json

    assert told["receivers"] == [
        {"name": "team", "told": True, "why_not": None},
        {"name": "pager", "told": False, "why_not": "is told from severity critical on"},
        {"name": "hook", "told": False, "why_not": "no route that matches names it"},
    ]
    assert told["labels"] == {"project": ["myteam/llm"], "severity": ["warning"]}
    assert [(r["asked"], r["matches"]) for r in told["routes"]] == [
        (True, False),
        (True, True),
        (False, False),
    ]
    assert told["default"] is False


def test_where_no_route_matches_every_receiver_is_told(where_to):
    done = where_to("")

    assert (done.code, "told: team, pager, hook\n" in done.out) == (0, True)
    assert "  no route matches: alerts.receivers says who is told\n" in done.out
    assert where_to("", "--json").json["default"] is True


def test_an_alert_that_nobody_is_told_of_is_exit_code_1(where_to):
    done = where_to("run=debug-7")

    assert (done.code, "told: nobody\n" in done.out) == (1, True)


def test_labels_that_are_wrong_are_exit_code_2(where_to):
    done = where_to("projct=x")

    assert done.code == 2
    assert done.err.startswith("wtwin-watch: error: --route: 'projct' is no label; there are ")
