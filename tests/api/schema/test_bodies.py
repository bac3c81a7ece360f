"""Bodies before they are decoded: syntax, what they claim to be, YAML."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.errors import UnrecognizedError
from drayman.api.schema import Identity, excerpt, identify, identify_tree
from drayman.api.syntax.json_scanner import quoted, syntax_error
from drayman.api.syntax.json_text import parse_tree
from drayman.api.syntax.values import MAX_DEPTH, plain
from drayman.api.syntax.yaml_text import parse_yaml_tree


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", "unexpected end of JSON input"),
        (b'{"a":', "unexpected end of JSON input"),
        (b'"a', "unexpected end of JSON input"),
        (b"-", "unexpected end of JSON input"),
        (b"{} x", "invalid character 'x' after top-level value"),
        (b"{a:1}", "invalid character 'a' looking for beginning of object key string"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"[1}", "invalid character '}' after array element"),
        (b"01", "invalid character '1' after top-level value"),
        (b"-x", "invalid character 'x' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"1ex", "invalid character 'x' in exponent of numeric literal"),
        (b"nul}", "invalid character '}' in literal null (expecting 'l')"),
        (b'"\x01"', "invalid character '\\x01' in string literal"),
        (b'"\\q"', "invalid character 'q' in string escape code"),
        (b'"\\u12x4"', "invalid character 'x' in \\u hexadecimal character escape"),
        (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
        (b"'a'", "invalid character '\\'' looking for beginning of value"),
    ],
)
def test_syntax_errors(body: bytes, error: str) -> None:
    """A text that is no JSON is refused with the character and the place that are wrong."""
    assert syntax_error(body) == error
    with pytest.raises(UnrecognizedError, match="version/kind; json parse error: "):
        identify(body)


@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsn\\ \n', max_size=20))
def test_scanner_agrees_with_a_parser(text: str) -> None:
    """A text has a syntax error if and only if a JSON parser refuses it."""

    def refuse(_: str) -> None:
        raise ValueError

    try:
        json.loads(text, parse_constant=refuse)
        is_json = True
    except ValueError:
        is_json = False
    assert (syntax_error(text.encode()) is None) is is_json


@pytest.mark.parametrize(
    ("body", "identity"),
    [
        (b'{"apiVersion":"v1","kind":"Pod"}', Identity("v1", "Pod")),
        (b'{"kind":null}', Identity("", "")),
        (b"null", Identity("", "")),
        (b'{"spec":{"kind":5}}', Identity("", "")),
        (b'{"kind":"\xff"}', Identity("", "\ufffd")),
    ],
)
def test_identity(body: bytes, identity: Identity) -> None:
    """A body tells its version and kind, or leaves them to be filled in."""
    assert identify(body) == identity
    assert identify_tree(parse_tree(body)) == identity


def test_deep_nesting_is_refused() -> None:
    """Nesting beyond the limit is refused rather than followed, however deep it goes."""
    for depth in (MAX_DEPTH + 1, 100 * MAX_DEPTH):
        with pytest.raises(UnrecognizedError, match="exceeded max depth"):
            parse_tree(b"[" * depth + b"]" * depth)
        with pytest.raises(UnrecognizedError, match="exceeded max depth"):
            parse_yaml_tree(b"[" * depth + b"]" * depth)
    assert parse_tree(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"", "<empty>"),
        (b'{"a":1}', '{"a":1}'),
        (b"{" + b"x" * 40, "{" + "x" * 29 + " ..."),
        (b"[]", "5b5d"),
        (b"z" * 31, "7a" * 30 + " ..."),
    ],
)
def test_excerpts(body: bytes, shown: str) -> None:
    """Error messages show the start of a body: objects as text, the rest in hexadecimal."""
    assert excerpt(body) == shown


@pytest.mark.parametrize(
    ("text", "shown"), [('a"b', r'"a\"b"'), ("\n\x00é", '"\\n\\x00é"'), ("\u200b", r'"\u200b"')]
)
def test_quoting(text: str, shown: str) -> None:
    """Texts in messages have what does not print escaped."""
    assert quoted(text) == shown


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [yes, 0x10, '1', ~]", {"a": 1, "b": [True, 16, "1", None]}),
        ("1: a\ntrue: b", {"1": "a", "true": "b"}),
        (
            "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}",
            {"a": {"b": 1}, "c": {"b": 1}, "d": {"e": 2, "b": 1}},
        ),
        ("a: !!str 1", {"a": "1"}),
        ("", None),
        ("a: 1\n---\nb: 2", {"a": 1}),
    ],
)
def test_yaml_values(text: str, value: object) -> None:
    """YAML becomes the JSON that the API server makes of it."""
    assert plain(parse_yaml_tree(text.encode()).tree) == value


def test_yaml_duplicates_are_told_by_line() -> None:
    """Of keys that are there twice the last one counts, and each is reported."""
    tree, problems = parse_yaml_tree(b"a: 1\nb: {c: 1,\n  c: 2}\na: 3\n")
    assert plain(tree) == {"b": {"c": 2}, "a": 3}
    assert problems == (
        'yaml: unmarshal errors:\n  line 3: key "c" already set in map\n  line 4: key "a" already set in map',
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a:\tv\n\tb: x", "yaml: line 2: found a tab character that violates indentation"),
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("a: [", "yaml: line 1: did not find expected node content"),
        ("? [a]\n: b", "yaml: invalid map key at line 1"),
        ("a: .inf", "json: unsupported value: .inf"),
    ],
)
def test_yaml_errors(text: str, error: str) -> None:
    """YAML that cannot be read is refused with the line."""
    with pytest.raises(UnrecognizedError) as caught:
        parse_yaml_tree(text.encode())
    assert str(caught.value) == error


def test_yaml_aliases_cannot_grow_without_end() -> None:
    """A small body whose aliases unfold to millions of values is refused."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(UnrecognizedError, match="excessive aliasing"):
        parse_yaml_tree("\n".join(lines).encode())
