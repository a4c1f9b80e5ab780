"""What a path is, told by its content."""

import pytest

from tests.support.writers import EventLog, scalar, version
from wtwin_adapters.recognition import recognise_log
from wtwin_adapters.tabular import TabularSource
from wtwin_adapters.tensorboard import TensorBoardSource

LOG_OF_PROSE = """using world size: 8, data-parallel size: 1
setting the loss scale, as asked
 iteration 100/ 200 | lm loss: 7.5E+00 | grad norm: 1.0 |
"""


def table(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return TabularSource.recognise(path)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.csv", "step,loss\n1,2\n", "csv"),
        ("a.csv", "step;train loss\n1;2\n", "csv"),
        ("a.csv", b"\xef\xbb\xbfstep,loss\r\n", "csv"),
        ("a.csv", "step,loss", "csv"),
        ("a.csv", "", "csv"),
        ("a.csv", "# made by train.py 1.0\nstep,loss\n1,2\n", "csv"),
        ("a.tsv", "step\tloss\n1\t2\n", "tsv"),
        ("a.txt", "step\tloss\n1\t2\n", "tsv"),
        ("progress", "step,val_loss\n1,2\n", "csv"),
        ("a.jsonl", '{"step": 1, "loss": 2}\n', "jsonl"),
        ("a.ndjson", '{"step": 1, "train": {"loss": NaN}}\n', "jsonl"),
        ("metrics.json", '{"step": 1, "loss": 2}\n{"step": 2, "loss": 1}\n', "jsonl"),
        ("a.jsonl", "", "jsonl"),
    ],
)
def test_a_table_with_a_loss_is_recognised(tmp_path, name, content, kind):
    found = table(tmp_path, name, content)

    assert found is not None
    assert (found.format, found.refused) == (kind, None)
    assert dict(found.options) == {"path": str(tmp_path / name)}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv", "step,accuracy,f1\n1,2,3\n", "no loss column among step, accuracy, f1; name the"),
        ("a.csv", ",".join(f"c{chr(97 + i)}" for i in range(20)) + "\n", "cl and 8 more"),
        ("a.csv", "1,0.5\n2,0.4\n", "its first line holds numbers"),
        ("a.jsonl", '{"step": 1, "f1": 2}\n', "no loss column among step, f1"),
        ("a.jsonl", "[1, 2]\n", "its lines are not JSON objects"),
        ("a.csv", "step,loss\n1,2\n".encode("utf-16"), "it is UTF-16"),
        ("a.csv.gz", b"\x1f\x8b\x08\x00", "it can't be unpacked"),
    ],
)
def test_a_table_that_cannot_be_watched_is_refused_with_the_reason(tmp_path, name, content, reason):
    found = table(tmp_path, name, content)

    assert found is not None
    assert reason in (found.refused or "")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train.log", LOG_OF_PROSE),
        ("notes.txt", "the loss, as it was\nand more, of it\n"),
        ("trainer_state.json", '{\n  "log_history": [{"loss": 0.5, "step": 1}]\n}\n'),
        ("config.json", '{"loss": "mse", "step": 5}'),
        ("table.txt", "name,colour\nx,red\n"),
        ("run.wandb", b":W&B\xe1\xbe\x00" + bytes(50)),
        ("model.bin", b"step,loss\n1,2\n\0\0\0"),
        ("empty.txt", ""),
    ],
)
def test_other_files_are_left_to_others(tmp_path, name, content):
    assert table(tmp_path, name, content) is None


def test_a_folder_or_nothing_is_no_table(tmp_path):
    assert TabularSource.recognise(tmp_path) is None
    assert TabularSource.recognise(tmp_path / "none.csv") is None


def test_a_log_in_utf_16_is_refused_with_the_reason(tmp_path):
    path = tmp_path / "train.log"
    path.write_bytes("step 1 loss 2\r\nstep 2 loss 1\r\n".encode("utf-16"))

    recognition = recognise_log(path)

    assert recognition.refused == "it is UTF-16; save it as UTF-8"


def test_event_files_are_recognised_by_name_or_by_content(tmp_path):
    log = EventLog(tmp_path / "run")
    log.write(version(), scalar(1, 0.5))
    renamed = tmp_path / "renamed"
    renamed.write_bytes(log.file.read_bytes())
    young = tmp_path / "events.out.tfevents.1.h.0"
    young.touch()

    for path in (log.file, renamed, young, log.folder, tmp_path):
        found = TensorBoardSource.recognise(path)
        assert found is not None
        assert (found.format, found.refused) == ("tensorboard", None)
        assert dict(found.options) == {"path": str(path)}


def test_event_files_that_cannot_be_read_are_refused_with_the_reason(tmp_path):
    packed = tmp_path / "events.out.tfevents.1.h.0.gz"
    packed.write_bytes(b"\x1f\x8b")
    other = tmp_path / "events.out.tfevents.2"
    other.write_bytes(b"this is no record at all")

    for path, reason in ((packed, "compressed"), (other, "doesn't begin with an event")):
        found = TensorBoardSource.recognise(path)
        assert found is not None
        assert reason in (found.refused or "")
    other.unlink()
    found = TensorBoardSource.recognise(tmp_path)
    assert found is not None
    assert found.refused == "events.out.tfevents.1.h.0.gz: it is compressed; unpack it with gunzip"


def test_other_files_and_folders_are_no_event_files(tmp_path):
    (tmp_path / "a.csv").write_text("step,loss\n1,2\n")
    (tmp_path / "events.out.tfevents.1.profile-empty").touch()

    assert TensorBoardSource.recognise(tmp_path / "a.csv") is None
    assert TensorBoardSource.recognise(tmp_path) is None
    assert TensorBoardSource.recognise(tmp_path / "none") is None
