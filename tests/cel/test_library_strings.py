"""The strings extension: Go's semantics on code points."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.cel.errors import CostLimitError, EvaluationError
from drayman.cel.libraries import strings
from drayman.cel.libraries.strings import STRINGS

TEXT = st.text(max_size=20)


@pytest.mark.parametrize(
    ("function", "args", "want"),
    [
        pytest.param("char_at", ("abc", 1), "b", id="charAt in the middle"),
        pytest.param("char_at", ("abc", 3), "", id="charAt at the end is empty"),
        pytest.param("char_at", ("héllo", 1), "é", id="charAt counts code points"),
        pytest.param("index_of", ("hello", "l"), 2, id="indexOf finds the first"),
        pytest.param("index_of", ("hello", "l", 3), 3, id="indexOf starts at the offset"),
        pytest.param("index_of", ("hello", "z"), -1, id="indexOf of what is not there"),
        pytest.param("index_of", ("hello", "h", 99), -1, id="indexOf from behind the end"),
        pytest.param(
            "index_of", ("hello", "", 99), 99, id="indexOf of nothing is the offset, unchecked"
        ),
        pytest.param("index_of", ("a😀b", "b"), 2, id="indexOf counts code points"),
        pytest.param("index_of", ("ab", "abc"), -1, id="indexOf of something longer"),
        pytest.param("last_index_of", ("hello", "l"), 3, id="lastIndexOf finds the last"),
        pytest.param("last_index_of", ("hello", ""), 5, id="lastIndexOf of nothing is the length"),
        pytest.param("last_index_of", ("a", "abc"), -1, id="lastIndexOf of something longer"),
        pytest.param(
            "last_index_of_before", ("hello", "l", 2), 2, id="lastIndexOf up to an offset"
        ),
        pytest.param(
            "last_index_of_before", ("hello", "lo", 3), 3, id="lastIndexOf may reach beyond it"
        ),
        pytest.param("last_index_of_before", ("hello", "h", 5), -1, id="lastIndexOf from the end"),
        pytest.param(
            "last_index_of_before", ("hello", "", 77), 77, id="lastIndexOf of nothing, unchecked"
        ),
        pytest.param(
            "last_index_of_before", ("ab", "abc", 1), -1, id="lastIndexOf, longer than the text"
        ),
        pytest.param("lower_ascii", ("HeLLo É",), "hello É", id="lowerAscii leaves the rest alone"),
        pytest.param(
            "upper_ascii", ("HeLLo é ß",), "HELLO é ß", id="upperAscii leaves the rest alone"
        ),
        pytest.param("trim", ("\t \u3000a b\u00a0\u0085\n",), "a b", id="trim takes Unicode space"),
        pytest.param("trim", ("\x1ca\x1f",), "\x1ca\x1f", id="trim leaves information separators"),
        pytest.param("substring", ("hello", 1), "ello", id="substring to the end"),
        pytest.param("substring", ("hello", 5), "", id="substring from the end"),
        pytest.param("substring", ("hello", 1, 3), "el", id="substring of a range"),
        pytest.param("substring", ("héllo", 1, 2), "é", id="substring counts code points"),
        pytest.param("substring", ("hello", 2, 2), "", id="substring of an empty range"),
        pytest.param("replace", ("aaa", "a", "b"), "bbb", id="replace all"),
        pytest.param("replace", ("aaa", "a", "b", 2), "bba", id="replace some"),
        pytest.param("replace", ("aaa", "a", "b", 0), "aaa", id="replace none"),
        pytest.param("replace", ("aaa", "a", "b", -3), "bbb", id="a negative limit replaces all"),
        pytest.param("replace", ("ab", "", "-"), "-a-b-", id="replace nothing, everywhere"),
        pytest.param("replace", ("ab", "", "-", 2), "-a-b", id="replace nothing, twice"),
        pytest.param("replace", ("", "", "x"), "x", id="replace nothing in nothing"),
        pytest.param("split", ("a,b,c", ","), ["a", "b", "c"], id="split"),
        pytest.param("split", ("a,b,c", ",", 2), ["a", "b,c"], id="split with a limit"),
        pytest.param("split", ("a,b,c", ",", 1), ["a,b,c"], id="split into one"),
        pytest.param("split", ("a,b,c", ",", 0), [], id="split into none"),
        pytest.param("split", ("a,b,c", ",", -1), ["a", "b", "c"], id="split without a limit"),
        pytest.param("split", ("", ","), [""], id="split nothing"),
        pytest.param("split", ("", ""), [], id="split nothing by nothing"),
        pytest.param("split", ("héy", ""), ["h", "é", "y"], id="split into characters"),
        pytest.param("split", ("hey", "", 2), ["h", "ey"], id="split off one character"),
        pytest.param(
            "split", ("hey", "", 9), ["h", "e", "y"], id="split by nothing with a high limit"
        ),
        pytest.param("join", (["a", "b"],), "ab", id="join"),
        pytest.param("join", (["a", "b", "c"], ", "), "a, b, c", id="join with a separator"),
        pytest.param("join", ([], ","), "", id="join nothing"),
        pytest.param("join", (("x",), ","), "x", id="join one"),
        pytest.param(
            "quote", ('a"b\\\n\té\a\b\f\v\r',), '"a\\"b\\\\\\n\\té\\a\\b\\f\\v\\r"', id="quote"
        ),
    ],
)
def test_value(function: str, args: tuple[object, ...], want: object) -> None:
    """The function gives the value that Go's implementation gives."""
    assert getattr(strings, function)(*args) == want


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        pytest.param("char_at", ("abc", 4), "index out of range: 4", id="charAt behind the end"),
        pytest.param(
            "char_at", ("abc", -1), "index out of range: -1", id="charAt before the start"
        ),
        pytest.param(
            "index_of", ("abc", "a", -1), "index out of range: -1", id="indexOf from below zero"
        ),
        pytest.param(
            "last_index_of_before",
            ("abc", "a", -1),
            "index out of range: -1",
            id="lastIndexOf below zero",
        ),
        pytest.param(
            "substring", ("abc", 4), "index out of range: 4", id="substring behind the end"
        ),
        pytest.param(
            "substring", ("abc", -1, 2), "index out of range: -1", id="substring below zero"
        ),
        pytest.param("substring", ("abc", 1, 4), "index out of range: 4", id="substring too long"),
        pytest.param(
            "substring",
            ("abc", 3, 1),
            "invalid substring range. start: 3, end: 1",
            id="substring backwards",
        ),
        pytest.param("join", (["a", 1],), "join: invalid input: int", id="join of a number"),
    ],
)
def test_error(function: str, args: tuple[object, ...], message: str) -> None:
    """The function fails with a message that names what is wrong."""
    with pytest.raises(EvaluationError) as caught:
        getattr(strings, function)(*args)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("function", "args"),
    [
        pytest.param("replace", ("a" * 10_000, "a", "b" * 10_000), id="replace"),
        pytest.param("replace", ("a" * 10_000, "", "b" * 10_000), id="replace of nothing"),
        pytest.param("join", (["a" * 1000] * 100_000,), id="join"),
    ],
)
def test_bomb(function: str, args: tuple[object, ...]) -> None:
    """A result that no cost limit allows is refused before it is built."""
    with pytest.raises(CostLimitError):
        getattr(strings, function)(*args)


