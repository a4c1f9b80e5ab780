"""Kills the daemon five hundred times, and counts what each receiver was told."""
