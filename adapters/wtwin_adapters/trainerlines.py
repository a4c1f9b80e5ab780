"""The lines of trainers that have a form of their own: how the step and its numbers are found in each.

A reader of a line returns what it found, or None where the line is of another kind. Which of the numbers
matter is decided elsewhere; a step of None is that of the line before.
"""

from __future__ import annotations

import re

from wtwin_adapters.naming import VAL_LOSS
from wtwin_adapters.numbers import Value
from wtwin_adapters.pairs import NUMBER
from wtwin_adapters.textline import QUOTED, Row, as_number, fields_of, values_in
from wtwin_watch.metrics import Names

_ITERATION = re.compile(r"\biteration\s+(\d+)\s*/\s*\d+\s*\|")
_MEGATRON_VALID = re.compile(
    rf"\bvalid(?:ation)? loss at iteration (\d+) .*?\bloss value: ({NUMBER})", re.I
)


def megatron(text: str, names: Names) -> Row | None:
    """Read a line of Megatron-LM, and its descendants Megatron-DeepSpeed, GPT-NeoX and NeMo."""
    found = _ITERATION.search(text)
    if found:
        values = fields_of(text, "|", ":")
        # NeMo counts iterations from the beginning of each epoch.
        whole = next((value for name, value in values if name == "global_step"), None)
        if whole is not None:
            return Row(whole, values, "global_step")
        return Row(float(found[1]), values, "iteration")
    found = _MEGATRON_VALID.search(text)
    if found:
        return Row(float(found[1]), [("validation loss", as_number(found[2]))], "iteration")
    return None


_MODDED = re.compile(r"\bstep:(\d+)/\d+\s+((?:train|val)_loss:.*)")


def modded(text: str, names: Names) -> Row | None:
    """Read a line of modded-nanogpt."""
    found = _MODDED.search(text)
    if not found:
        return None
    return Row(float(found[1]), fields_of(found[2], " ", ":"))


_NANOGPT = re.compile(rf"\biter (\d+): loss ({NUMBER})(?![\w.])(.*)", re.I)
_NANOGPT_EVAL = re.compile(rf"\bstep (\d+): train loss {NUMBER}, val loss ({NUMBER})", re.I)


def nanogpt(text: str, names: Names) -> Row | None:
    """Read a line of nanoGPT."""
    found = _NANOGPT.search(text)
    if found:
        rest = [(name, value) for name, value in values_in(found[3], names) if name != "loss"]
        return Row(float(found[1]), [("loss", as_number(found[2])), *rest], "iter")
    # The train loss of an evaluation is another mean than that of the iterations.
    found = _NANOGPT_EVAL.search(text)
    if found:
        return Row(float(found[1]), [("val loss", as_number(found[2]))], "iter")
    return None


_LLMC = re.compile(rf"\bstep\s+(\d+)(?:/\d+)?\s*[|:]\s*(?:(train) )?loss\s+({NUMBER})(.*)", re.I)
_LLMC_PART = re.compile(rf"\b(norm|lr)\s+({NUMBER})", re.I)
_LLMC_VAL = re.compile(rf"^\s*val loss ({NUMBER})\s*$", re.I)
_LLMC_MAIN = re.compile(rf"^s:(\d+) (trl|tel):({NUMBER})(.*)", re.I)
_LLMC_MAIN_PART = re.compile(rf"\b(lr|norm):({NUMBER})", re.I)
_LLMC_NAMES = {"norm": "grad_norm", "lr": "lr"}


def llmc(text: str, names: Names) -> Row | None:
    """Read a line of llm.c, printed or of its ``main.log``."""
    found = _LLMC.search(text)
    if found:
        parts = [
            (_LLMC_NAMES[part[1].lower()], as_number(part[2]))
            for part in _LLMC_PART.finditer(found[4])
        ]
        loss = "train loss" if found[2] else "loss"
        return Row(float(found[1]), [(loss, as_number(found[3])), *parts])
    found = _LLMC_MAIN.search(text)
    if found:
        parts = [
            (_LLMC_NAMES[part[1].lower()], as_number(part[2]))
            for part in _LLMC_MAIN_PART.finditer(found[4])
        ]
        loss = "train_loss" if found[2] == "trl" else VAL_LOSS
        return Row(float(found[1]), [(loss, as_number(found[3])), *parts])
    found = _LLMC_VAL.search(text)
    return Row(None, [("val loss", as_number(found[1]))]) if found else None


