"""All ways of reading come to the same values and stop at the same depth."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.errors import ApiError, DocumentError, UnrecognizedError
from drayman.api.syntax.json_text import parse, parse_stream, parse_tree, parse_unique
from drayman.api.syntax.values import MAX_DEPTH, depth_exceeds, plain
from drayman.api.syntax.yaml_text import parse_yaml, parse_yaml_tree

Reader = Callable[[str], Any]


def first_document(text: str) -> Any:
    return next(parse_yaml("file", text)).value


JSON_READERS: dict[str, Reader] = {
    "a file": lambda text: parse(text.encode()),
    "a stream": lambda text: next(parse_stream(text))[1],
    "a body": lambda text: plain(parse_tree(text.encode())),
}
YAML_READERS: dict[str, Reader] = {
    "a YAML file": first_document,
    "a YAML body": lambda text: plain(parse_yaml_tree(text.encode()).tree),
}

TEXTS = st.text(alphabet=st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
def test_json_is_read_as_what_it_says(value: Any) -> None:
    """By every reader of JSON, escaped or not, with spaces or without."""
    for is_ascii in (True, False):
        for separators in ((",", ":"), (", ", ": ")):
            text = json.dumps(value, ensure_ascii=is_ascii, separators=separators)
            for read in JSON_READERS.values():
                assert read(text) == value
            if "\\u" not in text:
                assert parse_unique(text.encode()) == value


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3))
def test_yaml_is_read_alike_in_files_and_in_bodies(value: dict[str, Any]) -> None:
    """The two manners differ in what they refuse, not in what things mean."""
    text = yaml.safe_dump(value, allow_unicode=True)
    try:
        found = first_document(text)
    except DocumentError:
        return  # a key that is not a text to Kubernetes, though to the library that wrote it
    assert plain(parse_yaml_tree(text.encode()).tree) == found


@pytest.mark.parametrize(
    "read",
    [*JSON_READERS.values(), *YAML_READERS.values()],
    ids=[*JSON_READERS, *YAML_READERS],
)
def test_one_depth_for_all(read: Reader) -> None:
    """What is as deep as allowed is read, and what is one level deeper is refused, by every reader."""
    for opening, closing in (("[", "]"), ('{"a": ', "}")):
        assert depth_exceeds(read(opening * MAX_DEPTH + "1" + closing * MAX_DEPTH), MAX_DEPTH - 1)
        with pytest.raises(ApiError, match=r"nested more than|exceeded max depth"):
            read(opening * (MAX_DEPTH + 1) + "1" + closing * (MAX_DEPTH + 1))


@pytest.mark.parametrize("read", YAML_READERS.values(), ids=YAML_READERS)
def test_aliases_do_not_get_below_the_depth(read: Reader) -> None:
    """What an alias stands for counts with all its levels."""
    half = MAX_DEPTH // 2

    def text(above: int) -> str:
        return f"a: &a {'[' * half}1{']' * half}\nb: {'[' * above}*a{']' * above}\n"

    assert depth_exceeds(read(text(MAX_DEPTH - half - 1)), MAX_DEPTH - 1)
    with pytest.raises(ApiError, match=r"nested more than|exceeded max depth"):
        read(text(MAX_DEPTH - half))


KEYS: dict[str, tuple[str, str]] = {
    "a number": ("5: x\n", "5"),
    "a number in another notation": ("0x10: x\n", "16"),
    "a boolean": ("on: x\n", "true"),
    "an alias": ("a: &x b\n*x : x\n", "b"),
}


@pytest.mark.parametrize(("text", "key"), KEYS.values(), ids=KEYS)
def test_keys_that_are_not_texts(text: str, key: str) -> None:
    """They are refused in files, and become texts in bodies."""
    with pytest.raises(DocumentError):
        first_document(text)
    tree = parse_yaml_tree(text.encode()).tree
    assert tree[key] == "x"
    assert all(type(name) is str for name in tree)


def test_null_is_no_key() -> None:
    """JSON has no text that it could become."""
    with pytest.raises(UnrecognizedError, match="line 2: invalid map key: null"):
        parse_yaml_tree(b"a: 1\n~: x\n")
