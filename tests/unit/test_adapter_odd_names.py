"""Files and folders whose names are no Unicode: what is told of them can be stored and sent."""

import os

import pytest

from wtwin_adapters.tabular import TabularSource
from wtwin_adapters.tensorboard import TensorBoardSource
from wtwin_watch.errors import SourceError

LATIN_1 = os.fsdecode(b"caf\xe9")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / LATIN_1
    folder.mkdir()
    return folder


def test_a_log_in_a_folder_with_an_odd_name_has_a_name_that_can_be_written(folder):
    (folder / "a.csv").write_text("step,loss\n1,0.5\n")
    source = TabularSource("logs", TabularSource.Options(path=str(folder / "*.csv")))

    (run,) = source.runs()

    assert (run.key.run, run.name) == ("a.csv", "caf\\xe9/a")
    assert source.fetch(run, None, 10).points[0].value == 0.5


def test_event_files_with_odd_names_give_a_cursor_that_can_be_written(folder):
    (folder / f"events.out.tfevents.1.{LATIN_1}").write_bytes(b"")
    source = TensorBoardSource("logs", TensorBoardSource.Options(path=str(folder)))

    (run,) = source.runs()
    cursor = source.fetch(run, None, 10).cursor

    assert run.name == "caf\\xe9"
    assert str(cursor).isascii()


@pytest.mark.parametrize("source", [TabularSource, TensorBoardSource])
def test_what_is_said_of_a_path_with_an_odd_name_can_be_written(source, folder):
    missing = source("logs", source.Options(path=str(folder / "none")))

    with pytest.raises(SourceError, match=r"caf\\xe9/none can't be read"):
        missing.runs()
