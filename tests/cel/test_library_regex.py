"""`find` and `findAll`."""

from __future__ import annotations

import pytest

from drayman.cel.errors import EvaluationError
from drayman.cel.libraries.regex import find, find_all


@pytest.mark.parametrize(
    ("text", "pattern", "want"),
    [
        pytest.param("abc 123", "[0-9]+", "123", id="the first match"),
        pytest.param("abc", "[0-9]+", "", id="no match"),
        pytest.param("abc", "b*", "", id="an empty match at the start"),
        pytest.param("héllo", "l+", "ll", id="behind a character of two bytes"),
        pytest.param("aXb", "(?i)x", "X", id="flags"),
        pytest.param("foobar", "foo(bar)", "foobar", id="groups do not matter"),
        pytest.param("ab", "a|ab", "a", id="the first alternative wins"),
    ],
)
def test_find(text: str, pattern: str, want: str) -> None:
    """`find` gives the leftmost match, or nothing."""
    assert find(text, pattern) == want


@pytest.mark.parametrize(
    ("text", "pattern", "limit", "want"),
    [
        pytest.param("1a2b3", "[0-9]", -1, ["1", "2", "3"], id="all"),
        pytest.param("1a2b3", "[0-9]", 2, ["1", "2"], id="two"),
        pytest.param("1a2b3", "[0-9]", 0, [], id="none"),
        pytest.param("abc", "x", -1, [], id="no match"),
        pytest.param("baab", "a*", -1, ["", "aa", ""], id="no empty match right behind another"),
        pytest.param("abc", "", -1, ["", "", "", ""], id="an empty pattern matches everywhere"),
        pytest.param("éa", "", -1, ["", "", ""], id="but not within a character"),
        pytest.param("aaa", "^a", -1, ["a"], id="the start is the start of the text"),
        pytest.param("ab ab", r"\bab", -1, ["ab", "ab"], id="word boundaries look behind"),
    ],
)
def test_find_all(text: str, pattern: str, limit: int, want: list[object]) -> None:
    """`findAll` gives the matches that Go's `FindAllString` gives."""
    assert find_all(text, pattern, limit) == want


@pytest.mark.parametrize("pattern", ["[", "(?=a)", r"(a)\1", "a**", r"\C"])
def test_invalid_pattern(pattern: str) -> None:
    """What RE2 does not understand is an error."""
    with pytest.raises(EvaluationError):
        find("aa", pattern)
