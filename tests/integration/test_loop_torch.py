"""A plain PyTorch loop, and several processes of one training."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from tests.support.loops import BATCH, Line, examples  # noqa: E402
from tests.support.webhook_standin import WebhookStandIn  # noqa: E402
from wtwin_watch.integrations import Watch  # noqa: E402
from wtwin_watch.metrics import Role  # noqa: E402

pytestmark = pytest.mark.integration


def train(watch: Watch, model: Line, steps: int) -> list[Any]:
    """The loop as anybody writes it, with the one line of ours."""
    data = examples(1024)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    states = []
    for step in range(steps):
        at = step * BATCH % len(data)
        x = torch.stack([one["x"] for one in data[at : at + BATCH]])
        labels = torch.stack([one["labels"] for one in data[at : at + BATCH]])
        loss = model(x, labels)["loss"]
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        states.append(watch.step(loss, optimizer=optimizer, grad_norm=norm))
    return states


def test_a_loop_needs_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "wtwin_watch")
    watch = Watch(name="gpt")
    states = train(watch, Line(rots_from=150), 200)
    assert watch.points == 200
    assert watch._monitor.roles == {
        Role.LOSS: "loss",
        Role.LR: "lr",
        Role.GRAD_NORM: "grad_norm",
    }
    first = next(state.step for state in states if state.alert)
    assert 150 <= first <= 160
    assert not any(state.alert for state in states[:149])
    assert "(gpt): Loss jumped" in caplog.text


def test_a_tensor_keeps_its_gradient_and_no_graph_is_kept() -> None:
    watch = Watch()
    loss = torch.tensor(2.0, requires_grad=True) * 1.0
    assert watch.step(loss).l_obs == 2.0
    assert loss.requires_grad
    loss.backward()


def test_a_tensor_of_several_numbers_is_an_error_that_says_so() -> None:
    with pytest.raises(TypeError, match="Tensor is not one number"):
        Watch().update(1, torch.zeros(2))


RANKED = """
import math, sys
import torch.distributed as dist
dist.init_process_group("gloo")
from wtwin_watch.integrations import Watch
with Watch(sys.argv[1], name="gpt") as watch:
    for step in range(1, 81):
        watch.update(step, 2.0 + 1.0 / step)
    watch.update(81, math.nan)
print("points", watch.points)
dist.barrier()
dist.destroy_process_group()
"""

HUGGINGFACE = """
import sys
import transformers
from tests.support.loops import BATCH, Line, examples
from wtwin_watch.integrations import HuggingFaceCallback
callback = HuggingFaceCallback(notify=sys.argv[1], name="gpt", stop_on_alert=True)
arguments = transformers.TrainingArguments(
    output_dir=sys.argv[2], per_device_train_batch_size=BATCH, max_steps=60, logging_steps=1,
    save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, ddp_backend="gloo",
    dataloader_pin_memory=False,
)
trainer = transformers.Trainer(
    model=Line(nan_from=20), args=arguments, train_dataset=examples(4096), callbacks=[callback]
)
trainer.train()
print("stopped at", trainer.state.global_step, "points", callback.watch.points)
import torch.distributed as dist
dist.destroy_process_group()
"""


def both_ranks(code: str, *arguments: str) -> list[str]:
    """Run ``code`` as two processes of one training; return what each printed last."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    for rank in range(2):
        environ = os.environ | {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", code, *arguments],
                env=environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    try:
        printed = [process.communicate(timeout=550)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0, 0], printed
    return [text.strip().splitlines()[-1] for text in printed]


@pytest.mark.timeout(600)  # two processes that import torch, each on a busy core
def test_of_two_ranks_one_watches_and_tells(tmp_path: Path) -> None:
    with WebhookStandIn() as hook:
        file = tmp_path / "config.toml"
        file.write_text(f'[[receiver]]\nnotifier = "webhook"\nurl = "{hook.hook_url}"\n')
        assert both_ranks(RANKED, str(file)) == ["points 81", "points 0"]
        assert hook.types == ["run.alert.firing", "run.alert.resolved"]


@pytest.mark.timeout(600)
def test_ranks_stop_together(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    with WebhookStandIn() as hook:
        file = tmp_path / "config.toml"
        file.write_text(f'[[receiver]]\nnotifier = "webhook"\nurl = "{hook.hook_url}"\n')
        said = both_ranks(HUGGINGFACE, str(file), str(tmp_path / "run"))
        assert said == ["stopped at 20 points 20", "stopped at 20 points 0"]
        assert hook.types == ["run.alert.firing", "run.alert.resolved"]
