"""Watching from inside the training loop: `Watch`, and callbacks of the frameworks that people train with.

Importing this package imports no framework; a callback's own is imported when the callback is asked for.
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

from wtwin_watch.integrations.watch import Watch

if TYPE_CHECKING:
    from wtwin_watch.integrations.huggingface import HuggingFaceCallback
    from wtwin_watch.integrations.lightning import LightningCallback
    from wtwin_watch.integrations.published import WTwinCallback

__all__ = ["HuggingFaceCallback", "LightningCallback", "WTwinCallback", "Watch"]

_PLACES = {
    "HuggingFaceCallback": ("huggingface", "transformers"),
    "LightningCallback": ("lightning", "lightning"),
    "WTwinCallback": ("published", "transformers"),
}
"""Where a callback stands, and the optional dependency group that it needs."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra = _PLACES[name]
    try:
        return getattr(import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        from wtwin_watch.plugins import (
            install_command,
        )  # only for a mistake: it comes with pydantic

        command = install_command(metadata.distribution("wtwin-watch"), extra)
        raise ModuleNotFoundError(
            f"{name} needs the module {error.name!r}, which isn't installed;"
            f" install it with: {command}",
            name=error.name,
        ) from error
