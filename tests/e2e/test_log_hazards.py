"""What logs do to a watcher, through the whole program: an answer for each, and never a crash."""

import time

import pytest

from tests.support.training import NAN, healthy

pytestmark = pytest.mark.e2e

# What is in the file, how many loss points are judged, how many rows are passed over, and the exit code.
LOGS = {
    "a line that isn't finished": (b"step,loss\n0,2.0\n1,1.9\n2,1.", 2, 0, 0),
    "line ends of Windows": (b"step,loss\r\n0,2.0\r\n1,1.9\r\n", 2, 0, 0),
    "a byte order mark": (b"\xef\xbb\xbfstep,loss\n0,2.0\n1,1.9\n", 2, 0, 0),
    "semicolons": (b"step;loss;lr\n0;2.0;0.1\n1;1.9;0.1\n", 2, 0, 0),
    "tabs": (b"step\tloss\n0\t2.0\n1\t1.9\n", 2, 0, 0),
    "spaces in the header": (b" step ,  loss \n0, 2.0\n1, 1.9\n", 2, 0, 0),
    "a row without its last cells": (b"step,loss\n0,2.0\n1\n2,1.9\n", 2, 0, 0),
    "a row of words": (b"step,loss\n0,2.0\nstarting over,again\n2,1.9\n", 2, 1, 0),
    "empty cells": (b"step,loss,val_loss\n0,2.0,\n1,,2.2\n2,1.9,\n", 2, 0, 0),
    "NaN as text": (b"step,loss\n0,2.0\n1,NaN\n2,nan\n", 3, 0, 1),
    "infinity as text": (b"step,loss\n0,2.0\n1,inf\n", 2, 0, 1),
    "steps that go back": (b"step,loss\n0,2.0\n1,1.9\n2,1.8\n1,1.7\n2,1.6\n", 5, 0, 0),
    "nothing at all": (b"", 0, 0, 0),
    "a header alone": (b"step,loss\n", 0, 0, 0),
    "no number anywhere": (b"once upon a time\nthere was a log\n", 0, 1, 0),
    "bytes that are no text": (bytes(range(256)) * 64, 0, 63, 0),
}


def test_each_kind_of_log_has_its_answer(program, record_property):
    """All in one folder, for speed, but each judged by a start of its own would say the same."""
    folder = program.folder / "logs"
    folder.mkdir()
    for index, (content, _, _, _) in enumerate(LOGS.values()):
        (folder / f"{index}.csv").write_bytes(content)

    process = program.once("--csv", str(folder))

    assert process.wait() == 1
    assert "Traceback" not in process.log
    found = {run.run.key.run: run for run in program.status().runs}
    judged = {
        name: (found[f"{index}.csv"].points, sum(found[f"{index}.csv"].skipped.values()))
        for index, name in enumerate(LOGS)
    }
    assert judged == {name: (points, skipped) for name, (_, points, skipped, _) in LOGS.items()}
    firing = {alert["run"]["run"] for alert in program.alerts() if alert["state"] == "firing"}
    assert firing == {f"{i}.csv" for i, log in enumerate(LOGS.values()) if log[3] == 1}
    shown = program.command("status", "--state", program.state).stdout
    assert shown.count("skipped") == sum(log[2] > 0 for log in LOGS.values())
    assert process.log.count("rows skipped") == shown.count("skipped")
    record_property("counted", f"{len(LOGS)} odd logs, each with the answer written down for it")


def test_a_line_is_read_when_it_is_finished(program):
    path = program.folder / "log.csv"
    path.write_text("step,loss\n0,2.0\n1,1.9\n2,1.")
    program.args += ["--csv", str(path)]
    program.once()
    assert [run.points for run in program.status().runs] == [2]

    with path.open("a") as out:
        out.write("8\n3,1.7\n")
    program.once()

    (run,) = program.status().runs
    assert (run.points, run.last_loss) == (4, 1.7)


def test_a_million_rows_are_read_and_judged_in_one_go(program, record_property):
    path = program.folder / "log.csv"
    losses = healthy(1000)
    with path.open("w") as out:
        out.write("step,loss\n")
        for block in range(1000):
            out.writelines(f"{block * 1000 + i},{loss:.6f}\n" for i, loss in enumerate(losses))

    before = time.monotonic()
    process = program.start("--once", "--csv", str(path))
    code = process.wait(200)
    took_s = time.monotonic() - before

    assert code in {0, 1}, process.log
    assert [run.points for run in program.status().runs] == [1_000_000]
    record_property("counted", f"1,000,000 rows read and judged in {took_s:.1f} s")


# -- while the daemon runs ------------------------------------------------------------------------


def table(losses):
    return "step,loss\n" + "".join(f"{step},{loss!r}\n" for step, loss in enumerate(losses))


def cut(path, losses):
    """In place, as a logger does that opens its file for writing again."""
    with path.open("r+") as out:
        out.truncate(0)
        out.write(table(losses))


def rotated(path, losses):
    path.rename(path.with_name("log.old"))
    path.write_text(table(losses))


def recreated(path, losses):
    path.unlink()
    time.sleep(1.0)
    path.write_text(table(losses))


@pytest.mark.parametrize("change", [cut, rotated, recreated])
def test_a_log_that_begins_anew_is_a_run_that_begins_anew(program, change):
    path = program.folder / "job" / "log.csv"
    path.parent.mkdir()
    path.write_text(table([*healthy(50), *NAN]))
    program.configure('[alerts]\ncooldown = "0s"\n')
    daemon = program.start("--csv", str(path))
    assert program.known()
    assert daemon.logged("alert firing")

    change(path, healthy(20, level=5.0))
    assert daemon.logged("alert resolved"), daemon.log
    with path.open("a") as out:
        out.write("20,nan\n")
    assert daemon.logged("alert firing", times=2)
    assert daemon.stop() == 0

    (run,) = program.status().runs
    assert (run.points, run.last_step) == (21, 20.0)
    assert "log restarts" in daemon.log
    second, first = [alert for alert in program.alerts() if alert["family"] == "nonfinite"]
    assert "starts anew" in first["outcome"]
    assert (second["state"], second["detection"]["onset_step"]) == ("firing", 20.0)
