"""The examples in the docstrings of the monitors."""

import doctest

import pytest

from wtwin_watch.monitor import rules, wtwin


@pytest.mark.parametrize("module", [rules, wtwin])
def test_the_examples_of_the_docstrings_hold(module):
    done = doctest.testmod(module)
    assert done.attempted > 0
    assert done.failed == 0
