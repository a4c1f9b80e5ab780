"""Train a small byte-level GPT for real, and let it go wrong on purpose: the published experiment.

The text is made up on the spot, so nothing is downloaded: each letter is drawn evenly from the two or three
that may follow the two before it. Such a text is the same everywhere: an easy case for any detector.

What a step draws (its batch, its noise) depends on the seed and the number of the step alone. So a failure
that is forked from a healthy checkpoint is the run that would have had it from its first step on.

Needs PyTorch: ``pip install '.[train]'``.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ModuleNotFoundError as error:
    raise SystemExit(f"{error.name} is missing; pip install '.[train]' brings it") from error

EXAMPLE = """example:
  python examples/train_real.py --mode progressive_label --seed 42 --output run.csv
  wtwin-watch monitor run.csv

the same failure from a healthy run, without training that again:
  python examples/train_real.py --stop-at 2000 --checkpoint healthy.pt --output healthy.csv
  python examples/train_real.py --fork healthy.pt --mode progressive_label --output run.csv

modes:
"""
MODES = {
    "none": "nothing goes wrong",
    "progressive_label": "ever more labels are random bytes, up to --max-noise-prob of them",
    "progressive_weight": "ever more noise goes into the weights each step, up to --max-weight-noise",
    "weight_corrupt": "noise of --corrupt-std goes into the weights, once",
    "label_corrupt": "--max-noise-prob of the labels are random bytes from one step to the next",
    "lr_spike": "the learning rate is 10 times its peak",
    "lr_drop": "the learning rate is a hundredth of what it should be",
    "dropout": "--dropout-prob of the activations are dropped",
    "marginal_lr": "the learning rate is 3 times its peak",
    "divergent_lr": "the learning rate is 100 times its peak",
}
OF_THE_PEAK = {"lr_spike": 10.0, "marginal_lr": 3.0, "divergent_lr": 100.0}
PROFILES: dict[str, Callable[[float], float]] = {
    "linear": lambda share: share,
    "quadratic": lambda share: share**2,
    "sigmoid": lambda share: 1.0 / (1.0 + math.exp(-10.0 * (share - 0.5))),
}
SIZES = {"tiny": (32, 2, 2, 32), "small": (128, 4, 4, 128), "medium": (256, 6, 8, 128)}
"""Width, layers, heads, context in bytes; small has 842,496 parameters."""
COLUMNS = ("step", "train_loss", "val_loss", "lr", "grad_norm")
LETTERS, CLASSES, FOLLOWERS, TEXT_BYTES = 12, 3, 4, 1_000_000
CLIP, LOWEST_LR = 1.0, 0.1
VALIDATE_EVERY, CHECKPOINT_EVERY = 50, 250
TEXT, TRAIN, VALIDATION, NOISE = range(4)
"""What chance decides, each by a generator of its own."""


@dataclass(frozen=True)
class Settings:
    """What decides every number of a run. The failure begins with the step after ``failure_step``."""

    mode: str = "none"
    failure_step: int = 2000
    steps: int = 3000
    model_size: str = "small"
    batch_size: int = 4
    seed: int = 42
    lr: float = 3e-4
    warmup_steps: int = 100
    ramp_steps: int = 1000
    ramp_profile: str = "linear"
    max_noise_prob: float = 0.5
    max_weight_noise: float = 0.02
    corrupt_std: float = 0.5
    dropout_prob: float = 0.5

    def strength(self, step: int) -> float:
        """How far the ramp has risen at ``step``, from 0 to 1."""
        if step <= self.failure_step:
            return 0.0
        share = min(1.0, (step - self.failure_step) / self.ramp_steps)
        return PROFILES[self.ramp_profile](share)

    def noise_prob(self, step: int) -> float:
        """The share of labels that are random at ``step``."""
        if self.mode == "progressive_label":
            return self.max_noise_prob * self.strength(step)
        return self.max_noise_prob if self.failing("label_corrupt", step) else 0.0

    def weight_noise(self, step: int) -> float:
        """The standard deviation of what is added to every weight before ``step``."""
        if self.mode == "progressive_weight":
            return self.max_weight_noise * self.strength(step)
        struck = self.mode == "weight_corrupt" and step == self.failure_step + 1
        return self.corrupt_std if struck else 0.0

    def rate(self, step: int) -> float:
        """The learning rate of ``step``: it warms up, then falls in a line, to a tenth at least."""
        if step > self.failure_step and self.mode in OF_THE_PEAK:
            return self.lr * OF_THE_PEAK[self.mode]
        falls = 1.0 - (step - self.warmup_steps) / max(1, self.steps - self.warmup_steps)
        planned = self.lr * min(step / max(1, self.warmup_steps), max(LOWEST_LR, min(1.0, falls)))
        return planned / 100.0 if self.failing("lr_drop", step) else planned

    def failing(self, mode: str, step: int) -> bool:
        """Whether this is the mode, and the failure has begun."""
        return self.mode == mode and step > self.failure_step


QUICK = {
    "steps": 60,
    "failure_step": 30,
    "ramp_steps": 30,
    "model_size": "tiny",
    "lr": 3e-3,
    "warmup_steps": 10,
}
FAILURE = (
    "mode", "failure_step", "ramp_steps", "ramp_profile", "max_noise_prob", "max_weight_noise",
    "corrupt_std", "dropout_prob",
)  # fmt: skip
"""What a fork may change: all else has shaped the run before it."""


# -- the text and the model ------------------------------------------------------------------------


@cache
def made_up_text() -> np.ndarray:
    """Write the text: about 0.82 nats a byte for whoever knows its rules, the same in every run."""
    chance = np.random.default_rng(TEXT)
    after_one = [chance.choice(LETTERS, FOLLOWERS, replace=False) for _ in range(LETTERS)]
    of_a_class = [[chance.permutation(few)[:3] for few in after_one] for _ in range(CLASSES)]
    after_two = np.array([of_a_class[letter % CLASSES] for letter in range(LETTERS)])
    choices = np.where(chance.random((CLASSES, LETTERS)) < 0.31, 3, 2)
    choices = choices[np.arange(LETTERS) % CLASSES]
    before, last = chance.integers(LETTERS, size=(2, 1000))  # a thousand texts, one after the other
    written = []
    for _ in range(TEXT_BYTES // 1000):
        following = after_two[before, last, chance.integers(0, choices[before, last])]
        before, last = last, following
        written.append(following)
    return np.stack(written, axis=1).ravel() + ord("a")


class Block(nn.Module):
    """Attention and a perceptron, each after a norm and beside a way around it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.dropout = heads, 0.0
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what goes to the next block."""
        batch, time_, width = x.shape
        heads = self.qkv(self.norm1(x)).view(batch, time_, 3, self.heads, width // self.heads)
        seen = F.scaled_dot_product_attention(*heads.permute(2, 0, 3, 1, 4), is_causal=True)
        seen = self.out(seen.transpose(1, 2).reshape(batch, time_, width))
        x = x + F.dropout(seen, self.dropout, self.training)
        thought = self.down(F.gelu(self.up(self.norm2(x))))
        return x + F.dropout(thought, self.dropout, self.training)


class Gpt(nn.Module):
    """GPT-2 at a small size over 256 bytes; the matrix that reads bytes also writes them."""

    def __init__(self, width: int, layers: int, heads: int, context: int) -> None:
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, 0.0, 0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a score for every byte that may come next."""
        x = self.bytes(x) + self.places.weight[: x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.bytes.weight.T


# -- the training ----------------------------------------------------------------------------------


class Training:
    """One run: its model, optimizer and the rows of its log so far."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.step, self.rows = settings, 0, list[str]()
        torch.manual_seed(settings.seed)
        width, layers, heads, self.context = SIZES[settings.model_size]
        self.model = Gpt(width, layers, heads, self.context)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=settings.lr)
        self.text = made_up_text()

    @classmethod
    def load(cls, path: Path, failure: dict[str, Any] | None = None) -> Training:
        """Go on from a checkpoint; ``failure``: the settings of a fork that differ there."""
        stored = torch.load(path, weights_only=True)
        settings = replace(Settings(**stored["settings"]), **(failure or {}))
        begun = settings.failure_step < stored["step"]
        if failure and (begun or stored["settings"]["mode"] != "none"):
            raise SystemExit(
                f"{path} is of step {stored['step']} and mode {stored['settings']['mode']};"
                f" a fork needs a healthy one of step {settings.failure_step} or before"
            )
        training = cls(settings)
        training.model.load_state_dict(stored["model"])
        training.optimizer.load_state_dict(stored["optimizer"])
        training.step, training.rows = stored["step"], stored["rows"].splitlines()
        return training

    def save(self, path: Path) -> None:
        """Write a checkpoint, whole or not at all."""
        unfinished = path.with_suffix(".part")
        stored = {
            "settings": asdict(self.settings),
            "step": self.step,
            "rows": "\n".join(self.rows),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        torch.save(stored, unfinished)
        os.replace(unfinished, path)

    def advance(self) -> str:
        """Train one step, and return its row of the log."""
        self.step += 1
        step, settings, model = self.step, self.settings, self.model
        chance = np.random.default_rng((settings.seed, step, NOISE))
        torch.manual_seed(int(chance.integers(2**31)))
        validation = self.validate() if step % VALIDATE_EVERY == 1 else ""
        self._disturb(settings.weight_noise(step))
        seen, labels = self._batch(np.random.default_rng((settings.seed, step, TRAIN)))
        wrong = chance.random(labels.shape) < settings.noise_prob(step)
        labels = np.where(wrong, chance.integers(256, size=labels.shape), labels)
        for block in model.blocks:
            block.dropout = settings.dropout_prob if settings.failing("dropout", step) else 0.0
        rate = settings.rate(step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        loss = self._loss(seen, labels)
        loss.backward()
        norm = float(nn.utils.clip_grad_norm_(model.parameters(), CLIP))  # of before it was clipped
        self.optimizer.step()
        row = f"{step},{loss.item():.6g},{validation},{rate:.5g},{norm:.5g}"
        self.rows.append(row)
        return row

    def validate(self) -> str:
        """The loss on a few batches that stay the same, without dropout."""
        self.model.eval()
        chance = np.random.default_rng((self.settings.seed, VALIDATION))
        with torch.no_grad():
            losses = [self._loss(*self._batch(chance)).item() for _ in range(4)]
        self.model.train()
        return f"{np.mean(losses):.6g}"

    def _batch(self, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        starts = chance.integers(
            len(self.text) - self.context - 1, size=(self.settings.batch_size, 1)
        )
        crops = self.text[starts + np.arange(self.context + 1)]
        return crops[:, :-1], crops[:, 1:]

    def _loss(self, seen: np.ndarray, labels: np.ndarray) -> torch.Tensor:
        scores = self.model(torch.from_numpy(seen))
        return F.cross_entropy(scores.flatten(0, 1), torch.from_numpy(labels).flatten())

    @torch.no_grad()
    def _disturb(self, std: float) -> None:
        if std:
            for weights in self.model.parameters():
                weights.add_(torch.randn_like(weights), alpha=std)


def train(
    training: Training,
    output: Path,
    stop_at: int,
    checkpoint: Path | None,
    tell: Callable[[str], None],
) -> None:
    """Train to ``stop_at``, log each step at once, and keep a checkpoint on the way and of the end.

    ``output`` begins with the rows of before, so that it is the log of the whole run.
    """
    begun, at = time.monotonic(), training.step
    with output.open("w", encoding="utf-8", buffering=1) as log:
        for row in (",".join(COLUMNS), *training.rows):
            log.write(row + "\n")
        while training.step < stop_at:
            row = training.advance()
            log.write(row + "\n")
            step, done = training.step, training.step == stop_at
            if checkpoint is not None and (done or step % CHECKPOINT_EVERY == 0):
                training.save(checkpoint)
            a_step = (time.monotonic() - begun) / (step - at)
            loss = row.split(",")[1]
            left = a_step * (stop_at - step)
            tell(
                f"step {step}/{stop_at}  loss {loss}  {1e3 * a_step:.0f} ms a step  {left:.0f} s left"
            )


# -- the command -----------------------------------------------------------------------------------


def screen() -> Callable[[str], None]:
    """Return what shows progress on stderr: in one line of a terminal, else every 100 steps."""
    lines = 0

    def tell(line: str) -> None:
        nonlocal lines
        lines += 1
        if sys.stderr.isatty():
            print(f"\r{line:<78}", end="", file=sys.stderr, flush=True)
        elif lines % 100 == 0:
            print(line, file=sys.stderr, flush=True)

    return tell


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Parse them; a setting that isn't given is None."""
    modes = "\n".join(f"  {mode:<19} {what}" for mode, what in MODES.items())
    parser = argparse.ArgumentParser(
        description="Train a small byte-level GPT on the CPU, and let it go wrong on purpose.",
        epilog=EXAMPLE + modes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    choices = {"mode": MODES, "model_size": SIZES, "ramp_profile": PROFILES}
    for field in fields(Settings):
        parser.add_argument(
            "--" + field.name.replace("_", "-"),
            type=type(field.default),
            choices=choices.get(field.name),
            help=f"default: {field.default}",
        )
    parser.add_argument("--output", type=Path, default=Path("run.csv"), help="default: run.csv")
    parser.add_argument("--stop-at", type=int, metavar="STEP", help="default: the last of --steps")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="write checkpoints here")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="go on with this checkpoint")
    parser.add_argument("--fork", type=Path, metavar="FILE", help="let this healthy one go wrong")
    parser.add_argument("--quick", action="store_true", help="seconds: a tiny model, 60 steps")
    options = parser.parse_args(given)
    if options.resume and options.fork:
        parser.error("--resume and --fork exclude each other")
    for start in filter(None, (options.resume, options.fork)):
        if not start.is_file():
            parser.error(f"there is no checkpoint {start}; --checkpoint writes one")
    for name in ("steps", "failure_step", "ramp_steps", "batch_size", "stop_at"):
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    return options


def main(given: Sequence[str] | None = None) -> int:
    """Train as asked."""
    options = arguments(given)
    asked = {
        name: value for name, value in vars(options).items() if name in Settings.__annotations__
    }
    asked = {name: value for name, value in asked.items() if value is not None}
    start = options.resume or options.fork
    if start is not None:
        fixed = sorted(asked.keys() - (FAILURE if options.fork else ()))
        if fixed:
            raise SystemExit(f"{start} decides {', '.join(fixed)}; leave these options out")
        training = Training.load(start, asked if options.fork else None)
    else:
        training = Training(Settings(**{**(QUICK if options.quick else {}), **asked}))
    stop_at = min(options.stop_at or training.settings.steps, training.settings.steps)
    train(training, options.output, stop_at, options.checkpoint, screen())
    print(f"{options.output}: {training.step} steps of {training.settings.mode}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
