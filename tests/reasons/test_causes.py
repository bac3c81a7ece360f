"""The table from causes to reasons is complete and says what its columns promise."""

from __future__ import annotations

import pytest

from drayman.allocator import Defect
from drayman.placement.fit import Cause
from drayman.reasons.causes import CAUSES, DEFECTS, DEVICE_TESTS, ON_ONE_NODE, FitTest
from drayman.reasons.reason import Outlook

REFUSING = [cause for cause in Cause if cause is not Cause.NOTHING]


@pytest.mark.parametrize("cause", REFUSING, ids=lambda cause: cause.name)
def test_each_cause_has_a_reason(cause: Cause) -> None:
    """Every refusal can be explained."""
    assert cause in CAUSES
    assert cause in ON_ONE_NODE


def test_tests_are_in_the_order_of_the_rules() -> None:
    """A rule that is asked later has no earlier test, and every test belongs to some rule."""
    tests = [row.test for cause, row in sorted(CAUSES.items()) if row.test is not None]
    assert list(dict.fromkeys(tests)) == list(FitTest)
    assert tests == sorted(tests, key=lambda test: test.order)


def test_what_is_short_now_is_not_said_to_be_short_for_ever() -> None:
    """The column for what others have names nothing that no hardware could do."""
    rows = (*CAUSES.values(), *DEVICE_TESTS.values())
    kinds = {row.now.kind for row in rows if row.now is not None}
    assert kinds == {Outlook.NOT_NOW, Outlook.NOT_HERE}


def test_each_defect_has_a_reason() -> None:
    """Every defect of a question can be explained."""
    assert set(DEFECTS) == set(Defect)
