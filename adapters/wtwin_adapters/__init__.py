"""Kinds of tracker: where runs are logged and how to read on."""
