"""The lines that trainers print, by the trainer: how a step and its numbers are found in each.

A reader of a line returns what it found, or None where the line is of another kind. Which of the numbers
matter is decided elsewhere; a step of None is that of the line before, or none is counted at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from wtwin_adapters.naming import ROW_NUMBER
from wtwin_adapters.numbers import UNREADABLE, Value, number
from wtwin_adapters.pairs import NUMBER, Pair, pairs, speaks_of_evaluation, step_among
from wtwin_watch.metrics import Names, choose_step

VAL_LOSS = "val_loss"


@dataclass(frozen=True, slots=True)
class Row:
    """What a line says."""

    step: Value
    values: list[tuple[str, Value]]
    step_name: str = "step"
    epoch: int | None = None
    """The line says only that this epoch begins, counted from 0."""
    total: float = 0.0
    """Steps of an epoch, where the step is counted within one that an earlier line told."""


Reader = Callable[[str, Names], Row | None]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A kind of line. ``mark`` is in every such line, which is looked for first since it is cheap."""

    name: str
    mark: re.Pattern[bytes]
    read: Reader
    counts_rows: bool = False
    """Its lines have no step; they are counted."""


def _number(text: str) -> Value:
    return number(text.replace(",", ""))


def _fields(text: str, between: str, behind: str) -> list[tuple[str, Value]]:
    """Split ``name: value | name: value``; a value ends where its number does."""
    found: list[tuple[str, Value]] = []
    for field in text.split(between):
        name, separator, value = field.strip().partition(behind)
        words = value.split(None, 1)
        if separator and words:
            found.append((name.strip(), _number(words[0])))
    return found


_ITERATION = re.compile(r"\biteration\s+(\d+)\s*/\s*\d+\s*\|")
_MEGATRON_VALID = re.compile(
    rf"\bvalid(?:ation)? loss at iteration (\d+) .*?\bloss value: ({NUMBER})", re.I
)


def _megatron(text: str, names: Names) -> Row | None:
    found = _ITERATION.search(text)
    if found:
        return Row(float(found[1]), _fields(text, "|", ":"), "iteration")
    found = _MEGATRON_VALID.search(text)
    if found:
        return Row(float(found[1]), [("validation loss", _number(found[2]))], "iteration")
    return None


_MODDED = re.compile(r"\bstep:(\d+)/\d+\s+((?:train|val)_loss:.*)")


def _modded(text: str, names: Names) -> Row | None:
    found = _MODDED.search(text)
    if not found:
        return None
    return Row(float(found[1]), _fields(found[2], " ", ":"))


_NANOGPT = re.compile(rf"\biter (\d+): loss ({NUMBER})(?![\w.])(.*)", re.I)
_NANOGPT_EVAL = re.compile(rf"\bstep (\d+): train loss {NUMBER}, val loss ({NUMBER})", re.I)


def _nanogpt(text: str, names: Names) -> Row | None:
    found = _NANOGPT.search(text)
    if found:
        rest = [(name, value) for name, value in _values(found[3], names) if name != "loss"]
        return Row(float(found[1]), [("loss", _number(found[2])), *rest], "iter")
    # The train loss of an evaluation is another mean than that of the iterations.
    found = _NANOGPT_EVAL.search(text)
    if found:
        return Row(float(found[1]), [("val loss", _number(found[2]))], "iter")
    return None


_LLMC = re.compile(rf"\bstep\s+(\d+)(?:/\d+)?\s*[|:]\s*(?:(train) )?loss\s+({NUMBER})(.*)", re.I)
_LLMC_PART = re.compile(rf"\b(norm|lr)\s+({NUMBER})", re.I)
_LLMC_VAL = re.compile(rf"^\s*val loss ({NUMBER})\s*$", re.I)
_LLMC_MAIN = re.compile(rf"^s:(\d+) (trl|tel):({NUMBER})(.*)", re.I)
_LLMC_MAIN_PART = re.compile(rf"\b(lr|norm):({NUMBER})", re.I)
_LLMC_NAMES = {"norm": "grad_norm", "lr": "lr"}


def _llmc(text: str, names: Names) -> Row | None:
    found = _LLMC.search(text)
    if found:
        parts = [
            (_LLMC_NAMES[part[1].lower()], _number(part[2]))
            for part in _LLMC_PART.finditer(found[4])
        ]
        loss = "train loss" if found[2] else "loss"
        return Row(float(found[1]), [(loss, _number(found[3])), *parts])
    found = _LLMC_MAIN.search(text)
    if found:
        parts = [
            (_LLMC_NAMES[part[1].lower()], _number(part[2]))
            for part in _LLMC_MAIN_PART.finditer(found[4])
        ]
        loss = "train_loss" if found[2] == "trl" else VAL_LOSS
        return Row(float(found[1]), [(loss, _number(found[3])), *parts])
    found = _LLMC_VAL.search(text)
    return Row(None, [("val loss", _number(found[1]))]) if found else None


_FAIRSEQ = re.compile(r"\bepoch (\d+)(?::\s+(\d+) / (\d+))?(?= |\|)(.*)")
_FAIRSEQ_PART = re.compile(rf"\b(\w+)[= ]({NUMBER})(?![\w.])", re.I)
_QUOTED = re.compile(rf"""["']([^"']{{1,100}})["']\s*:\s*["']?({NUMBER})["']?\s*[,}}]""", re.I)


