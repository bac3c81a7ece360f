"""Sentences as parts of others."""

from __future__ import annotations

import pytest

from drayman.reasons.wording import continued


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("Rack r1 holds 3 of 4.", "rack r1 holds 3 of 4."),
        ("NVLink domain a holds 3 of 4.", "NVLink domain a holds 3 of 4."),
        ("A node is missing.", "a node is missing."),
        ("4 nodes are missing.", "4 nodes are missing."),
        ("", ""),
    ],
)
def test_a_sentence_within_another_begins_in_lower_case_but_for_abbreviations(
    sentence: str, wanted: str
) -> None:
    """Names of levels such as NVLink keep their capitals."""
    assert continued(sentence) == wanted
