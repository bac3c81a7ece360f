"""Semantic versions in expressions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cel.environments import FUNCTIONS
from drayman.cel.errors import EvaluationError
from drayman.cel.libraries import semver
from drayman.cel.libraries.semver import parse_semver

NUMBERS = st.integers(0, 2**63 - 1)


@pytest.mark.parametrize(
    ("text", "strict", "normalized"),
    [
        ("1.2.3", "1.2.3", "1.2.3"),
        ("1.2.3-rc.1+b5", "1.2.3-rc.1+b5", "1.2.3-rc.1+b5"),
        ("v1.2.3", None, "1.2.3"),
        ("vv1.2.3", None, None),
        ("1.2", None, "1.2.0"),
        ("v1", None, "1.0.0"),
        ("01.002.0003", None, "1.2.3"),
        ("00.1.2", None, "0.1.2"),
        ("1.2.03-rc", None, "1.2.3-rc"),
        ("1.2.00-rc", None, "1.2.0-rc"),
        ("1.2-rc", None, None),
        ("1+build", None, None),
        ("", None, None),
        ("x", None, None),
        ("1.2.3.4", None, None),
        ("1..3", None, None),
        (" 1.2.3", None, None),
        ("18446744073709551616.0.0", None, None),
    ],
)
def test_parsing(text: str, strict: str | None, normalized: str | None) -> None:
    """Strict parsing wants the standard's form; normalizing drops a `v` and zeros and adds what is missing."""
    for flag, want in ((False, strict), (True, normalized)):
        assert semver.is_semver(text, flag) is (want is not None)
        if want is None:
            with pytest.raises(EvaluationError):
                parse_semver(text, flag)
        else:
            assert str(parse_semver(text, flag).version) == want


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        ("1.2.3", "1.10.0", -1),
        ("2.0.0", "1.9.9", 1),
        ("1.0.0-alpha", "1.0.0", -1),
        ("1.0.0-alpha.2", "1.0.0-alpha.10", -1),
        ("1.0.0-alpha", "1.0.0-alpha.1", -1),
        ("1.0.0-1", "1.0.0-a", -1),
        ("1.0.0+b1", "1.0.0+b2", 0),
    ],
)
def test_precedence(left: str, right: str, want: int) -> None:
    """Versions compare by precedence; build metadata does not count."""
    a, b = parse_semver(left), parse_semver(right)
    assert FUNCTIONS["semver_compare_to"](a, b) == want
    assert FUNCTIONS["semver_compare_to"](b, a) == -want
    assert FUNCTIONS["semver_is_less_than"](a, b) is (want < 0)
    assert FUNCTIONS["semver_is_greater_than"](a, b) is (want > 0)
    assert a.equals(b) is (want == 0)


def test_numbers_beyond_int() -> None:
    """A number that is no 64-bit int compares as it is and reads as what its bits are with a sign."""
    value = parse_semver("18446744073709551615.0.0")
    assert FUNCTIONS["semver_is_greater_than"](value, parse_semver("1.0.0"))
    assert FUNCTIONS["semver_major"](value) == -1


def test_equality_with_something_else() -> None:
    """A version cannot be compared with a string."""
    with pytest.raises(EvaluationError):
        parse_semver("1.0.0").equals("1.0.0")


@given(NUMBERS, NUMBERS, NUMBERS)
def test_numbers(major: int, minor: int, patch: int) -> None:
    """The three numbers come back."""
    value = parse_semver(f"{major}.{minor}.{patch}")
    assert (
        FUNCTIONS["semver_major"](value),
        FUNCTIONS["semver_minor"](value),
        FUNCTIONS["semver_patch"](value),
    ) == (major, minor, patch)


@given(st.lists(NUMBERS, min_size=1, max_size=3), st.integers(0, 3))
def test_normalizing_is_idempotent(numbers: list[int], zeros: int) -> None:
    """What was normalized once is strict and stays as it is."""
    text = semver.normalize("v" + ".".join("0" * zeros + str(number) for number in numbers))
    assert semver.is_semver(text)
    assert semver.normalize(text) == text
