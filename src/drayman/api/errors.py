"""Every exception of the `api` package.

    ApiError
    ├── QuantityError       a text is not a quantity
    ├── VersionError        a text is not a semantic version
    ├── DecodeError         JSON is not the object it should be; names the field
    │   └── JsonError       a text is not JSON that is accepted here; names the line
    ├── BodyError           a request body cannot be decoded; says so in the words of the API server
    │   ├── UnrecognizedError   it is not JSON, YAML or protobuf, or does not say what it is
    │   └── MalformedError      it is an object, but a field has a value of the wrong type
    ├── SelectorError       a node or label selector cannot be understood
    ├── ConversionError     an object cannot be converted to the requested API version
    └── DocumentError       a file is not YAML or JSON that is accepted here; names file and line

Objects that decode but break a rule are not exceptions: see `drayman.api.validation`.
"""

from __future__ import annotations


class ApiError(ValueError):
    """Base of this package's exceptions: the input is not valid."""


class QuantityError(ApiError):
    """A text that is not a quantity, or one beyond what is supported."""


class VersionError(ApiError):
    """A text that is not a semantic version."""


class DecodeError(ApiError):
    """A JSON text or value that is not the object it should be.

    `path` names the field, as in `spec.devices[3].name`, and is empty where the whole is at fault.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message

    def under(self, prefix: str) -> DecodeError:
        """The same error as seen from an enclosing value."""
        return DecodeError(f"{prefix}.{self.path}" if self.path else prefix, self.message)


class JsonError(DecodeError):
    """Text that is not JSON, or JSON whose meaning would have to be guessed.

    `line` and `column` count from 1; the column is 0 where unknown. `is_syntax` says that it might still be YAML.
    """

    def __init__(self, line: int, reason: str, *, column: int = 0, is_syntax: bool = False) -> None:
        place = f"line {line}, column {column}" if column else f"line {line}"
        super().__init__("", f"{reason} ({place})")
        self.line = line
        self.column = column
        self.reason = reason
        self.is_syntax = is_syntax


class BodyError(ApiError):
    """A request body that cannot be decoded. `str()` is the text the API server is known to give."""


class UnrecognizedError(BodyError):
    """A body whose kind cannot even be determined."""


class MalformedError(BodyError):
    """A body of a known kind with a value that does not fit its field."""


class SelectorError(ApiError):
    """A selector with an operator or values that cannot be matched against anything."""


class ConversionError(ApiError):
    """An object whose kind does not exist in the requested API version."""


class DocumentError(ApiError):
    """A file or a document in it that cannot be read. `line` counts from 1 and is 0 where unknown."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}" if line else f"{file}: {message}")
        self.file = file
        self.line = line
        self.message = message
