"""A training job that logs with the genuine ``wandb``, as a process of its own.

    python -m tests.support.wandb_job RUN

Each line on stdin is a JSON object: ``rows`` to log, ``alert``, ``finish``, or ``fail``. It answers each
with a line once the client has it; what is logged reaches the server within the client's own rhythm, or
before the end of the job. Tests hold it through `WandbJob`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.support.process import PATIENCE_S, ROOT
from tests.support.wandb_standin import ENTITY, KEY, PROJECT


class WandbJob:
    """The job, as its test sees it. ``folder`` is where its client writes."""

    def __init__(self, url: str, run: str, folder: Path) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
        env |= {"WANDB_BASE_URL": url, "WANDB_API_KEY": KEY, "WANDB_SILENT": "true"}
        env |= {"WANDB_DIR": str(folder), "WANDB_CACHE_DIR": str(folder), "HOME": str(folder)}
        env |= {"WANDB_ERROR_REPORTING": "false", "WANDB_X_DISABLE_STATS": "true"}
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "tests.support.wandb_job", run],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=env,
        )

    def log(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Log rows, each one step."""
        self._tell(rows=list(rows))

    def alert(self, title: str) -> None:
        """Send an alert of the job's own."""
        self._tell(alert=title)

    def finish(self) -> None:
        """End the run well; everything is sent then."""
        self._tell(finish=True)

    def _tell(self, **what: Any) -> None:
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._popen.stdin.write(json.dumps(what) + "\n")
        self._popen.stdin.flush()
        assert self._popen.stdout.readline() == "done\n", "the job ended"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._popen.kill()
        self._popen.communicate(timeout=PATIENCE_S)


def main() -> None:
    """Log what stdin says until it ends."""
    import wandb

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    run = wandb.init(entity=ENTITY, project=PROJECT, id=sys.argv[1], name=sys.argv[1])
    for line in sys.stdin:
        told = json.loads(line)
        for row in told.get("rows", ()):
            run.log(row)
        if "alert" in told:
            run.alert(told["alert"], "text")
        if told.get("finish"):
            run.finish()
        answers.write("done\n")
        answers.flush()


if __name__ == "__main__":
    main()
