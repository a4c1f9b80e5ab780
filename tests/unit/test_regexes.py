"""Regular expressions in routes and silences can't make the daemon hang."""

import re

import pytest

from wtwin_watch.alerting.matching import parse

FOR_EVER = [
    "(a+)+$",
    "(a*)*b",
    "(?:a|aa)+b",
    "(aa?)*b",
    "(?P<x>[a-z]+-?)*",
    "(a+){20}b",
    "(a?){50}a{50}",
    "a?" * 40 + "b",
    "(a|a)" * 40,
    ".*" * 8 + "b",
    "(?>(a+)+b)",
    "((ab)*c)*",
    "(a{1,}){2,}",
]
FINE = [
    "",
    "sweep-.*",
    ".*-lr[0-9.]+-seed\\d+",
    "(llm|vision|speech)-.*",
    "|".join(f"run-{i}" for i in range(50)),
    "(?i)debug.*",
    "(?:ab)*",
    "(\\d{4}-)*x",
    "[(a+)+]*",
    "\\(a+\\)+",
    "a++b*+",
    "(llm-.*)?",
    "x{3}",
    "{a}*",
]


@pytest.mark.parametrize("regex", FOR_EVER)
def test_what_may_search_for_hours_is_refused_with_the_cure(regex):
    re.compile(regex)

    with pytest.raises(ValueError, match="may take hours to match a long name; repeat single"):
        parse(f"run=~'{regex}'")


@pytest.mark.parametrize("regex", FINE)
def test_what_people_write_is_taken(regex):
    (matcher,) = parse(f"run=~'{regex}'")

    assert matcher.value == regex
