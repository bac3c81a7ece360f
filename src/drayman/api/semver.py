"""Semantic versions 2.0.0, strictly: three numbers, no leading zeros, no `v`.

Precedence is the standard's: numbers first, a pre-release before its release, pre-release parts one by one with numbers
before words. Build metadata is kept and does not count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from typing import Final

from drayman.api.errors import VersionError

MAX_LENGTH: Final = 256
"""Longest text that is looked at; the API allows 64 bytes."""

_CACHE_SIZE: Final = 1 << 12
_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_PRERELEASE_PART: Final = rf"(?:{_NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION: Final = re.compile(
    rf"(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})\.(?P<patch>{_NUMBER})"
    rf"(?:-(?P<prerelease>{_PRERELEASE_PART}(?:\.{_PRERELEASE_PART})*))?"
    r"(?:\+(?P<build>[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?"
)

_PartPrecedence = tuple[int, int, str]


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A semantic version. Equal, ordered and hashed by precedence, so build metadata does not count."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()
    build: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str) -> Version:
        """The version a text stands for. Raises VersionError; equal texts give the same object."""
        return _parse(text)

    def _precedence(self) -> tuple[int, int, int, bool, tuple[_PartPrecedence, ...]]:
        return (
            self.major,
            self.minor,
            self.patch,
            not self.prerelease,
            tuple(map(_part_precedence, self.prerelease)),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self._precedence() == other._precedence()

    def __lt__(self, other: Version) -> bool:
        return self._precedence() < other._precedence()

    def __hash__(self) -> int:
        return hash(self._precedence())

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(self.prerelease)
        if self.build:
            text += "+" + ".".join(self.build)
        return text


def is_valid(text: str) -> bool:
    """Whether a text is a semantic version."""
    return len(text) <= MAX_LENGTH and _VERSION.fullmatch(text) is not None


def _part_precedence(part: str) -> _PartPrecedence:
    """Numbers compare as numbers and come before words, which compare as ASCII."""
    return (0, int(part), "") if part.isdigit() else (1, 0, part)


@lru_cache(maxsize=_CACHE_SIZE)
def _parse(text: str) -> Version:
    match = _VERSION.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if match is None:
        raise VersionError(f"{text[:MAX_LENGTH]!r} is not a semantic version")
    return Version(
        int(match["major"]),
        int(match["minor"]),
        int(match["patch"]),
        tuple(match["prerelease"].split(".")) if match["prerelease"] else (),
        tuple(match["build"].split(".")) if match["build"] else (),
    )
