"""Secrets by reference, and URLs that can be shown.

A secret never stands in the settings themselves: it is named by ``{ env = "NAME" }``,
``{ file = "/path" }`` or ``{ credential = "name" }`` (a file in ``$CREDENTIALS_DIRECTORY``, as systemd
passes it) and is read when the settings are.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BeforeValidator, SecretStr, WithJsonSchema

_KINDS = ("env", "file", "credential")


def read_reference(reference: Any) -> Any:
    """Read the secret that ``reference`` names. Raises ValueError saying what is missing."""
    if isinstance(reference, SecretStr):
        return reference
    if (
        not isinstance(reference, dict)
        or len(reference) != 1
        or next(iter(reference)) not in _KINDS
    ):
        raise ValueError(
            'a secret is given by reference: { env = "NAME" }, { file = "/path" }'
            ' or { credential = "name" }'
        )
    kind, name = next(iter(reference.items()))
    if not isinstance(name, str) or not name:
        raise ValueError(f"{kind} takes a name")
    if kind == "env":
        secret = os.environ.get(name, "")
        if not secret:
            raise ValueError(f"the environment variable {name} is not set")
        return SecretStr(secret.strip())
    if kind == "credential":
        folder = os.environ.get("CREDENTIALS_DIRECTORY")
        if not folder:
            raise ValueError(
                f"the credential {name!r} needs $CREDENTIALS_DIRECTORY, which systemd sets with"
                f" LoadCredential=; elsewhere set it to the folder of the file {name!r}"
            )
        path = Path(folder) / name
    else:
        path = Path(name).expanduser()
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"the secret file {path} can't be read: {error.strerror}") from None
    if not secret:
        raise ValueError(f"the secret file {path} is empty")
    return SecretStr(secret)


Secret = Annotated[
    SecretStr,
    BeforeValidator(read_reference),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {kind: {"type": "string"} for kind in _KINDS},
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        }
    ),
]
"""A settings field that takes a reference and holds the secret, masked in every repr."""


def shown_url(url: str) -> str:
    """Cut ``url`` to what may be shown anywhere: scheme and host, no user, path or query."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(not a URL)"
    return f"{parts.scheme}://{parts.hostname or ''}{port}"
