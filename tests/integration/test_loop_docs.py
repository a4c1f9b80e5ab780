"""The examples of docs/training-loop.md, run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PAGE = Path(__file__).parents[2] / "docs" / "training-loop.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
SAID = [
    "Warning: loss drifts up (gpt-small): Loss leaves its trend: since step 300 on average 0.263",
    "(a line): Loss jumped up at step 1",
    "Critical: loss is not finite (a line): Loss is NaN at step 80;",
    "(a line): Loss jumped up at step 1",
]
"""What each of them is warned of, in their order."""


@pytest.mark.parametrize(("code", "said"), list(zip(EXAMPLES, SAID, strict=True)))
def test_an_example_runs_as_it_stands(code: str, said: str, tmp_path: Path) -> None:
    for framework in ("torch", "transformers", "lightning"):
        if re.search(rf"^(import|from) {framework}\b", code, re.M) and not find_spec(framework):
            pytest.skip(f"{framework} is not installed")
    environ = {name: value for name, value in os.environ.items() if "RANK" not in name}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stderr
