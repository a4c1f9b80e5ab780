"""Kinds of channel: how a notification reaches people."""
