"""Fixtures and hooks that tests in several folders use."""

import signal

from tests.support.command_line import logging_as_before, no_settings, wtwin_watch
from tests.support.counts import pytest_terminal_summary
from tests.support.mlflow_fixtures import mlflow_here, mlflow_pair
from tests.support.process import program
from tests.support.state import state_path, store
from tests.support.toys import toy_adapter

__all__ = [
    "logging_as_before",
    "mlflow_here",
    "mlflow_pair",
    "no_settings",
    "program",
    "pytest_terminal_summary",
    "state_path",
    "store",
    "toy_adapter",
    "wtwin_watch",
]

if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # Started with nohup: the programs that tests start would inherit that, and outlive their terminal.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