def _fairseq(text: str, names: Names) -> Row | None:
    if "| train_inner | {" in text:
        found: dict[str, Value] = {key: _number(value) for key, value in _QUOTED.findall(text)}
    elif line := _FAIRSEQ.search(text):
        found = {key: _number(value) for key, value in _FAIRSEQ_PART.findall(line[4])}
        if line[2] and "num_updates" not in found:
            found["num_updates"] = (float(line[1]) - 1) * float(line[3]) + float(line[2])
        if "valid on" in text:
            found = {VAL_LOSS: found.get("loss"), "num_updates": found.get("num_updates")}
        elif not line[2] and "|" in line[4]:
            # The mean of an epoch repeats what its updates said.
            return None
    else:
        return None
    step = found.pop("num_updates", None)
    values = [("grad_norm" if name == "gnorm" else name, value) for name, value in found.items()]
    return Row(step, values, "num_updates") if step is not None else None


_MLPERF = re.compile(r':::MLLOG .*?"key": "(train_loss|loss|eval_loss)", "value": ([^,]+),')
_MLPERF_STEP = re.compile(r'"(samples_count|step_num|step|iteration|epoch_num)": (\d+)')


def _mlperf(text: str, names: Names) -> Row | None:
    found = _MLPERF.search(text)
    step = _MLPERF_STEP.search(text, found.end()) if found else None
    if not found or not step:
        return None
    return Row(float(step[2]), [(found[1], _number(found[2]))], step[1])


# The Trainer's last row says so, and its train_loss is the mean of the whole run.
_SUMMARY = "train_runtime"
_DICT = re.compile(r"\{.*?['\"]\w*loss['\"]\s*:", re.I)


def _dict(text: str, names: Names) -> Row | None:
    start = _DICT.search(text)
    if not start:
        return None
    found = {key: _number(value) for key, value in _QUOTED.findall(text[start.start() :])}
    if _SUMMARY in found:
        return None
    step = choose_step([name for name in found if name != "epoch"], names)
    if step is None:
        return Row(None, list(found.items()), ROW_NUMBER)
    return Row(found.pop(step), list(found.items()), step)


# 12%|#2   | 12/100 [00:01<00:08, 10.3it/s, loss=2.31]  and  12/100 [==>.....] - ETA: 3s - loss: 2.31
_BAR = re.compile(r"(?<![\w.])(\d+)/(\d+)\s*(?:\[|[━─╸])")
_EPOCH_BEGINS = re.compile(r"\s*epoch (\d+)/\d+\s*", re.I)
_BAR_EPOCH = re.compile(r"\bepoch:?\s+\[?(\d+)(?:/(\d+))?", re.I)


def _bar(text: str, names: Names) -> Row | None:
    begins = _EPOCH_BEGINS.fullmatch(text)
    if begins:
        return Row(None, [], epoch=int(begins[1]) - 1)
    bar = _BAR.search(text)
    if not bar or "loss" not in text[bar.end() :].lower():
        return None
    values = _values(text[bar.end() :], names)
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
_WITHIN = re.compile(r"\b(?:epoch|train)\b[^\[\d]{0,10}\[?(\d+)\]?\s*\[\s*(\d+)\s*/\s*(\d+)", re.I)


def _pairs(text: str, names: Names) -> Row | None:
    if _SUMMARY in text:
        return None
    found = pairs(text, names)
    step = step_among(tuple(pair.name for pair in found), names)
    values = _values_of(found, text, names)
    within = _WITHIN.search(text) if step is None or step.lower() == "epoch" else None
    if within and names.step is None:
        at = float(within[1]) * float(within[3]) + float(within[2])
        return Row(at, [(name, value) for name, value in values if name != step], "batch")
    if step is None:
        return Row(None, values) if values else None
    counter = next(pair for pair in found if pair.name == step)
    value = counter.number
    if counter.total is not None and isinstance(value, float):
        # A counter with its total beside an epoch starts anew in each.
        epoch = next((p for p in found if p.name.lower() == "epoch" != step.lower()), None)
        if epoch is not None and epoch.value.isdigit():
            first = 1 if epoch.total else 0
            value += (float(epoch.value) - first) * float(counter.total)
    return Row(value, [(name, v) for name, v in values if name != step], step)


def _values(text: str, names: Names) -> list[tuple[str, Value]]:
    return _values_of(pairs(text, names), text, names)


def _values_of(found: list[Pair], text: str, names: Names) -> list[tuple[str, Value]]:
    values: dict[str, Value] = {}
    for pair in found:
        name = pair.name
        plain = name.lower() == "loss" and names.loss != name
        if plain and speaks_of_evaluation(text[: pair.at]):
            name = VAL_LOSS
        value = pair.number
        if value is not UNREADABLE:
            values.setdefault(name, value)
    return list(values.items())


PATTERNS = (
    Pattern("Megatron-LM", re.compile(rb"iteration"), _megatron),
    Pattern("modded-nanogpt", re.compile(rb"step:\d"), _modded),
    Pattern("nanoGPT", re.compile(rb"iter \d+: loss|, val loss"), _nanogpt),
    Pattern(
        "llm.c", re.compile(rb"step +\d+(?:/\d+)? *[|:] *(?:train )?loss |val loss|^s:\d"), _llmc
    ),
    Pattern("fairseq", re.compile(rb"epoch \d|train_inner"), _fairseq),
    Pattern("MLPerf", re.compile(rb":::MLLOG.*loss"), _mlperf),
    Pattern("Hugging Face", re.compile(rb"\{.*loss"), _dict, counts_rows=True),
    Pattern("progress bar", re.compile(rb"(?i)\d/\d.*loss|^\s*epoch \d+/\d+\s*$"), _bar),
    Pattern("key=value", re.compile(rb"(?i)loss"), _pairs),
)
"""In the order in which they are believed."""
