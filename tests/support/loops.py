"""A model so small that its training takes a second, for the frameworks whose callbacks are tested."""

from __future__ import annotations

import torch
from torch import nn

INPUTS = 8
BATCH = 32


def examples(count: int, seed: int = 1) -> list[dict[str, torch.Tensor]]:
    """A line with noise to be learned: inputs ``x`` and ``labels``."""
    chance = torch.Generator().manual_seed(seed)
    x = torch.randn(count, INPUTS, generator=chance)
    y = x.sum(1) + 0.5 * torch.randn(count, generator=chance)
    return [{"x": x[i], "labels": y[i]} for i in range(count)]


class Line(nn.Module):
    """Learns a line; labels are wrong from call ``rots_from`` on, the loss NaN from ``nan_from`` on."""

    def __init__(self, rots_from: int | None = None, nan_from: int | None = None) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.weights = nn.Linear(INPUTS, 1)
        self.rots_from = rots_from
        self.nan_from = nan_from
        self.calls = 0

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        if self.training:
            self.calls += 1
        if self.rots_from is not None and self.calls >= self.rots_from:
            labels = labels.roll(1)
        found = self.weights(x).squeeze(-1)
        loss = nn.functional.mse_loss(found, labels)
        if self.nan_from is not None and self.calls >= self.nan_from:
            loss = loss * torch.nan
        return {"loss": loss, "logits": found}
