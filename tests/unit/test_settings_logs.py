import io
import json
import logging
import os
from pathlib import Path

import pytest
import structlog

from wtwin_watch import logs

pytestmark = pytest.mark.usefixtures("logging_as_before")


def written(style: str = "text", level: int = logging.INFO, **event) -> str:
    out = io.StringIO()
    logs.configure(style, level, out, {})
    structlog.get_logger("x").warning("poll failed", **event)
    return out.getvalue()


def test_an_event_is_a_line_with_its_time_level_phrase_and_fields():
    line = written(run="lab/run 7", retry_in_s=2.5, n=3)

    assert line[19:] == " warning poll failed run='lab/run 7' retry_in_s=2.5 n=3\n"
    assert line[4] == line[7] == "-"


def test_what_a_run_is_called_cannot_forge_a_line():
    line = written(run="a\nb", other="\x1b[2J")

    assert line.endswith(" run='a\\nb' other='\\x1b[2J'\n")
    assert line.count("\n") == 1


def test_counts_are_written_for_a_person():
    line = written(rows={"no loss column": 1, "short row": 20}, none={})

    assert line.endswith(" rows='no loss column: 1, short row: 20' none=''\n")


def test_json_is_one_object_a_line_and_keeps_nan():
    event = json.loads(written("json", loss=float("nan"), path=Path("/x"), n=1))

    assert event.pop("time")
    assert event == {
        "level": "warning",
        "event": "poll failed",
        "loss": "nan",
        "path": "/x",
        "n": 1,
    }


def test_json_can_hold_a_name_of_a_file_that_is_no_unicode():
    assert json.loads(written("json", path="caf\udce9"))["path"] == "caf\udce9"


@pytest.mark.parametrize("style", ["text", "json"])
@pytest.mark.parametrize("secret", ["hunter22", 'with "quotes" and \\', "sécrèt-ü", "a b&c/d"])
def test_secrets_are_masked_wherever_they_stand(style: str, secret: str):
    logs.hide([secret])

    line = written(style, error=f"<{secret}>", nested={"a": secret}, url=f"x?{secret}")
    assert secret not in line
    assert json.dumps(secret)[1:-1] not in line
    assert "(hidden)" in line


def test_secrets_are_masked_in_tracebacks():
    logs.hide(["hunter22"])
    out = io.StringIO()
    logs.configure("text", logging.INFO, out, {})

    try:
        raise ValueError("password hunter22")
    except ValueError:
        structlog.get_logger().exception("it broke")

    assert "ValueError: password (hidden)" in out.getvalue()
    assert "hunter22" not in out.getvalue()


def test_short_values_are_not_masked_since_they_are_ordinary_words():
    logs.hide(["a", "loss"])

    assert logs.masked("a loss") == "a loss"


def test_what_is_below_the_level_is_not_written():
    assert written(level=logging.ERROR) == ""


def test_libraries_speak_the_same_way():
    out = io.StringIO()
    logs.configure("text", logging.INFO, out, {})

    logging.getLogger("urllib3").warning("retrying %s", "it")
    logging.getLogger("urllib3").info("chatter")

    assert out.getvalue()[19:] == " warning retrying it library=urllib3\n"


def test_in_the_journal_a_line_has_a_priority_and_no_time(tmp_path: Path):
    with (tmp_path / "journal").open("w+") as out:
        status = os.fstat(out.fileno())
        logs.configure(
            "text", logging.INFO, out, {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        )
        structlog.get_logger().warning("poll failed", n=1)
        structlog.get_logger().info("ready")
        out.seek(0)

        assert out.read() == "<4>warning poll failed n=1\n<6>info ready\n"


def test_colour_is_for_terminals_alone():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    logs.configure("text", logging.INFO, out, {})
    structlog.get_logger().warning("x")
    assert "\x1b[33mwarning\x1b[0m x" in out.getvalue()

    out = Terminal()
    logs.configure("text", logging.INFO, out, {"NO_COLOR": "1"})
    structlog.get_logger().warning("x")
    assert "\x1b" not in out.getvalue()
