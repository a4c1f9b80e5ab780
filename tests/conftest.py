"""Fixtures that tests in several folders use."""

from tests.support.command_line import logging_as_before, no_settings, wtwin_watch
from tests.support.toys import toy_adapter

__all__ = ["logging_as_before", "no_settings", "toy_adapter", "wtwin_watch"]
