"""The file adapters keep the contract of a source; and the contract's test notices who doesn't."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.writers import EventLog, scalar, scalars, version
from wtwin_adapters.tabular import TabularSource
from wtwin_adapters.tensorboard import TensorBoardSource
from wtwin_watch.model import Batch, Point, Run, RunKey
from wtwin_watch.testing import check_adapter


def test_the_adapter_for_tables_keeps_the_contract(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "m.csv").write_text(
        "step,loss,lr,val_loss\n1,0.5,0.1,\n2,nan,0.1,0.7\n3,x,,\n2,0.4,0.1,\n3,0.3,0.1,0.6\n"
    )
    (tmp_path / "b.jsonl").write_text(
        '{"step": 1, "loss": 2}\n{"step": 2, "loss": NaN, "lr": 1}{"step": 3, "loss": 1}\n'
    )
    (tmp_path / "c.csv").touch()
    (tmp_path / "d.tsv").write_text("step\tf1\n1\t2\n")

    points = check_adapter(lambda: TabularSource("x", TabularSource.Options(path=tmp_path)))

    assert {run: len(found) for run, found in points.items()} == {
        "a/m.csv": 11,
        "b.jsonl": 4,
        "c.csv": 0,
        "d.tsv": 0,
    }


def test_the_adapter_for_tensorboard_keeps_the_contract(tmp_path):
    log = EventLog(tmp_path / "run")
    log.write(version(), scalars(range(5)), scalar(3, 1.0, "val_loss"))
    log.begin("1800000000.host.2.0")
    log.write(version(1.8e9), scalars(range(3, 8)), b"\0" * 30)
    EventLog(tmp_path / "empty").write(b"")

    points = check_adapter(lambda: TensorBoardSource("x", TensorBoardSource.Options(path=tmp_path)))

    assert {run: len(found) for run, found in points.items()} == {"empty": 0, "run": 11}


class Toy:
    """A source of one run over ten points, right in every respect; ``fault`` makes it wrong in one."""

    def __init__(self, fault: str = ""):
        self.fault = fault
        self.fetched = 0

    def runs(self):
        run = Run(RunKey("toy", "r"), "r", version="1")
        if self.fault == "twice":
            return [run, run]
        if self.fault == "status":
            return [replace(run, status="running")]
        if self.fault == "tags":
            return [replace(run, tags=["a"])]
        if self.fault == "restless":
            self.fetched += 1
            return [replace(run, version=str(self.fetched))]
        return [run]

    def fetch(self, run, cursor, limit):
        at = (cursor or {}).get("at", 0)
        step = int if self.fault == "step" else float
        points = [Point("loss", step(i), 0.5) for i in range(at, min(10, at + limit))]
        end = at + len(points)
        if self.fault == "greedy":
            points, end = [Point("loss", float(i), 0.5) for i in range(at, 10)], 10
        if self.fault == "lossy" and limit == 2:
            points = points[:1]
        if self.fault == "again" and at == 10:
            points = [Point("loss", 9.0, 0.5)]
        key = (1, 2) if self.fault == "tuple" else [1, 2]
        if self.fault == "meddling" and 0 < at < 10:
            cursor["touched"] = True
        return Batch(points, {"at": end, "key": key}, more=end < 10)

    def roots(self):
        return ["/tmp"] if self.fault == "roots" else [Path("/tmp")]

    def close(self):
        self.fetched = -1

    def last_lines(self, run, count):
        if self.fault == "lines":
            return ["one\ntwo"]
        return ["step 1"] * (count + (self.fault == "talkative"))


def test_a_right_adapter_passes():
    assert len(check_adapter(Toy)["r"]) == 10


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("twice", "a run is listed twice"),
        ("restless", "two lists of runs differ"),
        ("step", "is no float"),
        ("greedy", "10 points, limit"),
        ("lossy", "says something else when read by 2 points"),
        ("again", "brings something after its end"),
        ("tuple", "is changed by JSON"),
        ("meddling", "fetching changed the cursor"),
        ("roots", "not a Path"),
        ("status", "the status of toy/r is 'running'"),
        ("tags", "are no tuple"),
        ("lines", "holds a line break"),
        ("talkative", "gives 4 last lines where 3 were asked for"),
    ],
)
def test_a_wrong_adapter_is_told_what_is_wrong(fault, said):
    with pytest.raises(AssertionError, match=said):
        check_adapter(lambda: Toy(fault))
