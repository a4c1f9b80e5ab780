"""The published table anew: failures of a small GPT, seen by the published method, others and ours.

``python -m benchmarks.published [--train] [--quick] [--json] [--report PATH]``. The logs that were trained
with ``examples/train_real.py`` lie beside this file; ``--train`` trains those that are missing, and goes on
where it stopped. With WTWIN_WATCH_CORPUS set the logs of the published experiment make a second table.
"""
