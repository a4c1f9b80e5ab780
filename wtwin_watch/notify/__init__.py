"""Brings alerts from the store to the receivers."""
