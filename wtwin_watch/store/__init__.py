"""Everything the watcher knows, in one database."""
