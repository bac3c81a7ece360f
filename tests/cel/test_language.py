"""What expressions of the language itself evaluate to."""

from __future__ import annotations

import pytest

from cel.environments import LANGUAGE, LIMIT, evaluate
from drayman.cel.values import MapValue, UInt


def cases(*pairs: tuple[str, object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("expression", "want"), pairs, ids=[e for e, _ in pairs])


@cases(
    ("0x1F", 31),
    ("-0x10", -16),
    ("-9223372036854775808", -(2**63)),
    ("7u", UInt(7)),
    ("1.5e-3", 0.0015),
    (".5", 0.5),
    ("'a\\'b'", "a'b"),
    ('"\\x41\\101\\u0041\\U00000041\\n"', "AAAA\n"),
    ("r'\\d'", "\\d"),
    ('"""a"b\n"""', 'a"b\n'),
    ("'\\x00'", "\x00"),
    ("b'\\xff\\377é'", b"\xff\xff\xc3\xa9"),
    ('B"a"', b"a"),
    ("null", None),
    ("true // comment", True),
)
def test_literals(expression: str, want: object) -> None:
    """Literals in all their spellings."""
    found = evaluate(expression)
    assert (type(found), found) == (type(want), want)


@cases(
    ("7 / 2", 3),
    ("-7 / 2", -3),
    ("-7 % 3", -1),
    ("7 % -3", 1),
    ("2 + 3 * 4", 14),
    ("10 - 3 - 2", 5),
    ("- -1", 1),
    ("!!true", True),
    ("1.0 / 0.0 > 1e308", True),
    ("'a' + 'b'", "ab"),
    ("b'a' + b'b'", b"ab"),
    ("[1] + [2]", [1, 2]),
    ("5u - 3u", UInt(2)),
    ("9223372036854775807 + 1", "error: integer overflow"),
    ("-9223372036854775808 / -1", "error: integer overflow"),
    ("-9223372036854775808 % -1", "error: integer overflow"),
    ("-(-9223372036854775808)", "error: integer overflow"),
    ("1u - 2u", "error: unsigned integer overflow"),
    ("1 / 0", "error: division by zero"),
    ("1 % 0", "error: modulus by zero"),
    ("dyn(1) + dyn('a')", "error: no such overload"),
)
def test_arithmetic(expression: str, want: object) -> None:
    """Integers are 64 bits wide and truncate; doubles follow IEEE 754."""
    assert evaluate(expression) == want


@cases(
    ("1 < 1.5", True),
    ("2u > 1", True),
    ("-1 < 0u", True),
    ("'a' < 'b'", True),
    ("b'a' <= b'a'", True),
    ("false < true", True),
    ("duration('1s') < duration('1m')", True),
    ("dyn(1) == dyn(1u) && dyn(1) == dyn(1.0)", True),
    ("dyn(1) == dyn(true)", False),
    ("dyn('1') == dyn(1)", False),
    ("[1, 2] == [1, 2] && [1] != [1, 2]", True),
    ("{'a': [1]} == {'a': [1]}", True),
    ("{'a': 1} == {'b': 1}", False),
    ("dyn(0.0) / dyn(0.0) == dyn(0.0) / dyn(0.0)", False),
    ("dyn(1) < dyn('a')", "error: no such overload"),
    ("0.0 / 0.0 < 1.0", "error: NaN values cannot be ordered"),
    ("type(1) == int && type(type) == type", True),
    ("type([]) == list && type({}) == map && type(null) == null_type", True),
    ("optional.of(1) == optional.of(1) && optional.none() != optional.of(1)", True),
)
def test_comparison(expression: str, want: object) -> None:
    """Numbers compare across types; anything else is equal only to its own type."""
    assert evaluate(expression) == want


@cases(
    ("1 / 0 == 1 || true", True),
    ("true || 1 / 0 == 1", True),
    ("1 / 0 == 1 && false", False),
    ("1 / 0 == 1 && true", "error: division by zero"),
    ("1 / 0 == 1 || false", "error: division by zero"),
    ("1 / 0 == 1 || 1 % 0 == 1", "error: division by zero"),
    ("dyn('x') || true", True),
    ("dyn('x') || false", "error: no such overload"),
    ("true ? 1 : 1 / 0", 1),
    ("dyn('x') ? 1 : 2", "error: no such overload"),
    ("[0, 1].exists(i, 4 / i == 4)", True),
    ("[0, 2].exists(i, 4 / i == 4)", "error: division by zero"),
    ("[0, 1].all(i, 4 / i == 5)", False),
    ("[0, 1].exists_one(i, 4 / i == 4)", "error: division by zero"),
)
def test_errors_are_values(expression: str, want: object) -> None:
    """Logical operators and quantifiers absorb an error where the rest decides."""
    assert evaluate(expression) == want


@cases(
    ("[1, 2, 3].all(i, i > 0)", True),
    ("[].exists(i, true)", False),
    ("[1, 2, 2].exists_one(i, i == 2)", False),
    ("[1, 2, 3].map(i, i * 2)", [2, 4, 6]),
    ("[1, 2, 3].map(i, i > 1, i * 2)", [4, 6]),
    ("[1, 2, 3].filter(i, i % 2 == 1)", [1, 3]),
    ("{'a': 1, 'b': 2}.map(k, k)", ["a", "b"]),
    ("{'a': 1}.all(k, v, k == 'a' && v == 1)", True),
    ("[5, 6].exists(i, v, i == 1 && v == 6)", True),
    ("[5, 6].existsOne(i, v, v == 6)", True),
    ("[5, 6].transformList(i, v, i + v)", [5, 7]),
    ("[5, 6].transformList(i, v, i > 0, v)", [6]),
    ("{'a': 1}.transformMap(k, v, v + 1)", MapValue(a=2)),
    ("{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v)", MapValue(b=2)),
    ("{'a': 'b'}.transformMapEntry(k, v, {v: k})", MapValue(b="a")),
    ("[1, 1].transformMapEntry(i, v, {v: i})", "error: insert failed: key 1 already exists"),
    ("[[1], [2]].map(i, i.map(j, j + 1))", [[2], [3]]),
    ("cel.bind(a, 1 / 0, true)", True),
    ("cel.bind(a, [1, 2], a + a)", [1, 2, 1, 2]),
    ("[1, 2].map(i, cel.bind(a, i, a * a))", [1, 4]),
    ("dyn(1).all(i, true)", "error: got 'types.Int', expected iterable type"),
)
def test_macros(expression: str, want: object) -> None:
    """Macros over lists and maps, with one or two variables."""
    assert evaluate(expression) == want


@cases(
    ("{'a': 1}.a", 1),
    ("{'a': 1}['a']", 1),
    ("{1: 'a'}[dyn(1.0)]", "a"),
    ("{1u: 'a'}[dyn(1)]", "a"),
    ("{true: 'a'}[true]", "a"),
    ("{1: 'a'}[dyn(true)]", "error: no such key: true"),
    ("{'a': 1}.b", "error: no such key: b"),
    ("[1, 2][1]", 2),
    ("[1, 2][dyn(1.0)]", 2),
    ("[1, 2][2]", "error: index out of bounds: 2"),
    ("[1, 2][-1]", "error: index out of bounds: -1"),
    ("[1][dyn('a')]", "error: unsupported index type 'string' in list"),
    ("has({'a': 1}.a) && !has({'a': 1}.b)", True),
    ("has(dyn(1).b)", False),
    ("dyn(1).b", "error: no such key: b"),
    ("'a' in {'a': 1} && !(2 in [1, 3])", True),
    ("dyn(1.0) in [1, 2] && dyn(1) in [dyn(1.0)]", True),
    ("dyn(true) in [1]", False),
    ("(true ? {'a': 1} : {'a': 2}).a", 1),
    ("m['a'] + m.b", 3),
)
def test_access(expression: str, want: object) -> None:
    """Fields, keys and indices, there and missing."""
    assert evaluate(expression, m=MapValue(a=1, b=2)) == want


@cases(
    ("{'a': 1}.?a.orValue(0)", 1),
    ("{'a': 1}.?b.orValue(7)", 7),
    ("{'a': {'b': 1}}.?a.b.hasValue()", True),
    ("{'a': {'b': 1}}.?x.b.hasValue()", False),
    ("[1][?3].hasValue()", False),
    ("optional.none().or(optional.of(2)).value()", 2),
    ("optional.none().value()", "error: optional.none() dereference"),
    ("optional.ofNonZeroValue('').hasValue()", False),
    ("{?'a': optional.none(), ?'b': optional.of(1)}", MapValue(b=1)),
    ("[?optional.none(), 1]", [1]),
    ("optional.of(2).optMap(v, v * 2).value()", 4),
    ("optional.of(2).optFlatMap(v, optional.none()).hasValue()", False),
    ("[optional.of(1), optional.none()].unwrapOpt()", [1]),
    ("[1, 2].last().value() + [1, 2].first().value()", 3),
    ("optional.of({'a': 1}).?a.value()", 1),
    ("optional.of(1).orValue(1 / 0)", 1),
)
def test_optionals(expression: str, want: object) -> None:
    """Optional access and the functions of optional values."""
    assert evaluate(expression) == want


@cases(
    ("int('42') + int(3.9) + int(5u)", 50),
    ("int([1e19][0])", "error: integer overflow"),
    ("uint('7') == 7u", True),
    ("double('1e3') == 1000.0", True),
    ("double([' 1'][0])", "error: type conversion error from 'string' to 'double'"),
    ("int(['1_0'][0])", "error: type conversion error from 'string' to 'int'"),
    ("string(1.0) + string(1e6) + string(true)", "11e+06true"),
    ("string(b'a') + string(7u) + string(duration('90s'))", "a790s"),
    ("string([b'\\xff'][0])", "error: invalid UTF-8 in bytes, cannot convert to string"),
    ("bytes('é')", b"\xc3\xa9"),
    ("bool('True')", True),
    ("size('😀') + '😀'.size() + size(b'ab') + size([1]) + size({})", 5),
    ("'hello'.startsWith('he') && 'hello'.endsWith('lo') && 'hello'.contains('ell')", True),
    ("'hello'.matches('^h.*o$') && matches('hello', 'l{2}')", True),
    ("timestamp('2024-02-29T12:00:00.5Z').getMilliseconds()", 500),
    ("timestamp('2024-02-29T23:00:00Z').getDate('Europe/Berlin')", 1),
    ("timestamp('2024-02-29T23:00:00Z').getHours('-08:30')", 14),
    ("timestamp('2024-02-29T00:00:00Z').getDayOfYear()", 59),
    ("timestamp('2024-03-03T00:00:00Z').getDayOfWeek()", 0),
    ("timestamp(0).getFullYear('Nowhere/Atall')", "error: unknown time zone Nowhere/Atall"),
    ("duration('1h30m').getMinutes() + duration('-1.5s').getSeconds()", 89),
    (
        "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')",
        True,
    ),
    ("string(timestamp('2024-01-01T00:00:00+02:00'))", "2024-01-01T00:00:00+02:00"),
    ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "error: timestamp overflow"),
)
def test_conversions_and_functions(expression: str, want: object) -> None:
    """The standard library reads and writes numbers and times as Go does."""
    assert evaluate(expression) == want


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param("1 in [2, 3]", 0, id="membership in constants is free"),
        pytest.param("[n]", 11, id="a list that is built"),
        pytest.param("{'a': n}", 31, id="a map that is built"),
        pytest.param("text == 'abcdefghijk'", 3, id="strings by length"),
        pytest.param("true || n == 1", 0, id="short circuit"),
        pytest.param("n == 1 ? n : 2", 2, id="a branch that is a variable costs nothing"),
        pytest.param("[1, 2, 3].all(i, i > 1)", 8, id="a loop that stops"),
        pytest.param("x.a.b == 1", 3, id="a path ends where it fails"),
        pytest.param("x.?a.?b.hasValue()", 2, id="missing optional steps are free"),
        pytest.param("cel.bind(a, n + 1, 2 == 2)", 1, id="unused variables are free"),
    ],
)
def test_costs(expression: str, want: int) -> None:
    """What evaluations cost."""
    variables = {"n": 1, "text": "abcdefghijk", "x": MapValue()}
    assert LANGUAGE.compile(expression).evaluate(variables, LIMIT).cost == want


def test_limit() -> None:
    """An evaluation stops as soon as it costs more than its limit, and no operator absorbs that."""
    program = LANGUAGE.compile("[1, 2, 3].all(i, i > 0) || true")
    assert program.evaluate({}, 14).value is not True
    assert program.evaluate({}, 16).value is True
    assert program.evaluate({}, 14).cost == 15


def test_output_types() -> None:
    """Every expression has a static type."""
    for expression, want in {
        "[1, 2]": "list(int)",
        "{'a': [x]}": "map(string, list(dyn))",
        "m.?a": "optional_type(int)",
        "x": "dyn",
        "[]": "list(dyn)",
        "type(1)": "type(int)",
        "true ? [] : [1]": "list(int)",
    }.items():
        assert str(LANGUAGE.check(expression).output_type) == want