_FAIRSEQ = re.compile(r"\bepoch (\d+)(?::\s+(\d+) / (\d+))?(?= |\|)(.*)")
_FAIRSEQ_PART = re.compile(rf"\b(\w+)[= ]({NUMBER})(?![\w.])", re.I)
_FAIRSEQ_JSON = re.compile(r"(?:\| train_inner \| |\[train_inner\]\[INFO\] - )\{")


def fairseq(text: str, names: Names) -> Row | None:
    """Read a line of fairseq, as text or JSON."""
    if _FAIRSEQ_JSON.search(text):
        found: dict[str, Value] = {key: as_number(value) for key, value in QUOTED.findall(text)}
    elif line := _FAIRSEQ.search(text):
        found = {key: as_number(value) for key, value in _FAIRSEQ_PART.findall(line[4])}
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


def mlperf(text: str, names: Names) -> Row | None:
    """Read a line of MLPerf's result log."""
    found = _MLPERF.search(text)
    step = _MLPERF_STEP.search(text, found.end()) if found else None
    if not found or not step:
        return None
    return Row(float(step[2]), [(found[1], as_number(found[2]))], step[1])


_ESPNET = re.compile(r"\b(\d+)epoch:train:\d+-(\d+)batch:(.*)")


def espnet(text: str, names: Names) -> Row | None:
    """Read a line of ESPnet, which counts batches within an epoch."""
    found = _ESPNET.search(text)
    if not found:
        return None
    return Row(float(found[2]), values_in(found[3], names), "batch", within=float(found[1]))


_MARIAN = re.compile(
    rf"\bUp\. (\d+) : Sen\. [\d,]+ : Cost ({NUMBER})(?:.*? : gNorm ({NUMBER}))?(?:.*? : L\.r\. ({NUMBER}))?",
    re.I,
)


def marian(text: str, names: Names) -> Row | None:
    """Read a line of Marian, whose cost is the cross entropy."""
    found = _MARIAN.search(text)
    if not found:
        return None
    told = (("loss", found[2]), ("grad_norm", found[3]), ("lr", found[4]))
    return Row(float(found[1]), [(n, as_number(v)) for n, v in told if v is not None], "Up.")


_OPENNMT = re.compile(rf"\bStep (\d+)/ ?\d+;.*?\bxent: ({NUMBER}); lr: ({NUMBER});", re.I)


def opennmt(text: str, names: Names) -> Row | None:
    """Read a line of OpenNMT-py."""
    found = _OPENNMT.search(text)
    if not found:
        return None
    return Row(
        float(found[1]), [("loss", as_number(found[2])), ("lr", as_number(found[3]))], "Step"
    )


_DARKNET = re.compile(rf"^\s*(\d+): ({NUMBER}), ({NUMBER}) avg(?: loss)?, ({NUMBER}) rate, ", re.I)


def darknet(text: str, names: Names) -> Row | None:
    """Read a line of darknet, which trains YOLO."""
    found = _DARKNET.search(text)
    if not found:
        return None
    return Row(
        float(found[1]), [("loss", as_number(found[2])), ("lr", as_number(found[4]))], "batch"
    )


_CLU = re.compile(r"\w*writer(?:\.py:\d+)?\] \[(\d+)\] (.*)")


def clu(text: str, names: Names) -> Row | None:
    """Read a line of the metric writer of JAX's CLU, which T5X and others use."""
    found = _CLU.search(text)
    return Row(float(found[1]), values_in(found[2], names)) if found else None
