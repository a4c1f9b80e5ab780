"""The training that the demo watches: a small classifier, real mini-batches, and labels that rot.

Arithmetic alone, no clock and no files; `wtwin_watch.demo.training` runs it as a process.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STEPS = 1200
ROT_BEGINS = STEPS // 2
"""The last step with clean labels."""

_ROT_STEPS = 200
_ROT_SHARE = 0.75

_CLASSES = 6
_FEATURES = 8
_HIDDEN = 16
_EXAMPLES = 8192
_BATCH = 256
_DISTANCE = 4.0
_RATE = 0.02


def rotten_share(step: int) -> float:
    """Which share of the labels of batch ``step`` is wrong: 0 to half-way, then rising to 0.75."""
    return _ROT_SHARE * min(1.0, max(0, step - ROT_BEGINS) / _ROT_STEPS)


class Classifier:
    """Two layers, trained by gradient descent to tell the six parts of a Gaussian mixture apart.

    The parts lie 4 standard deviations from one another, so the loss falls from about ln 6 = 1.79
    towards what their overlap leaves, about 0.2; three labels in four wrong bring it back to 1.7.
    Everything random comes from ``seed``; the wrong labels have a stream of their own, so a rotting
    and a healthy training with one seed see the same batches. A step costs about 0.2 ms.
    """

    def __init__(self, seed: int) -> None:
        self._random, self._rot = np.random.default_rng(seed).spawn(2)
        axes = np.linalg.qr(self._random.normal(size=(_FEATURES, _FEATURES)))[0]
        # Orthogonal centres at distance r from the origin lie r * sqrt(2) apart.
        centres = axes[:_CLASSES] * (_DISTANCE / np.sqrt(2))
        self._labels = self._random.integers(_CLASSES, size=_EXAMPLES)
        noise = self._random.normal(size=(_EXAMPLES, _FEATURES))
        # The column of ones carries the bias of the first layer.
        inputs = np.column_stack([centres[self._labels] + noise, np.ones(_EXAMPLES)])
        self._inputs = inputs.astype(np.float32)
        self._first = self._layer(_FEATURES + 1, _HIDDEN, np.sqrt(2 / _FEATURES))
        self._second = self._layer(_HIDDEN, _CLASSES, 0.3 / np.sqrt(_HIDDEN))
        self._left = _EXAMPLES

    def step(self, rotten: float = 0.0) -> float:
        """Train on the next mini-batch, a share ``rotten`` of it with wrong labels; return its mean loss."""
        inputs, labels = self._batch(rotten)
        hidden = np.maximum(inputs @ self._first, 0)
        scores = hidden @ self._second
        scores -= scores.max(axis=1, keepdims=True)
        odds = np.exp(scores)
        total = odds.sum(axis=1, keepdims=True)
        chosen = np.arange(_BATCH), labels
        loss = float((np.log(total[:, 0]) - scores[chosen]).mean())

        # The gradient of the cross-entropy by a score: its share, less 1 at the label.
        by_scores = odds / total
        by_scores[chosen] -= 1
        by_scores *= _RATE / _BATCH
        by_hidden = by_scores @ self._second.T
        by_hidden *= hidden > 0
        self._second -= hidden.T @ by_scores
        self._first -= inputs.T @ by_hidden
        return loss

    def _batch(self, rotten: float) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        if self._left < _BATCH:
            order = self._random.permutation(_EXAMPLES)
            self._inputs, self._labels = self._inputs[order], self._labels[order]
            self._left = _EXAMPLES
        rows = slice(self._left - _BATCH, self._left)
        self._left -= _BATCH
        labels = self._labels[rows].copy()
        spoiled = round(rotten * _BATCH)
        # Moved on by 1 to 5 places among six, a label is never right by chance.
        labels[:spoiled] += self._rot.integers(1, _CLASSES, size=spoiled)
        labels[:spoiled] %= _CLASSES
        return self._inputs[rows], labels

    def _layer(self, inputs: int, outputs: int, scale: float) -> NDArray[np.float32]:
        return self._random.normal(0, scale, (inputs, outputs)).astype(np.float32)
