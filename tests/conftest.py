"""Fixtures and hooks that tests in several folders use."""

from tests.support.command_line import logging_as_before, no_settings, wtwin_watch
from tests.support.counts import pytest_terminal_summary
from tests.support.process import program
from tests.support.toys import toy_adapter

__all__ = [
    "logging_as_before",
    "no_settings",
    "program",
    "pytest_terminal_summary",
    "toy_adapter",
    "wtwin_watch",
]
