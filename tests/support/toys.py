"""The toy adapter of `tests.support.plugin_site`, installed as ``toy`` for a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.plugin_site import TOY, installed


@pytest.fixture
def toy_adapter() -> Iterator[None]:
    with TemporaryDirectory() as folder:
        modules = {"acme_toy": TOY}
        with installed(Path(folder), modules=modules, adapters={"toy": "acme_toy:ToySource"}):
            yield
