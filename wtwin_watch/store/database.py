"""Opening the database: where it is, how SQLite is set up, and migrations.

SQLite runs in WAL mode with ``synchronous=FULL``: what is committed survives a power cut, and readers
never wait for the writer. Another database is named by an SQLAlchemy URL without credentials.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import ConnectionPoolEntry, NullPool, QueuePool

from wtwin_watch.errors import StateDamaged, StoreError

BUSY_TIMEOUT_S = 20


def database_url(state: str) -> sa.URL:
    """Turn ``--state`` into a URL: a path is a SQLite file. Raises `StoreError` for an unusable URL."""
    if "://" not in state:
        return sa.URL.create("sqlite", database=str(Path(state).expanduser().absolute()))
    try:
        return sa.make_url(state)
    except sa.exc.ArgumentError:
        raise StoreError("state is neither a path nor a database URL") from None


def shown(url: sa.URL) -> str:
    """Name the database without credentials."""
    if url.get_backend_name() == "sqlite":
        return url.database or ":memory:"
    return str(sa.URL.create(url.drivername, host=url.host, port=url.port, database=url.database))


def connect(url: sa.URL, *, writes: bool) -> sa.Engine:
    """Make an engine. Its connections begin writing transactions at once, or can't write at all."""
    try:
        if url.get_backend_name() != "sqlite":
            return sa.create_engine(url, poolclass=QueuePool, pool_size=4, pool_pre_ping=True)
        engine = sa.create_engine(
            url,
            poolclass=NullPool if writes else QueuePool,
            connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
        )
    except (sa.exc.NoSuchModuleError, ModuleNotFoundError) as error:
        raise StoreError(
            f"no driver for the state database {shown(url)}: {error}; PostgreSQL needs the"
            " package psycopg and a URL that begins with postgresql+psycopg://"
        ) from None

    @sa.event.listens_for(engine, "connect")
    def _set_up(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # SQLAlchemy's BEGIN below is then the only one
        if writes:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
        else:
            connection.execute("PRAGMA query_only=ON")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def make_place(url: sa.URL) -> None:
    """Make the folder of a SQLite file, closed to others, since alerts name runs and their losses."""
    if url.get_backend_name() != "sqlite" or not url.database:
        return
    path = Path(url.database)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)
    except OSError as error:
        raise StoreError(
            f"the state file {path} can't be made: {error.strerror}; name another place with --state"
        ) from None
    if not os.access(path, os.W_OK):
        raise StoreError(f"the state file {path} can't be written; name another place with --state")


@contextmanager
def visited(state: str, *, writes: bool = False) -> Iterator[sa.Connection]:
    """Open the state of a daemon for one transaction, without owning it.

    Raises `StoreError` where there is no state (an empty one is not made), or it can't be used.
    """
    url = database_url(state)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise StoreError(f"there is no state at {shown(url)}: no daemon has run with it")
    engine = connect(url, writes=writes)
    try:
        with engine.begin() as connection:
            yield connection
    except sa.exc.DatabaseError as error:
        done = "changed" if writes else "read"
        raise StoreError(f"the state {shown(url)} can't be {done}: {error.orig}") from None
    finally:
        engine.dispose()


def migrate(engine: sa.Engine) -> None:
    """Bring the schema up to date, in one transaction. Raises `StoreError` for a newer schema."""
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", "wtwin_watch:store/migrations")
    try:
        with engine.begin() as connection:
            attributes: dict[str, Any] = config.attributes
            attributes["connection"] = connection
            command.upgrade(config, "head")
    except CommandError as error:
        raise StoreError(
            f"the state database {shown(engine.url)} was written by a newer version: {error};"
            " upgrade wtwin-watch or name another place with --state"
        ) from None
    except sa.exc.DatabaseError as error:
        text = (
            f"the state database {shown(engine.url)} can't be used: {error.orig};"
            " name another place with --state"
        )
        if _is_damaged(error):
            raise StateDamaged(f"{text}, or start anew with --fresh") from None
        raise StoreError(text) from None


def _is_damaged(error: sa.exc.DatabaseError) -> bool:
    """Whether the file itself is beyond use; a full disk or a lock is not."""
    return any(word in str(error.orig) for word in ("malformed", "not a database", "no such table"))


def copy(url: sa.URL, folder: Path) -> sa.URL:
    """Copy the state into ``folder`` as it is now, owned by nobody; what isn't there is an empty state.

    Only a SQLite file is copied; for another database the copy is empty.
    """
    target = folder / "state.db"
    source = Path(url.database or "")
    if url.get_backend_name() == "sqlite" and source.exists():
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            try:
                old.backup(new)
                new.execute("DELETE FROM owner")
                new.commit()
            except sqlite3.DatabaseError:
                target.unlink(missing_ok=True)
    return database_url(str(target))


def remove(url: sa.URL) -> None:
    """Forget everything: delete a SQLite file, or drop the tables of another database."""
    if url.get_backend_name() == "sqlite" and url.database:
        for suffix in ("", "-wal", "-shm"):
            Path(url.database + suffix).unlink(missing_ok=True)
        return
    from wtwin_watch.store.tables import metadata

    engine = connect(url, writes=True)
    with engine.begin() as connection:
        metadata.drop_all(connection)
        connection.exec_driver_sql("DROP TABLE IF EXISTS alembic_version")
    engine.dispose()
