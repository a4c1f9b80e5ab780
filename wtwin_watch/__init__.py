"""Watches training runs from outside the job and tells people when one degrades."""

__version__ = "0.1.0"
