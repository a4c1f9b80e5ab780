from pathlib import Path

import pytest

from tests.support.plugin_site import TOY, installed
from wtwin_watch import plugins
from wtwin_watch.errors import SettingsError


def said(name: str, load=plugins.load_adapter) -> str:
    with pytest.raises(SettingsError) as caught:
        load(name)
    [mistake] = caught.value.mistakes
    return mistake


def test_an_adapter_is_found_by_the_name_of_its_entry_point(tmp_path: Path):
    with installed(tmp_path, modules={"acme_toy": TOY}, adapters={"toy": "acme_toy:ToySource"}):
        adapter = plugins.load_adapter("toy")

        assert adapter.interval_s == 3.0
        assert "toy" in plugins.known(plugins.ADAPTERS)


def test_a_misspelt_name_is_answered_with_the_one_that_was_meant(tmp_path: Path):
    with installed(tmp_path, modules={"acme_toy": TOY}, adapters={"trains": "acme_toy:ToySource"}):
        assert said("trians") == "this version has no adapter 'trians'; did you mean 'trains'?"


def test_a_name_like_no_other_is_answered_with_all_there_are(tmp_path: Path):
    with installed(tmp_path, modules={"acme_toy": TOY}, notifiers={"bell": "acme_toy:ToySource"}):
        text = said("zzz", plugins.load_notifier)

        assert text.startswith("this version has no notifier 'zzz'; there is: ")
        assert "bell" in text


@pytest.mark.parametrize(
    ("direct_url", "command"),
    [
        (None, "pip install 'acme[mars]'"),
        (
            {"url": "file:///home/me/my%20acme", "dir_info": {"editable": True}},
            "pip install -e '.[mars]'  (in /home/me/my acme)",
        ),
        (
            {"url": "file:///home/me/acme", "dir_info": {}},
            "pip install '.[mars]'  (in /home/me/acme)",
        ),
        (
            {"url": "file:///tmp/acme-1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'acme[mars] @ file:///tmp/acme-1.0-py3-none-any.whl'",
        ),
        (
            {"url": "https://x.test/acme.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'acme[mars] @ git+https://x.test/acme.git@abc'",
        ),
        ({"nonsense": 1}, "pip install 'acme[mars]'"),
        ({"url": "x", "dir_info": 7}, "pip install 'acme[mars]'"),
    ],
)
def test_a_missing_extra_is_answered_with_the_command_for_the_way_it_was_installed(
    tmp_path: Path, direct_url, command
):
    with installed(
        tmp_path,
        modules={"acme_mars": "import martian_client\n"},
        adapters={"mars": "acme_mars:MarsSource"},
        requires=("click", 'martian-client>=2; extra == "mars"'),
        direct_url=direct_url,
    ):
        assert said("mars") == (
            "the adapter 'mars' needs the module 'martian_client', which isn't installed;"
            f" install it with: {command}"
        )


def test_a_missing_extra_is_told_though_the_plugin_imports_without_it(tmp_path: Path):
    source = TOY.replace("extra: ClassVar[str | None] = None", 'extra: ClassVar = "mars"')
    with installed(
        tmp_path,
        modules={"acme_lazy": source},
        adapters={"mars": "acme_lazy:ToySource"},
        requires=('martian-client>=2; extra == "mars"', 'click; extra == "mars"'),
    ):
        assert said("mars") == (
            "the adapter 'mars' needs martian-client, which isn't installed;"
            " install it with: pip install 'acme[mars]'"
        )


def test_an_extra_whose_packages_are_there_asks_for_nothing(tmp_path: Path):
    source = TOY.replace("extra: ClassVar[str | None] = None", 'extra: ClassVar = "mars"')
    with installed(
        tmp_path,
        modules={"acme_there": source},
        adapters={"mars": "acme_there:ToySource"},
        requires=('click>=1; extra == "mars"',),
    ):
        assert plugins.load_adapter("mars").extra == "mars"


def test_a_plugin_that_breaks_at_import_is_told_and_spoils_no_other(tmp_path: Path):
    with installed(
        tmp_path,
        modules={"acme_toy": TOY, "acme_broken": "1 / 0\n"},
        adapters={"broken": "acme_broken:X", "toy": "acme_toy:ToySource"},
    ):
        assert said("broken") == (
            "the adapter 'broken' can't be loaded: ZeroDivisionError: division by zero"
        )
        found = plugins.recognise(tmp_path / "run.toy")
        assert found is not None
        assert found[0] == "toy"


def test_an_adapter_that_can_read_a_path_goes_before_one_that_refuses_it(tmp_path: Path):
    picky = TOY.replace('".bad":', '".toy" or True:').replace(
        'path.suffix == ".toy":\n', "False:\n"
    )
    with installed(
        tmp_path,
        modules={"acme_toy": TOY, "acme_picky": picky},
        adapters={"a-picky": "acme_picky:ToySource", "toy": "acme_toy:ToySource"},
    ):
        name, _, recognition = plugins.recognise(tmp_path / "run.toy") or pytest.fail("nothing")
        assert (name, recognition.refused) == ("toy", None)

        name, _, recognition = plugins.recognise(tmp_path / "other.zzz") or pytest.fail("nothing")
        assert (name, recognition.refused) == ("a-picky", "it is bad")


def test_a_plugin_without_its_own_module_is_to_be_installed_again(tmp_path: Path):
    with installed(tmp_path, modules={}, adapters={"gone": "acme_gone:Source"}):
        assert said("gone") == (
            "the adapter 'gone' lacks its own module 'acme_gone'; install it again"
        )
