"""A database that one process owns: its connections, the one thread that writes, and who the owner is."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from wtwin_watch.errors import OwnershipLost, StoreError
from wtwin_watch.store import codec, database, owner, tables
from wtwin_watch.store.writer import Writer


class OwnedDatabase:
    """A database owned by this process. Reads come from any thread, writes go through one."""

    def __init__(self, url: sa.URL) -> None:
        self.url = url
        self._token = uuid.uuid4().hex
        self._owned = False
        database.make_place(url)
        self._write_engine = database.connect(url, writes=True)
        database.migrate(self._write_engine)
        self._read_engine = database.connect(url, writes=False)
        self._writer = Writer(self._write_engine, self._check_ownership)

    def close(self) -> None:
        """Give the database up."""
        if self._owned:
            self._writer.submit(
                lambda c: c.execute(
                    sa.delete(tables.owner).where(tables.owner.c.token == self._token)
                )
            )
        self._writer.close()
        self._write_engine.dispose()
        self._read_engine.dispose()

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        try:
            with self._read_engine.connect() as connection:
                yield connection
        except sa.exc.DBAPIError as error:
            raise StoreError(
                f"the state database {database.shown(self.url)} can't be read: {error.orig}"
            ) from None

    def claim(self, now: float) -> None:
        """Become the owner. Raises `StoreError` where another daemon is."""
        me = owner.this_process()

        def work(connection: sa.Connection) -> None:
            row = connection.execute(sa.select(tables.owner)).one_or_none()
            if row is not None:
                holder = codec.loads(row.holder_json)
                if owner.is_alive(holder, row.heartbeat_at, now, me, owner.process_start):
                    raise StoreError(
                        f"another daemon watches with the state {database.shown(self.url)}:"
                        f" process {holder['pid']} on {holder['host']}, last heard"
                        f" {max(0.0, now - row.heartbeat_at):.0f} s ago;"
                        " stop it, or give this one a place of its own with --state"
                    )
                connection.execute(sa.delete(tables.owner).where(tables.owner.c.token == row.token))
            connection.execute(
                sa.insert(tables.owner).values(
                    id=1,
                    token=self._token,
                    holder_json=codec.dumps(dict(me)),
                    started_at=now,
                    heartbeat_at=now,
                    status="starting",
                )
            )

        self._writer.write(work)
        self._owned = True

    def heartbeat(self, now: float, status: str) -> None:
        """Say that this daemon lives, and what it is doing."""
        self._writer.write(
            lambda c: c.execute(
                sa.update(tables.owner)
                .where(tables.owner.c.token == self._token)
                .values(heartbeat_at=now, status=status)
            )
        )

    def _check_ownership(self, connection: sa.Connection) -> None:
        if not self._owned:
            return
        token = connection.execute(sa.select(tables.owner.c.token)).scalar_one_or_none()
        if token != self._token:
            raise OwnershipLost("another daemon has taken over the state database; this one stops")

    def forget(self) -> None:
        """Delete all that is known, except who owns the database."""

        def work(connection: sa.Connection) -> None:
            for table in tables.metadata.sorted_tables:
                if table is not tables.owner:
                    connection.execute(sa.delete(table))

        self._writer.write(work)
