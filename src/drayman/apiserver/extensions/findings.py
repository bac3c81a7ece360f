"""Errors of custom resources: the field errors of every kind, and two forms that only these have.

A value of the wrong type has its own reason, and errors of rules on objects and lists do not repeat the value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from drayman.api.validation.field_errors import ErrorKind, FieldError

NOWHERE: Final = "<nil>"
"""The field of an error about no field in particular."""
TYPE_INVALID: Final = "FieldValueTypeInvalid"
UNCHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to"
    " complete validation"
)
_BLOCKING: Final = frozenset(
    {ErrorKind.NOT_SUPPORTED, ErrorKind.REQUIRED, ErrorKind.TOO_LONG, ErrorKind.TOO_MANY}
)


@dataclass(frozen=True, slots=True)
class TypeInvalid(FieldError):
    """A value of a type other than the schema's."""

    @property
    def reason(self) -> str:
        return TYPE_INVALID


def type_invalid(path: str, value: object, detail: str) -> FieldError:
    return TypeInvalid(ErrorKind.INVALID, path, value, detail)


def invalid_unshown(path: str, detail: str) -> FieldError:
    """An error that shows the detail in place of the value."""
    return FieldError(ErrorKind.INVALID, path, msgspec.Raw(detail.encode()))


def blocking_error(errors: Iterable[FieldError]) -> FieldError | None:
    """The error that is added if rules cannot be evaluated, because the object does not have the right shape."""
    if any(error.kind in _BLOCKING or isinstance(error, TypeInvalid) for error in errors):
        return FieldError(ErrorKind.INVALID, NOWHERE, None, UNCHECKED)
    return None


def child(path: str, name: str) -> str:
    """The path of a member."""
    return f"{path}.{name}" if path else name


def entry(path: str, key: str | int) -> str:
    """The path of an entry of a map, or of an item of a list."""
    return f"{path}[{key}]"


def shown(path: str) -> str:
    """A path in an error: the root has no name."""
    return path or NOWHERE
