"""How soon the trend monitor sees what goes wrong, how often it cries wolf, and what it calls what it saw.

``python -m benchmarks.detection [--quick] [--json] [--report PATH]``. Judged at the nominal far = 1e5, no
threshold of ours is tuned. Real logs are found by WTWIN_WATCH_CORPUS; without it only what is simulated is
measured. Rises and failures are added to clean logs at the onsets given here; a miss counts as the
horizon, and an alert that was on at the onset earns nothing.
"""
