"""Field errors: what breaks which rule where, in the API server's terms.

The kinds are the API server's, and so are their names in a Status (`reason`) and the words of the details, because callers
compare them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from drayman.api.codec import encode_json
from drayman.api.quantity import Quantity

LONGEST_SHOWN_VALUE: Final = 200
"""Values are cut to this many characters in messages: an absurd input must not flood the terminal."""


class ErrorKind(Enum):
    """The kinds of field errors, each with the reason a Status gives for it."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    DUPLICATE = "FieldValueDuplicate"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    NOT_FOUND = "FieldValueNotFound"
    INTERNAL = "InternalError"

    @property
    def label(self) -> str:
        """What messages call the kind."""
        return _LABELS[self]


_LABELS: Final = {
    ErrorKind.REQUIRED: "Required value",
    ErrorKind.INVALID: "Invalid value",
    ErrorKind.TOO_LONG: "Too long",
    ErrorKind.TOO_MANY: "Too many",
    ErrorKind.DUPLICATE: "Duplicate value",
    ErrorKind.NOT_SUPPORTED: "Unsupported value",
    ErrorKind.FORBIDDEN: "Forbidden",
    ErrorKind.NOT_FOUND: "Not found",
    ErrorKind.INTERNAL: "Internal error",
}
_WITHOUT_VALUE: Final = frozenset(
    {ErrorKind.REQUIRED, ErrorKind.TOO_LONG, ErrorKind.FORBIDDEN, ErrorKind.INTERNAL}
)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One broken rule: its kind, the field, the value found there and what is wrong with it."""

    kind: ErrorKind
    path: str
    value: object = None
    detail: str = ""

    @property
    def reason(self) -> str:
        return self.kind.value

    @property
    def body(self) -> str:
        """The message without the field."""
        text = self.kind.label
        if self.kind not in _WITHOUT_VALUE:
            text += f": {_render(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


def _render(value: object) -> str:
    if isinstance(value, Quantity):
        value = str(value)
    text = (
        json.dumps(value, ensure_ascii=False)
        if isinstance(value, str)
        else encode_json(value).decode()
    )
    return elided(text, LONGEST_SHOWN_VALUE)


def elided(text: str, longest: int) -> str:
    """The text, cut to so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(ErrorKind.REQUIRED, path, "", detail)


def invalid(path: str, value: object, detail: str) -> FieldError:
    return FieldError(ErrorKind.INVALID, path, value, detail)


def invalid_each(path: str, value: object, problems: Iterable[str]) -> list[FieldError]:
    """An error for each of the problems of one value."""
    return [invalid(path, value, problem) for problem in problems]


def too_long(path: str, limit: int) -> FieldError:
    return FieldError(ErrorKind.TOO_LONG, path, None, f"may not be more than {limit} bytes")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    return FieldError(ErrorKind.TOO_MANY, path, actual, f"must have at most {limit} items")


def duplicate(path: str, value: object) -> FieldError:
    return FieldError(ErrorKind.DUPLICATE, path, value)


def not_supported(path: str, value: object, supported: Iterable[str]) -> FieldError:
    choices = ", ".join(f'"{choice}"' for choice in supported)
    return FieldError(ErrorKind.NOT_SUPPORTED, path, value, f"supported values: {choices}")


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(ErrorKind.FORBIDDEN, path, "", detail)


def not_found(path: str, value: object, detail: str = "") -> FieldError:
    return FieldError(ErrorKind.NOT_FOUND, path, value, detail)


def internal(path: str, detail: str) -> FieldError:
    return FieldError(ErrorKind.INTERNAL, path, None, detail)
