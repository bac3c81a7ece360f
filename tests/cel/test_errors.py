"""Compile errors say where the problem is."""

from __future__ import annotations

import pytest

from cel.environments import LANGUAGE
from drayman.cel.errors import CompileError


def compile_error(expression: str) -> CompileError:
    with pytest.raises(CompileError) as caught:
        LANGUAGE.compile(expression)
    return caught.value


def test_points_at_the_column() -> None:
    """The text of an error has line and column, the line itself and a caret under the column."""
    assert str(compile_error("1 + foo")) == (
        "ERROR: <input>:1:5: undeclared reference to 'foo' (in container '')\n | 1 + foo\n | ....^"
    )


def test_points_below_wide_characters() -> None:
    """Everything beyond ASCII gets a full-width dot or caret, so that the caret stays in place."""
    assert str(compile_error("'é' == foo")).endswith("\n | 'é' == foo\n | .\uff0e.....^")
    assert str(compile_error("é")).splitlines()[:3][-1] == " | \uff3e"


def test_an_empty_text_has_no_line_to_show() -> None:
    """Nothing is quoted of an empty expression, and its column is zero."""
    text = str(compile_error(""))
    assert text.startswith("ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>'")
    assert "\n" not in text


def test_overlong_lines_are_not_shown() -> None:
    """The line is left out where it would flood the terminal."""
    assert str(compile_error(f"foo == '{'x' * 20_000}'")).endswith("(in container '')")


def test_points_at_the_line() -> None:
    """In a text of several lines the one with the problem is shown, whatever its characters."""
    (issue,) = compile_error('"é" == text &&\n  "ü" == nothing').issues
    assert (issue.line, issue.column) == (2, 10)


def test_reports_every_type_error() -> None:
    """One attempt shows all type errors, in the order of the text."""
    issues = compile_error("foo == 1 && size(1) == 0 && bar").issues
    assert [issue.column for issue in issues] == [1, 17, 29]


@pytest.mark.parametrize(
    ("expression", "column", "message"),
    [
        pytest.param("1 +", 4, "mismatched input '<EOF>'", id="ends too early"),
        pytest.param("(1", 3, "missing ')' at '<EOF>'", id="open parenthesis"),
        pytest.param("[1, 2", 6, "expecting {']', ','}", id="open bracket"),
        pytest.param("1 2", 3, "extraneous input '2' expecting <EOF>", id="two expressions"),
        pytest.param("text ; n", 6, "token recognition error at: ';'", id="no token"),
        pytest.param("a ? b", 6, "mismatched input '<EOF>' expecting ':'", id="half a conditional"),
        pytest.param("m.", 3, "expecting {IDENTIFIER, ESC_IDENTIFIER}", id="field without name"),
        pytest.param("if", 1, "reserved identifier: if", id="reserved word"),
        pytest.param("9223372036854775808", 1, "invalid int literal", id="int too large"),
        pytest.param("18446744073709551616u", 1, "invalid uint literal", id="uint too large"),
        pytest.param("1e400", 1, "invalid double literal", id="double too large"),
        pytest.param(r'"\ud800"', 1, "invalid unicode code point", id="surrogate"),
        pytest.param(r'b"\u0041"', 1, "unable to unescape string", id="code point in bytes"),
        pytest.param("m.`a-b`", 3, "unsupported syntax: '`'", id="escaped identifier"),
        pytest.param("has(m)", 5, "invalid argument to has() macro", id="has without field"),
        pytest.param(
            "[1].all(1, true)", 9, "argument must be a simple name", id="all of a literal"
        ),
        pytest.param(
            "[1].exists(i, i, true)", 15, "duplicate variable name: i", id="same variable twice"
        ),
        pytest.param(
            "[1].map(__result__, 1)", 9, "overwrites accumulator", id="accumulator as variable"
        ),
        pytest.param("cel.bind(1, 2, 3)", 10, "must be simple identifiers", id="bind a literal"),
    ],
)
def test_syntax_errors(expression: str, column: int, message: str) -> None:
    """Text that is no expression is refused at the place where it stops being one."""
    issue = compile_error(expression).issues[0]
    assert (issue.column, message in issue.message) == (column, True), issue


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("1 + 1u", "'_+_' applied to '(int, uint)'", id="mixed arithmetic"),
        pytest.param("1 == 1.0", "'_==_' applied to '(int, double)'", id="mixed equality"),
        pytest.param("null == 1", "'_==_' applied to '(null_type, int)'", id="null and a scalar"),
        pytest.param("n.x", "type 'int' does not support field selection", id="field of an int"),
        pytest.param("text && true", "expected type 'bool' but found 'string'", id="text as bool"),
        pytest.param("n.all(i, true)", "cannot be range of a comprehension", id="range of an int"),
        pytest.param("[1, 'a']", "expected type 'int' but found 'string'", id="mixed list"),
        pytest.param("[1, x]", "expected type 'int' but found 'dyn'", id="list with a dynamic"),
        pytest.param("{'a': 1, 2: 1}", "expected type 'string' but found 'int'", id="mixed keys"),
        pytest.param("true ? 1 : ''", "'_?_:_' applied to '(bool, int, string)'", id="branches"),
        pytest.param("text.size(1)", "'size' applied to 'string.(int)'", id="too many arguments"),
        pytest.param("duration('x')", "invalid duration argument", id="duration literal"),
        pytest.param("timestamp('x')", "invalid timestamp argument", id="timestamp literal"),
        pytest.param("text.matches('(')", "invalid matches argument", id="pattern literal"),
        pytest.param("int{a: 1}", "'int' is not a message type", id="message of a scalar"),
        pytest.param("Foo{}", "undeclared reference to 'Foo'", id="unknown message"),
    ],
)
def test_type_errors(expression: str, message: str) -> None:
    """Operands that can never fit are refused before anything runs."""
    assert message in compile_error(expression).issues[0].message


@pytest.mark.parametrize(
    "expression",
    ["int('x') == 0", "bool('yes')", "uint(-1) == 0u", "timestamp(duration('1s') == x)"],
)
def test_constants_that_fail(expression: str) -> None:
    """A conversion of a constant that cannot succeed is an error of the expression."""
    compile_error(expression)


def test_marks_errors_of_construction() -> None:
    """An error that only shows when the program is built has no position and says so."""
    error = compile_error("int('x') == 0")
    assert (error.issues, error.is_internal) == ((), True)
