"""Which alerts are meant by a text of matchers."""

import re
from dataclasses import replace

import pytest

from tests.support.records import make_alert
from wtwin_watch.alerting.matching import (
    Matcher,
    Operator,
    all_hold,
    labels_of,
    parse,
    parse_labels,
)
from wtwin_watch.model import Family, Run, RunKey, Severity

LLM = Run(
    RunKey("wandb", "a1b2"), "llm-7b lr 3e-4", "myteam/llm", group="sweep-1", tags=("prod", "h100")
)


def means(text, *, run=LLM, **changes):
    return all_hold(parse(text), labels_of(make_alert(run=run, **changes), run))


def test_the_labels_of_an_alert_are_those_of_its_run_and_its_own():
    assert labels_of(make_alert(run=LLM), LLM) == {
        "source": ("wandb",),
        "project": ("myteam/llm",),
        "run": ("llm-7b lr 3e-4",),
        "group": ("sweep-1",),
        "tag": ("prod", "h100"),
        "family": ("loss",),
        "kind": ("drift",),
        "severity": ("warning",),
    }


def test_an_alert_about_a_source_names_no_run():
    source = Run(RunKey("wandb", ""), "wandb")

    assert means("source=wandb run= tag=", run=source)
    assert not means("run=wandb", run=source)
    assert not means("run=~.+", run=source)


def test_an_empty_text_means_every_alert():
    assert means("")
    assert means("  \n ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("project=myteam/llm", True),
        ("project=myteam", False),
        ("project!=myteam", True),
        ("project!=myteam/llm", False),
        ("run='llm-7b lr 3e-4'", True),
        ('run="llm-7b lr 3e-4" source=wandb', True),
        ("project=myteam/llm source=mlflow", False),
        ("run=~llm-.*", True),
        ("run=~llm", False),  # the whole name, not a part of it
        ("run=~.*7b.*", True),
        ("run=~'LLM-.*'", False),
        ("run!~llm", True),
        ("run!~llm-.*", False),
        ("kind=drift family=loss group=sweep-1", True),
        ("group=", False),
        ("severity=warning", True),
        ("severity!=warning", False),
        ("severity=~'warning|critical'", True),
    ],
)
def test_all_conditions_must_hold(text, expected):
    assert means(text) is expected


@pytest.mark.parametrize(
    ("text", "tags", "expected"),
    [
        ("tag=prod", ("prod", "h100"), True),
        ("tag=prod tag=h100", ("prod", "h100"), True),
        ("tag=dev", ("prod", "h100"), False),
        ("tag!=dev", ("prod", "h100"), True),
        ("tag!=h100", ("prod", "h100"), False),
        ("tag=~h.*", ("prod", "h100"), True),
        ("tag!~h.*", ("prod", "h100"), False),
        ("tag=", (), True),
        ("tag=", ("prod",), False),
        ("tag!=prod", (), True),
        ("tag=prod", (), False),
    ],
)
def test_one_of_the_tags_is_enough_and_none_may_be_what_is_excluded(text, tags, expected):
    assert means(text, run=replace(LLM, tags=tags)) is expected


@pytest.mark.parametrize(
    ("least", "meant"),
    [
        ("info", ["info", "warning", "critical"]),
        ("warning", ["warning", "critical"]),
        ("critical", ["critical"]),
    ],
)
def test_a_severity_can_be_compared(least, meant):
    found = [s.value for s in Severity if means(f"severity>={least}", severity=s)]

    assert sorted(found) == sorted(meant)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("critical", "'critical' is no condition; write label=value, such as severity=critical"),
        ("a b=c", "'a' is no condition"),
        ("=x", "'=x' is no condition"),
        ("severity>warning", "'severity>warning' is no condition"),
        ("projct=x", "'projct' is no label; there are source, project, run, group"),
        ("severity=bad", "'bad' is no severity; there are critical, warning, info"),
        ("severity>=bad", "'bad' is no severity"),
        ("severity!=", "'' is no severity"),
        ("family=los", "'los' is no family; there are loss, nonfinite, progress, state, source"),
        ("kind>=drift", "'kind>=drift': only a severity can be compared with >="),
        ("run=~(", "'(' is no regular expression: "),
        ("run=~a{99999999999999999999}", "is no regular expression: "),
        ("run='x", "has a quotation mark without its end: run='x"),
        ("run=" + "x" * 500, "should have at most 500 characters"),
    ],
)
def test_what_is_no_matcher_is_said(text, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        parse(text)


def test_a_matcher_is_written_as_it_is_read():
    text = "project=myteam/llm run=~'llm 7b.*' severity>=warning tag!=x"
    matchers = parse(text)

    assert matchers == (
        Matcher("project", Operator.IS, "myteam/llm"),
        Matcher("run", Operator.LIKE, "llm 7b.*"),
        Matcher("severity", Operator.AT_LEAST, "warning"),
        Matcher("tag", Operator.IS_NOT, "x"),
    )
    assert " ".join(map(str, matchers)) == text


def test_labels_that_are_not_given_are_empty():
    labels = parse_labels("project=x tag=a tag=b")

    assert all_hold(parse("project=x tag=b run= source= kind="), labels)
    assert not all_hold(parse("severity>=info"), labels)
    assert parse_labels("")["tag"] == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("project=~x", "project=~x is a condition; an alert's label is written label=value"),
        ("severity>=info", "severity>=info is a condition"),
        ("run=a run=b", "an alert has one run, not several"),
        ("runs=a", "'runs' is no label"),
    ],
)
def test_what_is_no_label_of_an_alert_is_said(text, told):
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        parse_labels(text)


def test_a_family_is_one_that_alerts_have():
    assert [f for f in Family if means(f"family={f.value}")] == [Family.LOSS]
