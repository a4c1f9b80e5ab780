"""The readers of files, fed for a moment with bytes that atheris chooses by the code they reach."""

import subprocess
import sys

import pytest

pytest.importorskip("atheris", reason="atheris isn't installed: pip install atheris")


@pytest.mark.parametrize("reader", ["tables", "text", "events", "wandb"])
def test_bytes_that_reach_much_of_a_reader_are_read_alike_however_they_come(reader, tmp_path):
    command = [sys.executable, "-m", "tests.support.guided_fuzz", reader]
    bounds = ["-runs=2000", "-max_len=512", "-timeout=30", "-rss_limit_mb=1024", "-seed=1"]

    done = subprocess.run(
        [*command, *bounds, f"-artifact_prefix={tmp_path}/"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-4000:]
