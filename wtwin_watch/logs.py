"""Logs of the program: text for a person or JSON for a machine, on stderr, with secrets masked.

Every part logs with ``structlog.get_logger()``: a fixed phrase and fields. What libraries log through
`logging` goes the same way. `configure` is called by the command line, once.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TextIO
from urllib.parse import quote

import orjson
import structlog

SHORTEST_SECRET = 6
"""Shorter values aren't masked: they would blot out ordinary words."""

_MASK = "(hidden)"
_hidden: set[str] = set()

# The levels of syslog, which journald reads at the start of a line.
_PRIORITY = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}
_COLOUR = {"debug": "\x1b[2m", "warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31m"}
_PLAIN = "\x1b[0m"


def hide(secrets: Iterable[str]) -> None:
    """Mask these values wherever `masked` is applied from now on, as written, in JSON and in URLs."""
    for secret in secrets:
        if len(secret) >= SHORTEST_SECRET:
            in_json = json.dumps(secret, ensure_ascii=False)[1:-1]
            _hidden.update({secret, in_json, repr(secret)[1:-1], quote(secret, safe="")})


def masked(text: str) -> str:
    """Blot the known secrets out of ``text``. The last line of defence: no text should hold one."""
    for secret in sorted(_hidden, key=len, reverse=True):
        text = text.replace(secret, _MASK)
    return text


def configure(
    style: str = "text",
    level: int = logging.INFO,
    stream: TextIO | None = None,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Set up logging for this process: ``style`` is ``text`` or ``json``, ``stream`` by default stderr.

    In the journal, which keeps the time itself, text has the priority in front and no time.
    """
    stream = sys.stderr if stream is None else stream
    if style == "json":
        render: Any = _as_json
    elif _is_journal(stream, environ):
        render = _for_journal
    else:
        coloured = stream.isatty() and not environ.get("NO_COLOR")
        render = _in_colour if coloured else _as_text
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            render,
            _masked,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Bridge()], level=max(level, logging.WARNING), force=True)


def _as_text(_logger: Any, _method: str, event: dict[str, Any]) -> str:
    return f"{datetime.now():%Y-%m-%d %H:%M:%S} {_line(event)}"


def _in_colour(_logger: Any, _method: str, event: dict[str, Any]) -> str:
    colour = _COLOUR.get(event["level"], "")
    return f"{datetime.now():%Y-%m-%d %H:%M:%S} {_line(event, colour)}"


def _for_journal(_logger: Any, _method: str, event: dict[str, Any]) -> str:
    priority = f"<{_PRIORITY.get(event['level'], 6)}>"
    return "\n".join(priority + line for line in _line(event).split("\n"))


def _as_json(_logger: Any, _method: str, event: dict[str, Any]) -> str:
    # JSON has no NaN; as text it isn't lost.
    fields = {
        key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in event.items()
    }
    line = {"time": datetime.now().astimezone().isoformat(timespec="milliseconds"), **fields}
    try:
        return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # a text with lone surrogates, which UTF-8 can't hold
        return json.dumps(line, default=str)


def _masked(_logger: Any, _method: str, line: Any) -> str:
    return masked(line)


def _line(event: dict[str, Any], colour: str = "") -> str:
    """Lay one event out: level, phrase, fields, and a traceback below if there is one."""
    fields = dict(event)
    level = str(fields.pop("level"))
    phrase = _escaped(str(fields.pop("event", "")))
    traceback = fields.pop("exception", None)
    parts = [f"{colour}{level}{_PLAIN if colour else ''}", phrase]
    parts += [f"{key}={_shown(value)}" for key, value in fields.items()]
    return " ".join(parts) + (f"\n{traceback}" if traceback else "")


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        value = ", ".join(f"{key}: {item}" for key, item in value.items())
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    plain = text.isprintable() and not any(c in text for c in " \"'=") and text != ""
    return text if plain else repr(text)


def _escaped(text: str) -> str:
    """Keep a text on its line, whatever a run's name holds."""
    return text if text.isprintable() else repr(text)[1:-1]


def _is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether ``stream`` goes to the journal, by systemd's ``$JOURNAL_STREAM``."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


class _Bridge(logging.Handler):
    """Hands on what libraries log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log a library's record as an event of ours."""
        try:
            log = structlog.get_logger(library=record.name)
            log.log(record.levelno, record.getMessage(), exc_info=record.exc_info)
        except Exception:
            self.handleError(record)
