"""The kinds of lines that text logs have, by which a log is recognised and read.

A reader of a line returns what it found, or None where the line is of another kind. Which of the numbers
matter is decided elsewhere; a step of None is that of the line before, or none is counted at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from wtwin_adapters.naming import ROW_NUMBER
from wtwin_adapters.numbers import Value
from wtwin_adapters.pairs import NUMBER, pairs, step_among
from wtwin_adapters.textline import QUOTED, Row, as_number, chosen, values_in
from wtwin_adapters.trainerlines import (
    clu,
    darknet,
    espnet,
    fairseq,
    llmc,
    marian,
    megatron,
    mlperf,
    modded,
    nanogpt,
    opennmt,
)
from wtwin_watch.metrics import Names, choose_step

Reader = Callable[[str, Names], Row | None]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A kind of line. ``mark`` is in every such line, which is looked for first since it is cheap."""

    name: str
    mark: re.Pattern[bytes]
    read: Reader
    counts_rows: bool = False
    """Its lines have no step; they are counted."""
    step_before: bool = False
    """A line has either a step, or a value that belongs to the step before it."""


# The Trainer's last row says so, and its train_loss is the mean of the whole run.
_SUMMARY = "train_runtime"
_DICT = re.compile(r"\{.*?['\"]\w*loss['\"]\s*:", re.I)


def _dict(text: str, names: Names) -> Row | None:
    start = _DICT.search(text)
    if not start:
        return None
    found = {key: as_number(value) for key, value in QUOTED.findall(text[start.start() :])}
    if _SUMMARY in found:
        return None
    step = choose_step([name for name in found if name != "epoch"], names)
    if step is None:
        return Row(None, list(found.items()), ROW_NUMBER)
    return Row(found.pop(step), list(found.items()), step)


# 12%|#2   | 12/100 [00:01<00:08, 10.3it/s, loss=2.31]  and  12/100 [==>.....] - ETA: 3s - loss: 2.31,
# and 100/100 - 2s - loss: 2.31, which is all that Keras shows where it isn't to draw bars.
_BAR = re.compile(r"(?<![\w.])(\d+)/(\d+)\s*(?:\[|[━─╸]|- \d+m?s[ /])")
_EPOCH_BEGINS = re.compile(r"\s*epoch (\d+)/\d+\s*", re.I)
_BAR_EPOCH = re.compile(r"\bepoch:?\s+\[?(\d+)(?:/(\d+))?", re.I)


def _bar(text: str, names: Names) -> Row | None:
    begins = _EPOCH_BEGINS.fullmatch(text)
    if begins:
        return Row(None, [], epoch=int(begins[1]) - 1)
    bar = _BAR.search(text)
    if not bar or "loss" not in text[bar.end() :].lower():
        return None
    values = values_in(text[bar.end() :], names)
    if not values:
        return None
    done, total = float(bar[1]), float(bar[2])
    epoch = _BAR_EPOCH.search(text, 0, bar.start())
    given = choose_step([name for name, _ in values if name.lower() != "epoch"], names)
    if given is not None:
        found = dict(values)
        return Row(found.pop(given), list(found.items()), given)
    if epoch:
        first = 1 if epoch[2] else 0
        return Row(done + (float(epoch[1]) - first) * total, values, "progress bar")
    return Row(done, values, "progress bar", total=total)


# Epoch [1][50/1000] of mmdetection, Epoch: [0][10/5005] and Train Epoch: 1 [640/60000 of examples, and
# Train: 0 [50/1251 of timm: some count epochs from 0, so that all are counted as if they did.
_WITHIN = re.compile(
    r"\b(?:epoch|train)\b[^\[\d]{0,10}\[?(\d+)(?:/\d+)?\]?\s*[\[|]\s*(\d+)\s*/\s*(\d+)", re.I
)
_ITER = re.compile(r"\biter\(train\)\s*\[\s*(\d+)\s*/", re.I)


def _pairs(text: str, names: Names) -> Row | None:
    if _SUMMARY in text:
        return None
    found = pairs(text, names)
    step = step_among(tuple(pair.name for pair in found), names)
    values = chosen(found, text, names)
    batch = _WITHIN.search(text) if step is None or step.lower() == "epoch" else None
    if batch and names.step is None:
        at = float(batch[1]) * float(batch[3]) + float(batch[2])
        return Row(at, [(name, value) for name, value in values if name != step], "batch")
    if step is None:
        iteration = _ITER.search(text)
        if iteration:
            return Row(float(iteration[1]), values, "iter")
        return Row(None, values) if values else None
    counter = next(pair for pair in found if pair.name == step)
    value: Value = counter.number
    within = None
    epoch = next((p for p in found if p.name.lower() == "epoch" != step.lower()), None)
    if epoch is not None and epoch.value.isdigit():
        if counter.total is None:
            within = float(epoch.value)
        elif isinstance(value, float):
            # A counter with its total beside an epoch starts anew in each.
            first = 1 if epoch.total else 0
            value += (float(epoch.value) - first) * float(counter.total)
    return Row(value, [(name, v) for name, v in values if name != step], step, within=within)


_STEP_LINE = re.compile(r"\[(step|batch)=(\d+)(?:/\d+)?\]:?\s*$")
_VALUE_LINE = re.compile(rf"^\s+(?:Train )?([\w./-]+)\s*[=:]\s*({NUMBER})\s*$", re.I)


def _blocks(text: str, names: Names) -> Row | None:
    found = _STEP_LINE.search(text)
    if found:
        return Row(float(found[2]), [], found[1])
    found = _VALUE_LINE.search(text)
    return Row(None, [(found[1], as_number(found[2]))]) if found else None


PATTERNS = (
    Pattern("Megatron-LM", re.compile(rb"iteration"), megatron),
    Pattern("modded-nanogpt", re.compile(rb"step:\d"), modded),
    Pattern("nanoGPT", re.compile(rb"iter \d+: loss|, val loss"), nanogpt),
    Pattern(
        "llm.c", re.compile(rb"step +\d+(?:/\d+)? *[|:] *(?:train )?loss |val loss|^s:\d"), llmc
    ),
    Pattern("fairseq", re.compile(rb"epoch \d|train_inner"), fairseq),
    Pattern("MLPerf", re.compile(rb":::MLLOG.*loss"), mlperf),
    Pattern("ESPnet", re.compile(rb"epoch:train:.*loss"), espnet),
    Pattern("CLU", re.compile(rb"writer.*\] \[\d+\] .*loss"), clu),
    Pattern("Marian", re.compile(rb": Cost "), marian),
    Pattern("OpenNMT", re.compile(rb"xent: "), opennmt),
    Pattern("darknet", re.compile(rb" avg.* rate, "), darknet),
    Pattern(
        "steps with blocks",
        re.compile(rb"\[(?:step|batch)=\d|(?i:loss|grad_norm|learning_rate)|\blr\b"),
        _blocks,
        step_before=True,
    ),
    Pattern("Hugging Face", re.compile(rb"\{.*loss"), _dict, counts_rows=True),
    Pattern("progress bar", re.compile(rb"(?i)\d/\d.*loss|^\s*epoch \d+/\d+\s*$"), _bar),
    Pattern("key=value", re.compile(rb"(?i)loss"), _pairs),
)
"""In the order in which they are believed."""
