"""Text that shows what it is: spelt out for people, and in JSON and YAML the same document."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from drayman.printable import printable, printable_json, printable_yaml

TEXTS = st.text(
    st.one_of(
        st.characters(codec="utf-8"),
        st.sampled_from("a\n\t\x00\x1b\x7f\x85\x9b\xa0\xad\u061c\u200b\u200f\u2028\u202e\u2066\ufeff"),
    ),
    max_size=12,
)  # fmt: skip
DOCUMENTS = st.recursive(
    TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)


def can_be_seen(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


@given(TEXTS)
def test_for_people(text: str) -> None:
    """Nothing is left that cannot be seen, and what can be seen stays; text that is spelt out stays as it is."""
    shown = printable(text)
    assert can_be_seen(shown)
    assert printable(shown) == shown
    assert (shown == text) == can_be_seen(text)


@given(DOCUMENTS)
def test_in_json(document: Any) -> None:
    """A program reads the same."""
    for indent in (None, 2):
        text = printable_json(json.dumps(document, indent=indent, ensure_ascii=False))
        assert can_be_seen(text)
        assert json.loads(text) == document


@given(DOCUMENTS)
def test_in_yaml(document: Any) -> None:
    """A program reads the same."""
    text = printable_yaml(document)
    assert can_be_seen(text)
    assert yaml.safe_load(text) == document


@pytest.mark.parametrize("text", ["größe", "機械", "a b"])
def test_letters_stay(text: str) -> None:
    """Names in any language are read by people."""
    assert printable(text) == text
    assert printable_json(f'"{text}"') == f'"{text}"'
    assert text in printable_yaml([text])


def test_half_a_character() -> None:
    """What is not Unicode can be in JSON, and is not sent to a terminal."""
    assert printable_json('"\ud800"') == r'"\ud800"'
