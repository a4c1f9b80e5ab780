"""Requests to an MLflow server, each bounded in time and size, and told clearly when it fails.

MLflow's own client waits four minutes for a server that is down, and can't be told otherwise except by
variables of the whole process; here a request takes seconds, and the watcher's back-off does the rest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3
from urllib3.exceptions import HTTPError, MaxRetryError, SSLError

from wtwin_adapters.mlflow_login import Login
from wtwin_adapters.pools import TooLarge, TooSlow, pool_for, whole_answer
from wtwin_watch.errors import SourceError
from wtwin_watch.secrets import shown_url

REQUEST_S = 20.0
"""A request has to be answered within this, seconds."""
WHOLE_S = 45.0
"""… or within this, where an old server gives a whole history at once."""
MAX_ANSWER = 64 << 20
"""A longer answer isn't read, bytes."""
_CONNECT_S = 5.0
_CONNECTIONS = 4
_SAID = 200

_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _TOO_MANY = 200, 401, 403, 404, 429


class Gone(SourceError):
    """What was asked for isn't on the server (any more)."""


class Server:
    """One MLflow server. Called from several threads."""

    def __init__(self, login: Login) -> None:
        self.url = login.url
        self._login = login
        self._pool = _pool(login)

    def get(self, path: str, query: Mapping[str, Any], within_s: float = REQUEST_S) -> Any:
        """Ask and return the JSON of the answer. Raises `SourceError`, `Gone` for what isn't there."""
        text = f"{path}?{urlencode(query, doseq=True)}"
        return self._json(path, self._request("GET", text, None, within_s))

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Post JSON and return that of the answer. Raises `SourceError`."""
        return self._json(path, self._request("POST", path, orjson.dumps(body), REQUEST_S))

    def text(self, path: str) -> str:
        """Ask for a plain text. Raises `SourceError`, `Gone` where there is none."""
        return self._request("GET", path, None, REQUEST_S).decode("utf-8", "replace")

    def close(self) -> None:
        """Let go of the connections."""
        self._pool.clear()

    def _request(self, method: str, path: str, body: bytes | None, within_s: float) -> bytes:
        until = time.monotonic() + within_s
        headers = {"user-agent": "wtwin-watch", "accept-encoding": "gzip", **self._login.headers()}
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            answer = self._pool.request(
                method,
                self.url + path,
                body=body,
                headers=headers,
                timeout=urllib3.Timeout(connect=_CONNECT_S, read=within_s),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            content = whole_answer(answer, MAX_ANSWER, until)
        except TooLarge as error:
            raise SourceError(
                f"an answer of {self._where} is over {MAX_ANSWER >> 20} MiB; a server of MLflow 3.4"
                " or newer gives long histories in parts"
            ) from error
        except TooSlow as error:
            raise SourceError(
                f"{self._where} gave no whole answer within {within_s:.0f} s"
            ) from error
        except (HTTPError, OSError) as error:
            raise self._unreachable(error) from error
        if answer.status != _OK:
            raise self._refused(answer.status, answer.headers, content)
        return content

    def _json(self, path: str, content: bytes) -> Any:
        try:
            answer = orjson.loads(content) if content else {}
        except orjson.JSONDecodeError as error:
            kind = "a web page" if content.lstrip()[:1] == b"<" else "something that is no JSON"
            raise SourceError(
                f"{self._where} answers {path} with {kind}; check that the source's uri names an"
                " MLflow server, and that no login page stands before it"
            ) from error
        if not isinstance(answer, dict):
            raise SourceError(f"{self._where} answers {path} with no JSON object; check uri")
        return answer

    @property
    def _where(self) -> str:
        return f"MLflow at {shown_url(self.url)}"

    def _unreachable(self, error: Exception) -> SourceError:
        cause = (error.reason if isinstance(error, MaxRetryError) else None) or error
        if isinstance(cause, SSLError):
            return SourceError(
                f"{self._where}: its certificate isn't accepted; name its authority's in"
                " MLFLOW_TRACKING_SERVER_CERT_PATH"
            )
        refused = isinstance(cause, urllib3.exceptions.NewConnectionError)  # a timeout by its class
        if isinstance(cause, urllib3.exceptions.TimeoutError) and not refused:
            return SourceError(
                f"{self._where} doesn't answer in time; see whether it is overloaded"
            )
        below = cause.__cause__ or cause.__context__ or cause
        said = os.strerror(below.errno) if isinstance(below, OSError) and below.errno else ""
        return SourceError(
            f"{self._where} can't be reached: {said or type(below).__name__};"
            " see whether it runs and the source's uri is right"
        )

    def _refused(self, status: int, headers: Mapping[str, str], content: bytes) -> SourceError:
        said = f"{self._where} answers HTTP {status}{_told(content)}"
        if status == _NOT_FOUND:
            return Gone(f"{said}; check the source's uri")
        if status in (_UNAUTHORIZED, _FORBIDDEN):
            return SourceError(
                f"{said}; set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and"
                " MLFLOW_TRACKING_PASSWORD, to a login that may read"
            )
        if status // 100 == 3:  # noqa: PLR2004
            return SourceError(f"{said}, a redirection; set the source's uri to where it leads")
        if status == _TOO_MANY or status // 100 == 5:  # noqa: PLR2004
            asked = headers.get("retry-after", "").strip()
            return SourceError(said, retry_after_s=float(asked) if asked.isdecimal() else None)
        return SourceError(said)


def _told(content: bytes) -> str:
    """The server's own words, if it has some for a person."""
    try:
        answer = orjson.loads(content)
        text = f"{answer['error_code']}: {answer['message']}"
    except (orjson.JSONDecodeError, KeyError, TypeError):
        text = "" if content.lstrip()[:1] == b"<" else content.decode("utf-8", "replace")
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return f" ({line[:_SAID]})" if line else ""


def _pool(login: Login) -> urllib3.PoolManager:
    given: dict[str, Any] = {"cert_reqs": "CERT_REQUIRED" if login.verify else "CERT_NONE"}
    if login.ca:
        given["ca_cert_dir" if os.path.isdir(login.ca) else "ca_certs"] = login.ca
    if login.cert:
        given["cert_file"] = login.cert
    if not login.verify:
        # It is said in the settings; urllib3 would say it with every request.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return pool_for(login.url, _CONNECTIONS, **given)
