"""Where an MLflow server is and who asks there: its URI, MLflow's own variables, Databricks.

Variables are those that MLflow's client reads (``MLFLOW_TRACKING_TOKEN`` and its kin). What the source's
own options give goes before them.
"""

from __future__ import annotations

import configparser
import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from urllib3.util import make_headers

from wtwin_watch.errors import SourceError

_PREFIX = "MLFLOW_TRACKING_"
_TRUE = frozenset({"true", "1"})
_DATABRICKS = "databricks"

Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Login:
    """A server's address, and what goes along with each request. ``headers`` is asked anew each time."""

    url: str
    """Scheme, host and prefix, without a slash at the end."""
    headers: Callable[[], Headers] = field(repr=False)
    databricks: bool = False
    verify: bool = True
    ca: str | None = None
    """A file or a folder of certificates that the server's is checked against."""
    cert: str | None = None
    """A file with the certificate and the key that this client shows."""


def check_uri(uri: str) -> str:
    """Return ``uri`` if it names a server that can be asked. Raises ValueError saying what to do."""
    if any(ord(letter) <= ord(" ") for letter in uri) or not uri.isascii():
        raise ValueError("a URI is printable ASCII without spaces")
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        raise ValueError("not a URI") from None
    if _DATABRICKS in (uri, parts.scheme):
        return uri
    if parts.scheme in {"http", "https"} and parts.hostname:
        return _checked(uri, parts)
    if parts.scheme in {"", "file"}:
        raise ValueError(
            "names a folder; a file store is watched by the adapter mlflow-files, with its path"
        )
    if "+" in parts.scheme or parts.scheme in {"sqlite", "postgresql", "mysql", "mssql"}:
        raise ValueError(
            "names a database; start `mlflow server --backend-store-uri …` on it and give its http:// URI"
        )
    raise ValueError("an MLflow server's URI starts with http:// or https://, or is databricks")


def _checked(uri: str, parts: SplitResult) -> str:
    if parts.username or parts.password:
        raise ValueError(
            "holds a user or a password; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD instead"
        )
    if parts.query or parts.fragment:
        raise ValueError("ends at its path; take away what stands behind ? or #")
    return uri.rstrip("/")


def login(
    uri: str, username: str | None = None, password: str | None = None, token: str | None = None
) -> Login:
    """Find out how to ask the server at ``uri``.

    Raises `SourceError` where MLflow's variables ask for something that isn't supported here, and where
    a Databricks login isn't set up.
    """
    if uri == _DATABRICKS or uri.startswith(f"{_DATABRICKS}:"):
        return _databricks(urlsplit(uri).netloc or None)
    for name in ("AWS_SIGV4", "AUTH"):
        if os.environ.get(_PREFIX + name, "").lower() not in {"", "false", "0"}:
            raise SourceError(
                f"{_PREFIX}{name} is set, but logins of that kind aren't supported;"
                f" unset it, and use a token or a user and password"
            )
    headers = _headers(username, password, token)
    ca = os.environ.get(_PREFIX + "SERVER_CERT_PATH") or None
    cert = os.environ.get(_PREFIX + "CLIENT_CERT_PATH") or None
    for name, path in (("SERVER_CERT_PATH", ca), ("CLIENT_CERT_PATH", cert)):
        if path and not os.path.exists(path):
            raise SourceError(f"{_PREFIX}{name} names {path}, which isn't there; correct it")
    return Login(
        uri,
        lambda: headers,
        verify=os.environ.get(_PREFIX + "INSECURE_TLS", "").lower() not in _TRUE,
        ca=ca,
        cert=cert,
    )


def _headers(username: str | None, password: str | None, token: str | None) -> Headers:
    if not (username or token):
        stored = _stored()
        username = os.environ.get(_PREFIX + "USERNAME") or stored.get("mlflow_tracking_username")
        password = os.environ.get(_PREFIX + "PASSWORD") or stored.get("mlflow_tracking_password")
        token = os.environ.get(_PREFIX + "TOKEN")
    if username and password:
        return make_headers(basic_auth=f"{username}:{password}")
    return {"authorization": f"Bearer {token}"} if token else {}


def _stored() -> Mapping[str, str]:
    """What ``mlflow login`` has written down, if anything."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(Path("~/.mlflow/credentials").expanduser(), encoding="utf-8")
        return dict(parser["mlflow"]) if parser.has_section("mlflow") else {}
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        reason = type(error).__name__  # its text may quote the file
        raise SourceError(f"~/.mlflow/credentials can't be read: {reason}; correct it") from None


def _databricks(profile: str | None) -> Login:
    try:
        sdk: Any = importlib.import_module("databricks.sdk.core")
    except ModuleNotFoundError as error:
        raise SourceError(
            "Databricks needs the package databricks-sdk; install wtwin-watch with its extra mlflow"
        ) from error
    try:
        config = sdk.Config(profile=profile)
        config.authenticate()
    except Exception as error:
        raise SourceError(
            f"no login for Databricks: {type(error).__name__}; set DATABRICKS_HOST and DATABRICKS_TOKEN,"
            " or a profile in ~/.databrickscfg named by databricks://PROFILE"
        ) from None
    return Login(str(config.host).rstrip("/"), config.authenticate, databricks=True)
