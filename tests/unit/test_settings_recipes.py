"""The recipes do what they say."""

from datetime import time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from wtwin_watch.alerting.digest import Schedule
from wtwin_watch.alerting.matching import parse_labels
from wtwin_watch.alerting.routing import receivers_for
from wtwin_watch.model import Severity
from wtwin_watch.settings import Flags, load_settings

FOLDER = Path(__file__).parents[2] / "config" / "recipes"
ALL = sorted(path.stem for path in FOLDER.glob("*.toml"))


@pytest.fixture
def recipe(monkeypatch):
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-not-a-real-token")
    monkeypatch.setenv("PAGERDUTY_KEY", "0123456789abcdef")

    def loaded(name):
        return load_settings(Flags(config=FOLDER / f"{name}.toml"), {})

    return loaded


def told(settings, labels):
    return receivers_for(settings.routing, parse_labels(labels))


@pytest.mark.parametrize("name", ALL)
def test_every_recipe_is_right_and_documented(recipe, name):
    if name == "one-channel-a-team":
        pytest.importorskip("wandb")

    recipe(name)

    assert (
        f"config/recipes/{name}.toml" in (FOLDER.parents[1] / "docs/configuration.md").read_text()
    )


def test_each_team_hears_of_its_own_project(recipe):
    pytest.importorskip("wandb")
    settings = recipe("one-channel-a-team")

    assert told(settings, "project=myteam/llm run=llm-7b") == ("llm",)
    assert told(settings, "project=myteam/vision run=vit") == ("vision",)
    assert told(settings, "project=myteam/audio run=x") == ("everybody",)
    assert told(settings, "source=wandb family=source") == ("everybody",)
    assert told(settings, "project=myteam/llm run=debug-1") == ()


def test_the_pager_hears_of_divergence_of_production_alone(recipe):
    settings = recipe("page-only-on-divergence")

    assert told(settings, "tag=production kind=divergence") == ("pager", "team")
    assert told(settings, "tag=production kind=nonfinite") == ("pager", "team")
    assert told(settings, "tag=production kind=drift") == ("team",)
    assert told(settings, "tag=research kind=divergence") == ("team",)
    assert settings.receivers[1].recipient.least is Severity.CRITICAL


def test_the_digest_comes_on_monday_morning(recipe):
    settings = recipe("weekly-digest")

    monday = Schedule("week", time(9), ZoneInfo("Europe/Berlin"), 0)
    assert [(d.receiver, d.schedule) for d in settings.digests] == [
        ("team", monday),
        ("lead", monday),
    ]
    assert told(settings, "kind=drift") == ("team",)
    assert settings.notes == ()
