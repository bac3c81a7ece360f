"""`format`: clauses, numbers for people, and what a constant call is checked for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.cel import ast
from drayman.cel.doubles import shortest_double
from drayman.cel.errors import CostLimitError, EvaluationError
from drayman.cel.libraries.formatting import format_text, validate
from drayman.cel.libraries.rendering import quoted
from drayman.cel.times import Duration, Timestamp
from drayman.cel.types import BOOL, DOUBLE, DYN, INT, STRING, Type, list_of, optional_of
from drayman.cel.values import NONE, MapValue, TypeValue, UInt

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("format", "args", "want"),
    [
        pytest.param("no clause", [], "no clause", id="text alone"),
        pytest.param("%% and %%", [], "% and %", id="escaped percent"),
        pytest.param("%%%s%%", ["x"], "%x%", id="a clause between percents"),
        pytest.param("%s is %d", ["x", 3], "x is 3", id="two clauses"),
        pytest.param("%s", [["unused"]], '["unused"]', id="a list of one string"),
        pytest.param("%d", [UInt(64)], "64", id="unsigned decimal"),
        pytest.param("%b %b %b", [5, -5, True], "101 -101 1", id="binary"),
        pytest.param("%o %o", [11, -11], "13 -13", id="octal"),
        pytest.param("%x %X", [30, -30], "1e -1E", id="hexadecimal"),
        pytest.param(
            "%x %X", ["Hi!", b"\x00\xff"], "486921 00FF", id="hexadecimal of text and bytes"
        ),
        pytest.param("%.3f", [1.2345], "1.234", id="fixed point rounds to even"),
        pytest.param("%f", [2.71828], "2.718280", id="six digits unless told"),
        pytest.param("%.1f", [1234567.89], "1,234,567.9", id="commas between thousands"),
        pytest.param("%.0f", [-0.0], "0", id="negative zero"),
        pytest.param("%f %f", ["NaN", "-Infinity"], "NaN -∞", id="special doubles as text"),
        pytest.param("%f", [math.inf], "∞", id="infinity"),
        pytest.param("%e", [1052.032911275], "1.052033×10⁰³", id="scientific"),
        pytest.param("%e", [-0.00021], "-2.100000×10⁻⁰⁴", id="scientific, small"),
        pytest.param("%.20e", [1.0], "       1.000000×10⁰⁰", id="the number is a width"),
        pytest.param("%e", [math.nan], "   NaN", id="the default width is six"),
        pytest.param("%s %s", [True, None], "true null", id="bool and null"),
        pytest.param("%s", [2.71], "2.71", id="a double on its own"),
        pytest.param("%s", [[2.71]], "[2.710000]", id="a double in a list"),
        pytest.param(
            "%s", [[math.nan, math.inf]], '["NaN", "+Inf"]', id="special doubles in a list"
        ),
        pytest.param("%s", [b"xyz"], "xyz", id="bytes"),
        pytest.param("%s", [[b"xyz"]], '[b"xyz"]', id="bytes in a list"),
        pytest.param("%s", [TypeValue("string")], "string", id="a type"),
        pytest.param("%s", [Duration(6347 * SECOND)], "6347s", id="a duration"),
        pytest.param("%s", [[Duration(2 * SECOND)]], '[duration("2s")]', id="a duration in a list"),
        pytest.param("%s", [Timestamp(0)], "1970-01-01T00:00:00Z", id="a timestamp"),
        pytest.param(
            "%s",
            [[Timestamp(0)]],
            '[timestamp("1970-01-01T00:00:00Z")]',
            id="a timestamp in a list",
        ),
        pytest.param(
            "%s",
            [MapValue.of([("b", 1), (True, "x"), (2, [None])])],
            '{"b":1, 2:[null], true:"x"}',
            id="a map is sorted by the text of its keys",
        ),
    ],
)
def test_value(format: str, args: list[object], want: str) -> None:
    """The text is the one that upstream writes."""
    assert format_text(format, args) == want


@pytest.mark.parametrize(
    ("format", "args", "message"),
    [
        pytest.param("%d %d", [1], "index 1 out of range", id="too few arguments"),
        pytest.param("%", [1], "unexpected end of string", id="a percent at the end"),
        pytest.param("%a", [1], 'unrecognized formatting clause "a"', id="an unknown letter"),
        pytest.param(
            "%.3",
            [1.0],
            "could not find end of precision specifier",
            id="a number without a letter",
        ),
        pytest.param("%.f", [1.0], "converting precision", id="a point without a number"),
        pytest.param("%.256f", [1.0], "converting precision", id="a number too large"),
        pytest.param(
            "%.99999999999999999999f", [1.0], "converting precision", id="a number beyond any"
        ),
        pytest.param(
            "%d", ["x"], "decimal clause can only be used on integers, was given string", id="%d"
        ),
        pytest.param("%d", [True], "was given bool", id="%d of a bool"),
        pytest.param(
            "%f", ["1.0"], "fixed-point clause can only be used on doubles", id="%f of text"
        ),
        pytest.param("%f", [1], "was given int", id="%f of an int"),
        pytest.param("%e", [1], "scientific clause can only be used on doubles", id="%e of an int"),
        pytest.param("%b", ["x"], "only integers and bools", id="%b of text"),
        pytest.param("%o", [1.0], "octal clause can only be used on integers", id="%o of a double"),
        pytest.param("%x", [True], "was given bool", id="%x of a bool"),
        pytest.param("%s", [NONE], "was given optional_type", id="%s of an optional"),
        pytest.param("%s", [[NONE]], "was given optional_type", id="%s of an optional in a list"),
        pytest.param("%s", [b"\xff"], "invalid UTF-8", id="%s of bytes that are no text"),
    ],
)
def test_error(format: str, args: list[object], message: str) -> None:
    """The message says which clause is wrong, or which argument."""
    with pytest.raises(EvaluationError, match=None) as caught:
        format_text(format, args)
    assert message in caught.value.message


def test_shared_lists_do_not_explode() -> None:
    """A list that contains itself many times over is given up on instead of written."""
    items: list[object] = [1]
    for _ in range(20):
        items = [items] * 10
    with pytest.raises(CostLimitError):
        format_text("%s", [items])


def check(format: str, *types: Type) -> list[str]:
    """The problems of a call of a constant format with a literal list of expressions of these types."""
    items = tuple(ast.Ident(10 + index, "x") for index in range(len(types)))
    call = ast.Call(1, "format", ast.Literal(2, format), (ast.ListExpr(3, items),))
    known = {10 + index: type for index, type in enumerate(types)}
    checked = ast.Checked("", call, {}, known, {})
    return [f"{node.id}: {message}" for node, message in validate(checked)]


@pytest.mark.parametrize(
    ("format", "types", "want"),
    [
        pytest.param("%s %d %f", (STRING, INT, DOUBLE), [], id="all fits"),
        pytest.param("%d", (DYN,), [], id="what is not known yet may fit"),
        pytest.param("%f", (STRING,), [], id="text may be a special double"),
        pytest.param("%s", (list_of(INT),), [], id="lists are text"),
        pytest.param(
            "%s %d",
            (STRING, BOOL),
            [
                "11: error during formatting: decimal clause can only be used on integers, was given bool"
            ],
            id="the node at fault is the argument",
        ),
        pytest.param(
            "%s", (optional_of(INT),), ["10: error during formatting: string clause"], id="optional"
        ),
        pytest.param("%d %d", (INT,), ["1: index 1 out of range"], id="too few"),
        pytest.param(
            "%d",
            (INT, INT),
            ["1: too many arguments supplied to string.format (expected 1, got 2)"],
            id="too many",
        ),
        pytest.param(
            "%z", (INT,), ["1: could not parse formatting clause"], id="an unknown clause"
        ),
    ],
)
def test_validation(format: str, types: tuple[Type, ...], want: list[str]) -> None:
    """A constant call that can never work is found before it runs."""
    found = check(format, *types)
    assert len(found) == len(want)
    assert all(message.startswith(start) for message, start in zip(found, want, strict=True))


def test_validation_looks_into_literals() -> None:
    """Within `%s` the elements of list literals and the entries of map literals are checked too."""
    bad = ast.Ident(5, "x")
    inner = ast.MapExpr(4, (ast.MapEntry(6, ast.Literal(7, "k"), bad),))
    call = ast.Call(1, "format", ast.Literal(2, "%s"), (ast.ListExpr(3, (inner,)),))
    checked = ast.Checked("", call, {}, {5: optional_of(INT), 7: STRING}, {})
    assert [node for node, _ in validate(checked)] == [bad]


@pytest.mark.parametrize(
    ("number", "want"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (1.5, "1.5"),
        (100000.0, "100000"),
        (999999.5, "999999.5"),
        (1000000.0, "1e+06"),
        (1234567.0, "1.234567e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1e100, "1e+100"),
        (-2.5e-9, "-2.5e-09"),
        (math.nan, "NaN"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
    ],
)
def test_shortest_double(number: float, want: str) -> None:
    """A double is written as Go's `%g` writes it."""
    assert shortest_double(number) == want


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_shortest_double_keeps_the_number(number: float) -> None:
    """Nothing is lost: the text reads as the same number."""
    assert float(shortest_double(number)) == number


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('a"\\', r'"a\"\\"'),
        ("\n\x01\x7f", r'"\n\x01\x7f"'),
        ("é😀", '"é😀"'),
        ("\u200b\ue000\U000e0001", r'"\u200b\ue000\U000e0001"'),
    ],
)
def test_quoted(text: str, want: str) -> None:
    """Quotes, control characters and what does not print are escaped."""
    assert quoted(text) == want


@given(st.text(max_size=10), st.integers(-(2**63), 2**63 - 1))
def test_text_and_decimal_clauses(text: str, number: int) -> None:
    """Strings and integers appear as they are."""
    assert format_text("%s|%d", [text, number]) == f"{text}|{number}"
