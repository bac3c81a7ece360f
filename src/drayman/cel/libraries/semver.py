"""`semver()`: semantic versions in expressions, version 1 of the library, which can normalize."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from drayman.api.semver import Version
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Library, member, priced, static, succeeds
from drayman.cel.libraries.rules import NOMINAL, TRAVERSAL, nominal_estimate
from drayman.cel.types import BOOL, INT, STRING, object_type
from drayman.cel.values import UINT_MAX, Opaque, no_such_overload

SEMVER = object_type("kubernetes.Semver")


@dataclass(frozen=True, slots=True, eq=False)
class SemverValue(Opaque):
    """A version. Build metadata does not count in comparisons."""

    type_name: ClassVar[str] = SEMVER.name
    hashable: ClassVar[bool] = False

    version: Version

    def equals(self, other: object) -> bool:
        if not isinstance(other, SemverValue):
            raise no_such_overload()
        return self.version == other.version


def normalize(text: str) -> str:
    """Without a leading `v` and leading zeros, and with three numbers. Raises ValueError for a short pre-release."""
    parts = text.removeprefix("v").split(".", 2)
    parts = [_without_leading_zeros(part) for part in parts]
    if len(parts) < 3:
        if any(mark in parts[-1] for mark in "+-"):
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _without_leading_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in set("0123456789") else f"0{stripped}"


def _parse(text: str, normalized: bool = False) -> Version:
    version = Version.parse(normalize(text) if normalized else text)
    if max(version.major, version.minor, version.patch) > UINT_MAX:
        raise ValueError(f"{text!r} has a number that is too large")
    return version


def parse_semver(text: str, normalized: bool = False) -> SemverValue:
    try:
        return SemverValue(_parse(text, normalized))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


is_semver = succeeds(_parse)


def _is_greater(left: SemverValue, right: SemverValue) -> bool:
    return left.version > right.version


def _is_less(left: SemverValue, right: SemverValue) -> bool:
    return left.version < right.version


def compare_to(left: SemverValue, right: SemverValue) -> int:
    return (left.version > right.version) - (left.version < right.version)


def _signed(number: int) -> int:
    """The number as a signed 64-bit integer, to which upstream converts it unchecked."""
    return (number + 2**63) % 2**64 - 2**63


_PAIR = (SEMVER, SEMVER)

SEMVERS = Library(
    "kubernetes.Semver",
    functions=(
        *priced(
            TRAVERSAL,
            static("semver", "string_to_semver", (STRING,), SEMVER, parse_semver),
            static("semver", "string_bool_to_semver", (STRING, BOOL), SEMVER, parse_semver),
            static("isSemver", "is_semver_string", (STRING,), BOOL, is_semver),
            static("isSemver", "is_semver_string_bool", (STRING, BOOL), BOOL, is_semver),
        ),
        *priced(
            NOMINAL,
            member("isGreaterThan", "semver_is_greater_than", _PAIR, BOOL, _is_greater),
            member("isLessThan", "semver_is_less_than", _PAIR, BOOL, _is_less),
            member("compareTo", "semver_compare_to", _PAIR, INT, compare_to),
            member("major", "semver_major", (SEMVER,), INT, lambda v: _signed(v.version.major)),
            member("minor", "semver_minor", (SEMVER,), INT, lambda v: _signed(v.version.minor)),
            member("patch", "semver_patch", (SEMVER,), INT, lambda v: _signed(v.version.patch)),
        ),
    ),
    equality={SEMVER.name: nominal_estimate},
)
