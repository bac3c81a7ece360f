"""`semver()`: semantic versions in expressions, version 1 of the library, which can normalize."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from drayman.api.semver import Version
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Function, Library, Overload
from drayman.cel.libraries.rules import (
    nominal_cost,
    nominal_estimate,
    traversal_cost,
    traversal_estimate,
)
from drayman.cel.types import BOOL, INT, STRING, Type, object_type
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


def _parse(text: str, normalized: bool) -> Version:
    version = Version.parse(normalize(text) if normalized else text)
    if max(version.major, version.minor, version.patch) > UINT_MAX:
        raise ValueError(f"{text!r} has a number that is too large")
    return version


def parse_semver(text: str, normalized: bool = False) -> SemverValue:
    try:
        return SemverValue(_parse(text, normalized))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def is_semver(text: str, normalized: bool = False) -> bool:
    try:
        _parse(text, normalized)
    except ValueError:
        return False
    return True


def is_greater_than(left: SemverValue, right: SemverValue) -> bool:
    return left.version > right.version


def is_less_than(left: SemverValue, right: SemverValue) -> bool:
    return left.version < right.version


def compare_to(left: SemverValue, right: SemverValue) -> int:
    return (left.version > right.version) - (left.version < right.version)


def _signed(number: int) -> int:
    """The number as a signed 64-bit integer, to which upstream converts it unchecked."""
    return (number + 2**63) % 2**64 - 2**63


def major(value: SemverValue) -> int:
    return _signed(value.version.major)


def minor(value: SemverValue) -> int:
    return _signed(value.version.minor)


def patch(value: SemverValue) -> int:
    return _signed(value.version.patch)


def _reading(
    name: str, ids: tuple[str, str], implementation: Callable[..., object], result: Type
) -> Function:
    """A function of a text, with or without the flag to normalize it."""
    overloads = (
        Overload(ids[0], (STRING,), result, implementation),
        Overload(ids[1], (STRING, BOOL), result, implementation),
    )
    return Function(name, overloads, traversal_estimate(), traversal_cost())


def _member(
    name: str, id: str, implementation: Callable[..., object], result: Type, *others: Type
) -> Function:
    overload = Overload(id, (SEMVER, *others), result, implementation, member=True)
    return Function(name, (overload,), nominal_estimate, nominal_cost)


SEMVERS = Library(
    "kubernetes.Semver",
    functions=(
        _reading("semver", ("string_to_semver", "string_bool_to_semver"), parse_semver, SEMVER),
        _reading("isSemver", ("is_semver_string", "is_semver_string_bool"), is_semver, BOOL),
        _member("isGreaterThan", "semver_is_greater_than", is_greater_than, BOOL, SEMVER),
        _member("isLessThan", "semver_is_less_than", is_less_than, BOOL, SEMVER),
        _member("compareTo", "semver_compare_to", compare_to, INT, SEMVER),
        _member("major", "semver_major", major, INT),
        _member("minor", "semver_minor", minor, INT),
        _member("patch", "semver_patch", patch, INT),
    ),
    equality={SEMVER.name: nominal_estimate},
)
