"""What tests counted, shown at their end: a test says it with ``record_property("counted", …)``."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the counts of the tests that passed or failed."""
    reports = [
        report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)
    ]
    counted = [
        text
        for report in reports
        for name, text in getattr(report, "user_properties", ())
        if name == "counted" and report.when == "call"
    ]
    if counted:
        terminalreporter.section("counted")
        for text in counted:
            terminalreporter.write_line(text)
