"""The page about quota names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
PAGE = TESTS.parent / "docs" / "quota.md"
NAMED = re.compile(r"`(?P<file>test_\w+\.py)?::(?P<test>test_\w+)`")


def test_every_limitation_has_a_test() -> None:
    """Each test named beside one is in the file that is named with it, or before it."""
    missing, file = [], ""
    for named in NAMED.finditer(PAGE.read_text()):
        file = named["file"] or file
        sources = [each.read_text() for each in TESTS.rglob(file)]
        if not any(f"def {named['test']}(" in source for source in sources):
            missing.append(named[0])
    assert file
    assert missing == []
