"""Errors, in the form and wording that Kubernetes clients know.

A `StatusError` carries the content of the Status object that is sent for an error. The constructors below are the only place
that builds them, one for each reason in the API.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from drayman.api.struct import Json
from drayman.apiserver.protocol.field_values import error_body, error_text

if TYPE_CHECKING:
    from drayman.api.validation import FieldError


MOST_ERRORS: Final = 1_000
"""More is of no use, and an object with a hundred thousand wrong values would give an answer of fifty megabytes."""


@dataclass(frozen=True, slots=True)
class StatusCause:
    reason: str
    message: str
    field: str = ""

    def to_json(self) -> dict[str, Json]:
        members = {"reason": self.reason, "message": self.message, "field": self.field}
        return {name: value for name, value in members.items() if value}


@dataclass(frozen=True, slots=True)
class Subject:
    """What an error is about. `kind` is the name of the resource, or of the kind where validation refuses an object."""

    kind: str = ""
    group: str = ""
    name: str = ""
    uid: str = ""

    @property
    def qualified(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def to_json(self) -> dict[str, Json]:
        members = {"name": self.name, "group": self.group, "kind": self.kind, "uid": self.uid}
        return {name: value for name, value in members.items() if value}


@dataclass(slots=True)
class StatusError(Exception):
    """An error answered to a client. `subject` None means that the Status has no details."""

    code: int
    reason: str
    message: str
    subject: Subject | None = None
    causes: Sequence[StatusCause] = ()
    retry_after_seconds: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    continue_token: str = ""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.message

    def to_json(self) -> dict[str, Json]:
        """The Status object."""
        status: dict[str, Json] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.subject is not None:
            details = self.subject.to_json()
            if self.causes:
                details["causes"] = [cause.to_json() for cause in self.causes]
            if self.retry_after_seconds:
                details["retryAfterSeconds"] = self.retry_after_seconds
            status["details"] = details
        status["code"] = self.code
        return status


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(subject: Subject, why: str, causes: Sequence[StatusCause] = ()) -> StatusError:
    """Refused by admission or authorization."""
    about = f'{subject.qualified} "{subject.name}"' if subject.name else subject.qualified
    prefix = f"{about} is forbidden" if subject.kind else "forbidden"
    return StatusError(403, "Forbidden", f"{prefix}: {why}", subject, causes)


def not_found(subject: Subject) -> StatusError:
    message = f'{subject.qualified} "{subject.name}" not found'
    return StatusError(404, "NotFound", message, subject)


def no_such_resource() -> StatusError:
    message = "the server could not find the requested resource"
    return StatusError(404, "NotFound", message, Subject())


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, Subject())


def too_slow() -> StatusError:
    """A client does not send the body that it has announced."""
    message = "the body of the request was not received in time"
    return StatusError(408, "RequestTimeout", message, Subject())


def already_exists(subject: Subject) -> StatusError:
    message = f'{subject.qualified} "{subject.name}" already exists'
    return StatusError(409, "AlreadyExists", message, subject)


def no_free_name(subject: Subject) -> StatusError:
    """Every generated name is taken."""
    why = "the server was not able to generate a unique name for the object"
    error = already_exists(subject)
    error.message = f"{error.message}, {why}"
    error.retry_after_seconds = 1
    return error


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def conflict(subject: Subject, why: str = MODIFIED) -> StatusError:
    message = f'Operation cannot be fulfilled on {subject.qualified} "{subject.name}": {why}'
    return StatusError(409, "Conflict", message, subject)


def expired(message: str, continue_token: str = "") -> StatusError:
    return StatusError(410, "Expired", message, continue_token=continue_token)


def too_large(limit: int) -> StatusError:
    message = f"Request entity too large: limit is {limit}"
    return StatusError(413, "RequestEntityTooLarge", message)


def object_too_large(subject: Subject, size: int, limit: int) -> StatusError:
    message = f'{subject.qualified} "{subject.name}" is too large: {size} bytes, limit is {limit}'
    return StatusError(413, "RequestEntityTooLarge", message, subject)


def unknown_format(accepted: Iterable[str]) -> StatusError:
    """A body of a media type that is not accepted here."""
    types = ", ".join(accepted)
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {types}"
    )
    return StatusError(415, "UnsupportedMediaType", message)


def invalid(subject: Subject, errors: Iterable[FieldError]) -> StatusError:
    """Validation refuses an object. `subject.kind` is its kind. If there are very many errors, only the first are reported."""
    errors = list(islice(errors, MOST_ERRORS))
    shown = [error_text(error) for error in errors]
    unique = list(dict.fromkeys(shown))
    summary = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
    causes = [StatusCause(error.reason, error_body(error), error.path) for error in errors]
    message = f'{subject.qualified} "{subject.name}" is invalid: {summary}'
    return StatusError(422, "Invalid", message, subject, causes)


def rejected_patch() -> StatusError:
    """A JSON patch whose test or path fails: the answer names nothing."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, Subject())


def internal(message: str) -> StatusError:
    """An error that the real server answers with 500 and no reason."""
    return StatusError(500, "", message)


def internal_error(message: str) -> StatusError:
    text = f"Internal error occurred: {message}"
    return StatusError(500, "InternalError", text, Subject(), [StatusCause("", message)])
