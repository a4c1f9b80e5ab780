"""The state of a daemon, as tests of the commands that read it need it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from wtwin_watch.store import Store, database


@pytest.fixture
def state_path(tmp_path: Path) -> Path:
    """Where the state is; there is none before `store` makes it."""
    return tmp_path / "state.db"


@pytest.fixture
def store(state_path: Path) -> Iterator[Store]:
    """The state, owned by a daemon that was last heard of in 2033."""
    store = Store(database.database_url(str(state_path)))
    store.claim(2e9)
    yield store
    store.close()