def test_version_2_has_these_functions() -> None:
    """Version 2 has no `reverse` for strings."""
    assert sorted({function.name for function in STRINGS.functions}) == [
        "charAt",
        "format",
        "indexOf",
        "join",
        "lastIndexOf",
        "lowerAscii",
        "replace",
        "split",
        "strings.quote",
        "substring",
        "trim",
        "upperAscii",
    ]


@given(TEXT, st.text(min_size=1, max_size=3))
def test_join_undoes_split(text: str, separator: str) -> None:
    """Splitting and joining with the same separator gives the text back."""
    assert strings.join(strings.split(text, separator), separator) == text


@given(TEXT, st.text(max_size=3), st.integers(1, 5))
def test_limited_split_keeps_everything(text: str, separator: str, limit: int) -> None:
    """A split with a limit has no more parts than that and loses nothing."""
    parts = strings.split(text, separator, limit)
    assert len(parts) <= limit
    assert strings.join(parts, separator) == text


@given(TEXT, st.text(max_size=3), st.text(max_size=3))
def test_replace_is_split_and_join(text: str, old: str, new: str) -> None:
    """Replacing a part is splitting by it and joining with the replacement."""
    if old:
        assert strings.replace(text, old, new) == strings.join(strings.split(text, old), new)


@given(TEXT, st.text(min_size=1, max_size=2))
def test_index_is_where_the_part_is(text: str, part: str) -> None:
    """`indexOf` and `lastIndexOf` agree with `substring`, and on whether there is anything to find."""
    first, last = strings.index_of(text, part), strings.last_index_of(text, part)
    assert (first < 0) == (last < 0) == (part not in text)
    for index in (first, last):
        assert index < 0 or strings.substring(text, index, index + len(part)) == part
