"""URLs as Go takes them apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cel.environments import FUNCTIONS
from drayman.cel.errors import EvaluationError
from drayman.cel.libraries import url
from drayman.cel.values import MapValue

PATHS = st.text("abcXYZ019-._~/:@!$&'()*+,;= é", max_size=20)


@pytest.mark.parametrize(
    ("text", "scheme", "host", "hostname", "port", "path"),
    [
        ("https://example.com:80/p", "https", "example.com:80", "example.com", "80", "/p"),
        ("HTTP://Example.com", "http", "Example.com", "Example.com", "", ""),
        ("https://user:pw@example.com/", "https", "example.com", "example.com", "", "/"),
        ("https://a@b@example.com/", "https", "example.com", "example.com", "", "/"),
        ("http://[::1]:80/x", "http", "[::1]:80", "::1", "80", "/x"),
        ("http://[fe80::1%25en0]:80/", "http", "[fe80::1%en0]:80", "fe80::1%en0", "80", "/"),
        ("http://[::ffff:1.2.3.4]/", "http", "[::ffff:1.2.3.4]", "::ffff:1.2.3.4", "", "/"),
        ("http://example.com:/x", "http", "example.com:", "example.com", "", "/x"),
        ("https://example.com/a b", "https", "example.com", "example.com", "", "/a%20b"),
        ("https://example.com/a%20b%2fc", "https", "example.com", "example.com", "", "/a%20b%2fc"),
        ("https://example.com/é", "https", "example.com", "example.com", "", "/%C3%A9"),
        ("https://h%C3%A9.com/", "https", "hé.com", "hé.com", "", "/"),
        ("https://example.com/p?q#f", "https", "example.com", "example.com", "", "/p"),
        ("/absolute/path", "", "", "", "", "/absolute/path"),
        ("//host/path", "", "host", "host", "", "/path"),
        ("///path", "", "", "", "", "///path"),
        ("mailto:a@b.c", "mailto", "", "", "", ""),
        ("file:///etc/x", "file", "", "", "", "/etc/x"),
        ("db://h1:1,h2:2/x", "db", "h1:1,h2:2", "h1:1,h2", "2", "/x"),
        ("*", "", "", "", "", "*"),
    ],
)
def test_parts(text: str, scheme: str, host: str, hostname: str, port: str, path: str) -> None:
    """A URL has the parts that Go finds in it."""
    value = url.parse_url(text)
    got = [
        FUNCTIONS["url_get_scheme"](value),
        FUNCTIONS["url_get_host"](value),
        FUNCTIONS["url_get_hostname"](value),
        FUNCTIONS["url_get_port"](value),
        FUNCTIONS["url_get_escaped_path"](value),
    ]
    assert got == [scheme, host, hostname, port, path]
    assert url.is_url(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("relative/path", id="a relative path"),
        pytest.param("::", id="no scheme before the colon"),
        pytest.param("http://a b/", id="a space in the host"),
        pytest.param("http://host#frag", id="a fragment in the host"),
        pytest.param("http://a:b/", id="a port that is no number"),
        pytest.param("http://::1/", id="IPv6 without brackets"),
        pytest.param("http://a:80:80/", id="two ports"),
        pytest.param("http://[::1/", id="an open bracket"),
        pytest.param("http://[1.2.3.4]/", id="IPv4 in brackets"),
        pytest.param("http://[v1.x]/", id="something else in brackets"),
        pytest.param("http://x[::1]/", id="brackets in the middle"),
        pytest.param("http://[::1%25]/", id="an empty zone"),
        pytest.param("http://%41/", id="an escaped letter in the host"),
        pytest.param("http://host/%zz", id="an escape that is none"),
        pytest.param("http://host/%a", id="an escape cut short"),
        pytest.param("http://us er@host/", id="a space in the user"),
        pytest.param("http://host/\n", id="a control character"),
        pytest.param("http://host/x#%zz", id="an escape that is none in the fragment"),
    ],
)
def test_not_a_url(text: str) -> None:
    """`isURL` is false and `url` fails for the same texts."""
    assert not url.is_url(text)
    with pytest.raises(EvaluationError):
        url.parse_url(text)


@pytest.mark.parametrize(
    ("query", "want"),
    [
        ("", {}),
        ("a=1&b=2&a=3", {"a": ["1", "3"], "b": ["2"]}),
        ("a", {"a": [""]}),
        ("a+b=c%20d", {"a b": ["c d"]}),
        ("a=1;b=2&c=3", {"c": ["3"]}),
        ("%zz=1&a=%&b=2", {"b": ["2"]}),
        ("&&a=1&", {"a": ["1"]}),
        ("a=b=c", {"a": ["b=c"]}),
    ],
)
def test_query(query: str, want: dict[str, list[str]]) -> None:
    """Parameters are decoded; those that cannot be are left out."""
    assert FUNCTIONS["url_get_query"](url.parse_url(f"https://host/?{query}")) == MapValue.of(
        want.items()
    )


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        ("HTTP://h/", "http://h/", True),
        ("http://h/a%20b", "http://h/a b", True),
        ("http://h/", "http://h", False),
        ("http://h/?", "http://h/", False),
        ("http://u:p@h/#f", "http://u:p@h/#f", True),
        ("http://h/#f", "http://h/", False),
        ("mailto:x", "mailto:x", True),
        ("file:/x", "file:///x", False),
    ],
)
def test_equality(left: str, right: str, want: bool) -> None:
    """URLs are equal when they are written the same once normalized."""
    assert url.parse_url(left).equals(url.parse_url(right)) is want


def test_equality_with_something_else() -> None:
    """A URL cannot be compared with a string."""
    with pytest.raises(EvaluationError):
        url.parse_url("http://h/").equals("http://h/")


@given(PATHS)
def test_escaped_path_is_a_fixed_point(path: str) -> None:
    """A path that was escaped once stays as it is."""
    escaped = FUNCTIONS["url_get_escaped_path"](url.parse_url(f"http://host/{path}"))
    assert FUNCTIONS["url_get_escaped_path"](url.parse_url(f"http://host{escaped}")) == escaped
