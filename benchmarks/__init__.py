"""Measurements that are judged: ``python -m benchmarks.NAME [--quick] [--json]``."""
