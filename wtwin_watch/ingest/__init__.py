"""Brings points from the sources to the monitors: source, monitor, checkpoint."""
