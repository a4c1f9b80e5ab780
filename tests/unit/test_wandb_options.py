"""The options of a W&B source."""

import pytest
from pydantic import ValidationError

from tests.support.wandb_standin import KEY
from wtwin_adapters.wandb_api_options import WandbOptions


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.delenv("WANDB_BASE_URL", raising=False)


@pytest.mark.parametrize(
    "project", ["llm", "", "a/b/c", "a b/c", "/llm", "https://wandb.ai/a/b", []]
)
def test_a_project_is_named_with_its_entity(project):
    with pytest.raises(ValidationError):
        WandbOptions(project=project)


def test_one_project_or_several():
    assert WandbOptions(project="a/b").projects == ("a/b",)
    assert WandbOptions(project=["a/b", "c/d", "a/b"]).projects == ("a/b", "c/d")
    assert "a/b or c/d" in WandbOptions(project=["a/b", "c/d"]).no_runs


@pytest.mark.parametrize("key", ["k" * 39, "k" * 20 + " " + "k" * 20, "x"])
def test_a_key_shorter_than_40_is_refused_without_being_repeated(key, monkeypatch):
    monkeypatch.setenv("K", key)

    with pytest.raises(ValidationError, match="is no W&B key") as refused:
        WandbOptions(project="a/b", api_key={"env": "K"})

    assert key not in str(refused.value)


@pytest.mark.parametrize("key", [KEY, "local-" + KEY, "wandb_v1_" + "a" * 70])
def test_keys_of_every_form_are_taken(key, monkeypatch):
    monkeypatch.setenv("K", key)

    options = WandbOptions(project="a/b", api_key={"env": "K"})

    assert options.api_key.get_secret_value() == key
    assert key not in repr(options)


def test_key_and_server_come_from_the_environment_where_they_are_not_given(monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    monkeypatch.setenv("WANDB_BASE_URL", "http://wandb.example.com/")

    options = WandbOptions(project="a/b")

    assert options.api_key.get_secret_value() == KEY
    assert options.base_url == "http://wandb.example.com"


@pytest.mark.parametrize(
    "url", ["wandb.example.com", "ftp://x", "https://me:pw@x", "https://x?a=b"]
)
def test_a_server_is_an_address_without_secrets(url):
    with pytest.raises(ValidationError):
        WandbOptions(project="a/b", base_url=url)


def test_a_path_of_the_server_stays_and_its_trailing_slash_goes():
    assert WandbOptions(project="a/b", base_url="https://x/wb/").base_url == "https://x/wb"


def test_a_state_that_wandb_does_not_have_is_a_mistake():
    with pytest.raises(ValidationError, match=r"'done'.*there is: running, finished"):
        WandbOptions(project="a/b", state="done")


RUN = {
    "name": "ab12",
    "displayName": "llm-7b",
    "state": "running",
    "group": "g",
    "tags": ["x", "y"],
}


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({}, True),
        ({"state": "running"}, True),
        ({"state": ["finished", "failed"]}, False),
        ({"tag": "y"}, True),
        ({"tag": ["z", "x"]}, True),
        ({"tag": "z"}, False),
        ({"group": "g"}, True),
        ({"group": ["h"]}, False),
        ({"sweep": "s1"}, False),
        ({"run_name": "llm-*"}, True),
        ({"run_name": ["vit-*", "*-7b"]}, True),
        ({"run_name": "LLM-*"}, False),
        ({"run_name": "llm-*", "tag": "z"}, False),
    ],
)
def test_every_filter_has_to_hold(filters, wanted):
    assert WandbOptions(project="a/b", **filters).wants(RUN) is wanted


def test_a_run_without_a_shown_name_goes_by_its_id():
    assert WandbOptions(project="a/b", run_name="ab*").wants({**RUN, "displayName": None})
