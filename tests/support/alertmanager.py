"""A real Alertmanager on loopback, from Debian's package ``prometheus-alertmanager``."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

from tests.support.process import wait_until

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")

_CONFIG = """
global:
  resolve_timeout: 5m
route:
  receiver: hook
  group_by: [alertname, source, run]
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: hook
    webhook_configs:
      - url: {url}
        send_resolved: true
"""


class Alertmanager:
    """A process of its own, which posts what it tells to ``hook_url``."""

    def __init__(self, folder: Path, hook_url: str) -> None:
        assert PROGRAM is not None
        config = folder / "alertmanager.yml"
        config.write_text(_CONFIG.format(url=hook_url))
        self.url = f"http://127.0.0.1:{_free_port()}"
        self._log = (folder / "alertmanager.log").open("wb")
        self._process = subprocess.Popen(
            [
                PROGRAM,
                f"--config.file={config}",
                f"--storage.path={folder / 'data'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
                "--cluster.listen-address=",
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> Self:
        assert wait_until(self._ready, 60), Path(self._log.name).read_text()
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._log.close()

    def alerts(self) -> list[dict[str, Any]]:
        """What it holds for firing now."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
            return found

    def _ready(self) -> bool:
        assert self._process.poll() is None, Path(self._log.name).read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=10) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
