"""What watching from inside a training loop costs a step, as a share of the optimizer's own step.

The model is the published experiments' smallest, a nano-GPT of 842,496 parameters, and its optimizer AdamW
on one thread of the processor. Both are timed in turn, in short stretches, and the fastest of each are
compared: whatever else the machine does only makes a stretch slower.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from benchmarks.report import Measure, Skipped, main
from wtwin_watch.integrations import Watch

if TYPE_CHECKING:
    import torch

WIDTH, LAYERS, SYMBOLS, CONTEXT = 128, 4, 256, 128
PARAMETERS = 842_496
AT_MOST = 0.01
STRETCH = 200
"""Steps watched in a stretch; the optimizer makes a tenth of it."""
LEARNED = 2_000
"""Steps that a watch has seen before it is timed, so that it judges."""

Step = Callable[[int, Any], object]
"""What is timed: one step with its number and its loss, a tensor."""


def measure(quick: bool) -> Iterator[Measure | Skipped]:
    """Yield each measure as it is known."""
    names = {
        "Watch.step": None,
        "HuggingFaceCallback": "transformers",
        "LightningCallback": "lightning",
    }
    if find_spec("torch") is None:
        for name in names:
            yield Skipped(f"{name} ÷ optimizer.step()", "torch is not installed")
        return
    optimizer = _optimizer()
    for name, framework in names.items():
        if framework is not None and find_spec(framework) is None:
            yield Skipped(f"{name} ÷ optimizer.step()", f"{framework} is not installed")
        else:
            yield _ratio(name, _STEPS[name](optimizer), optimizer, rounds=20 if quick else 60)


def _ratio(name: str, step: Step, optimizer: torch.optim.Optimizer, rounds: int) -> Measure:
    import torch

    chance = random.Random(1)
    at = 0

    def watch(count: int) -> float:
        nonlocal at
        levels = [2.0 + 3.0 * (at + i + 1) ** -0.5 for i in range(count)]
        losses = [torch.tensor(level + chance.gauss(0.0, 0.02)) for level in levels]
        began = time.perf_counter()
        for i, loss in enumerate(losses, at + 1):
            step(i, loss)
        spent = time.perf_counter() - began
        at += count
        return spent / count

    watch(LEARNED)
    watched, stepped = [], []
    for _ in range(rounds):
        watched.append(watch(STRETCH))
        began = time.perf_counter()
        for _ in range(STRETCH // 10):
            optimizer.step()
        stepped.append((time.perf_counter() - began) / (STRETCH // 10))
    return Measure(
        f"{name} ÷ optimizer.step()",
        min(watched) / min(stepped),
        at_most=AT_MOST,
        note=f"{min(watched) * 1e6:.1f} µs of {min(stepped) * 1e3:.2f} ms",
    )


def _optimizer() -> torch.optim.Optimizer:
    """AdamW over the model's parameters, with gradients and its own state."""
    import torch
    from torch import nn

    torch.set_num_threads(1)  # several on a machine that others use wait for each other

    def block() -> list[nn.Module]:
        return [
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, 3 * WIDTH),
            nn.Linear(WIDTH, WIDTH),
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, 4 * WIDTH),
            nn.Linear(4 * WIDTH, WIDTH),
        ]

    blocks = [module for _ in range(LAYERS) for module in block()]
    ends = [nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(CONTEXT, WIDTH), nn.LayerNorm(WIDTH)]
    parameters = [parameter for module in blocks + ends for parameter in module.parameters()]
    if sum(parameter.numel() for parameter in parameters) != PARAMETERS:
        raise AssertionError("this is not the published model")
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter) * 1e-3
    return torch.optim.AdamW(parameters, lr=1e-3)


def _by_hand(optimizer: torch.optim.Optimizer) -> Step:
    import torch

    watch = Watch(rank=0)
    norm = torch.tensor(1.0)

    def step(_: int, loss: Any) -> None:
        watch.step(loss, optimizer=optimizer, grad_norm=norm)

    return step


def _huggingface(optimizer: torch.optim.Optimizer) -> Step:
    from wtwin_watch.integrations import HuggingFaceCallback

    callback = HuggingFaceCallback(rank=0, name="benchmark")
    given: Any = SimpleNamespace()

    def step(at: int, loss: Any) -> None:
        given.global_step = at
        logs = {"loss": loss.item(), "grad_norm": 1.0, "learning_rate": 1e-3}
        callback.on_log(given, given, given, logs=logs)

    return step


def _lightning(optimizer: torch.optim.Optimizer) -> Step:
    from wtwin_watch.integrations import LightningCallback

    callback = LightningCallback(rank=0, name="benchmark")
    trainer: Any = SimpleNamespace(accumulate_grad_batches=1, optimizers=[optimizer])
    module: Any = SimpleNamespace(automatic_optimization=True)

    def step(at: int, loss: Any) -> None:
        trainer.global_step = at
        callback.on_train_batch_end(trainer, module, {"loss": loss}, None, at)

    return step


_STEPS: dict[str, Callable[[Any], Step]] = {
    "Watch.step": _by_hand,
    "HuggingFaceCallback": _huggingface,
    "LightningCallback": _lightning,
}

if __name__ == "__main__":
    sys.exit(main("loop", measure))
