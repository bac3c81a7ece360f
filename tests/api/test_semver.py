"""Semantic versions: form and precedence."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.errors import VersionError
from drayman.api.semver import Version, is_valid

# Each comes before the next; the middle part is the example of semver.org.
ASCENDING = [
    "0.0.0-0",
    "0.0.0",
    "0.0.1",
    "0.9.0",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.2.0",
    "1.10.0",
    "2.0.0",
]
BAD = [
    "",
    "1",
    "1.2",
    "v1.2.3",
    "1.2.3.4",
    "01.2.3",
    "1.02.3",
    "1.2.3-",
    "1.2.3-01",
    "1.2.3+",
    "1.2.3-a..b",
    "1.2.3 ",
    "1.2.3\n",
    "-1.2.3",
    "1.2.3-ä",
    "١.2.3",
    "1.0.0-" + "a" * 300,
]


@pytest.mark.parametrize(("lower", "higher"), list(pairwise(ASCENDING)))
def test_precedence(lower: str, higher: str) -> None:
    """Numbers count as numbers, a pre-release comes before its release, words after numbers."""
    assert Version.parse(lower) < Version.parse(higher)


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text[:20]))
def test_no_version(text: str) -> None:
    """What is not exactly a semantic version is refused."""
    assert not is_valid(text)
    with pytest.raises(VersionError):
        Version.parse(text)


def test_build_metadata_does_not_count() -> None:
    """Versions that differ in build metadata are equal, and still print what they were."""
    a, b = Version.parse("1.0.0+a"), Version.parse("1.0.0+b.1")
    assert a == b
    assert hash(a) == hash(b)
    assert (str(a), str(b)) == ("1.0.0+a", "1.0.0+b.1")


numbers = st.integers(0, 10**12)
words = st.from_regex(r"0|[1-9][0-9]{0,5}|[0-9]{0,2}[a-zA-Z-][0-9a-zA-Z-]{0,5}", fullmatch=True)
versions = st.builds(
    Version,
    numbers,
    numbers,
    numbers,
    st.lists(words, max_size=3).map(tuple),
    st.lists(words, max_size=2).map(tuple),
)


@given(versions)
def test_printing_and_parsing_is_identity(version: Version) -> None:
    """A version's text is a version again, the same one."""
    assert is_valid(str(version))
    assert Version.parse(str(version)) == version


@given(versions, versions, versions)
def test_order_is_total(a: Version, b: Version, c: Version) -> None:
    """Any two versions compare one way, and comparison is transitive."""
    assert sum((a < b, a == b, a > b)) == 1
    assert not (a <= b and b <= c) or a <= c
