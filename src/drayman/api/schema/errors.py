"""Why a request body is not the object it should be, in the words clients know.

ApiError                    (drayman.api.errors)
└── BodyError               what follows can be shown to the client as it is
    ├── UnrecognizedError   it is no JSON, YAML or protobuf, or does not tell what it is
    └── MalformedError      it is an object, but a field has a value of the wrong type
"""

from __future__ import annotations

from drayman.api.errors import ApiError


class BodyError(ApiError):
    """A request body that cannot be decoded. `str()` is the text the API server is known to give."""


class UnrecognizedError(BodyError):
    """A body whose kind cannot even be found out."""


class MalformedError(BodyError):
    """A body of a known kind with a value that does not fit its field."""
