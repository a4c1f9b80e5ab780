"""Run by Alembic: migrate over the connection that the store has opened, inside its transaction."""

from alembic import context

from wtwin_watch.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
context.run_migrations()
