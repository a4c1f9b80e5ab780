"""Decides what becomes an alert: pure functions of state, detections and time."""
