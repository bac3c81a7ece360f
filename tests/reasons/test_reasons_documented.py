"""docs/reasons.md has every reason, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from drayman.reasons.reason import Reason

PAGE = Path(__file__).parents[2] / "docs" / "reasons.md"
SECTIONS = dict(
    re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
)


def test_the_page_has_the_reasons_there_are() -> None:
    """The list in the code and the headings of the page are the same."""
    assert sorted(SECTIONS) == sorted(reason.value for reason in Reason)


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.value)
def test_each_reason_is_described(reason: Reason) -> None:
    """A section says what the reason means and what to do, and quotes it with its kind."""
    text = SECTIONS[reason.value]
    assert re.search(r"^\*Means:\* \S.*\.$", text, re.MULTILINE)
    assert re.search(r"^\*What to do:\* \S.*\.$", text, re.MULTILINE)
    assert re.search(rf"^> {re.escape(reason.title)}: \S.*\.$", text, re.MULTILINE)


def test_reasons_stand_under_their_kind() -> None:
    """A reader who knows the kind finds the reason below its heading."""
    page = PAGE.read_text()
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        heading = part.splitlines()[0].lower()
        for word in re.findall(r"^### (\w+)$", part, re.MULTILINE):
            kind = Reason(word).kind
            assert heading == (kind.value if kind else "nothing to wait for")
