"""Alembic's home inside the package, so that an installed wheel can migrate its database."""
