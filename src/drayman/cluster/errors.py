"""Every exception of the `cluster` package.

    ClusterError
    ├── ConfigurationError            kubeconfig or in-cluster files do not say how to reach a cluster
    │   └── NoClusterError            nothing names a cluster at all
    ├── CredentialsError              a token file or an exec plugin gave no usable credentials
    ├── UnreachableError              no answer; `outcome_unknown` says whether the request may have been carried out
    │   ├── NoConnectionError         no connection was made, so the request was never sent
    │   │   └── UnknownHostError      the server's name does not resolve
    │   ├── SilentError               connected, but no answer came in time
    │   └── UntrustedError            the server did not prove who it is, or refused our certificate
    ├── ProtocolError                 an answer that no Kubernetes API server gives, or one that was cut off
    ├── PartialWriteError             several writes at once: one was refused and the clean-up after it failed too
    ├── LeadershipLostError           another candidate holds the lease
    └── StatusError                   the server refused; carries its Status
        ├── BadRequestError           400
        ├── UnauthorizedError         401
        ├── ForbiddenError            403
        ├── NotFoundError             404
        ├── MethodNotAllowedError     405
        ├── NotAcceptableError        406
        ├── AlreadyExistsError        409
        ├── ConflictError             409, the object changed in the meantime
        ├── ExpiredError              410, the version asked for is no longer kept
        ├── TooLargeError             413
        ├── UnsupportedMediaTypeError 415
        ├── InvalidError              422, with a cause per field
        ├── TooManyRequestsError      429
        ├── InternalError             500
        ├── UnavailableError          503
        └── ServerTimeoutError        504

Refusals are distinguished by class, never by text. The class follows the reason of the Status, or its code where the reason is not known
here.
"""

from __future__ import annotations

from typing import Final

import msgspec

from drayman.api import codec
from drayman.api.errors import DecodeError
from drayman.api.struct import ApiStruct, Json

HELD_BY: Final = "HeldBy"
"""The reason of a cause that names another holder."""


class StatusCause(ApiStruct):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(ApiStruct):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class StatusMetadata(ApiStruct):
    """Metadata of a Status: a list whose continue token expired gets a new one here."""

    continue_: str = msgspec.field(name="continue", default="")


class Status(ApiStruct):
    """How a server says that it refused, and why."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails = StatusDetails()
    metadata: StatusMetadata = StatusMetadata()


class ClusterError(Exception):
    """Base of this package's exceptions."""


class ConfigurationError(ClusterError):
    """The configuration does not say how to reach a cluster; names the file and the entry."""


class NoClusterError(ConfigurationError):
    """Neither a file nor the environment names a cluster."""


class CredentialsError(ClusterError):
    """Credentials could not be obtained: a token file cannot be read, an exec plugin failed."""


class UnreachableError(ClusterError):
    """The server gave no answer.

    `outcome_unknown` is true when the request may have been sent: a write may then have been carried out or not, and only a
    read can tell. `why` is the message without the request.
    """

    def __init__(self, message: str, *, outcome_unknown: bool, why: str = "") -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown
        self.why = why or message


class NoConnectionError(UnreachableError):
    """No connection was made: it was refused, there is no route, or nothing answered."""

    def __init__(self, message: str, *, why: str = "") -> None:
        super().__init__(message, outcome_unknown=False, why=why)


class UnknownHostError(NoConnectionError):
    """The name of the server does not resolve to an address."""


class SilentError(UnreachableError):
    """The server took the request and did not answer in time."""

    def __init__(self, message: str, *, why: str = "") -> None:
        super().__init__(message, outcome_unknown=True, why=why)


class UntrustedError(UnreachableError):
    """No connection was made because TLS failed: asking again will not help."""

    def __init__(self, message: str, *, why: str = "") -> None:
        super().__init__(message, outcome_unknown=False, why=why)


class ProtocolError(ClusterError):
    """An answer that is not what the Kubernetes API promises, such as a stream that ends within an object."""


class PartialWriteError(ClusterError):
    """Several writes at once were refused part way, and not all of the earlier ones could be taken back.

    `left_behind` names the objects that stay; the refusal itself is the `__cause__`.
    """

    def __init__(self, left_behind: tuple[str, ...]) -> None:
        super().__init__(f"could not take back: {', '.join(left_behind)}")
        self.left_behind = left_behind


class LeadershipLostError(ClusterError):
    """The lease could not be renewed in time, or another candidate took it."""


class StatusError(ClusterError):
    """The server refused a request."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message or f"HTTP {status.code}")
        self.status = status

    @property
    def code(self) -> int:
        return self.status.code

    @property
    def reason(self) -> str:
        return self.status.reason

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        """What is wrong field by field, where the server says so."""
        return self.status.details.causes

    @property
    def retry_after(self) -> int:
        """Seconds after which the server wants to be asked again; 0 where it does not say."""
        return self.status.details.retry_after_seconds


class BadRequestError(StatusError):
    """The request makes no sense to the server."""


class UnauthorizedError(StatusError):
    """The server does not know who is asking."""


class ForbiddenError(StatusError):
    """The server knows who is asking, and does not allow it."""


class NotFoundError(StatusError):
    """The object, its namespace or the kind does not exist."""


class MethodNotAllowedError(StatusError):
    """The resource has no such verb."""


class NotAcceptableError(StatusError):
    """The server cannot answer in the form asked for."""


class AlreadyExistsError(StatusError):
    """An object of that name already exists."""


class ConflictError(StatusError):
    """The object is not at the version that the write was made for, its fields have another owner, or others hold what it wants."""

    @property
    def holders(self) -> tuple[tuple[str, str], ...]:
        """The claims, by namespace and name, that hold a device that was to be allocated. An embedded server names them."""
        found = (cause.message.partition("/") for cause in self.causes if cause.reason == HELD_BY)
        return tuple((namespace, name) for namespace, _, name in found)


class ExpiredError(StatusError):
    """The version asked for is no longer kept: list again."""

    @property
    def continue_(self) -> str:
        """A token with which an expired list goes on at the current version; empty where the server gives none."""
        return self.status.metadata.continue_


class TooLargeError(StatusError):
    """The request's body is larger than the server takes."""


class UnsupportedMediaTypeError(StatusError):
    """The server does not read bodies, or patches, of that type for this resource."""


class InvalidError(StatusError):
    """The object breaks rules of its kind: see `causes`."""


class TooManyRequestsError(StatusError):
    """The server wants to be asked later, or a disruption budget forbids an eviction now."""


class InternalError(StatusError):
    """The server failed."""


class UnavailableError(StatusError):
    """The server cannot answer at the moment."""


class ServerTimeoutError(StatusError):
    """The server did not finish in time. A write may have been carried out."""


_BY_REASON: Final[dict[str, type[StatusError]]] = {
    "BadRequest": BadRequestError,
    "Unauthorized": UnauthorizedError,
    "Forbidden": ForbiddenError,
    "NotFound": NotFoundError,
    "MethodNotAllowed": MethodNotAllowedError,
    "NotAcceptable": NotAcceptableError,
    "AlreadyExists": AlreadyExistsError,
    "Conflict": ConflictError,
    "Gone": ExpiredError,
    "Expired": ExpiredError,
    "RequestEntityTooLarge": TooLargeError,
    "UnsupportedMediaType": UnsupportedMediaTypeError,
    "Invalid": InvalidError,
    "TooManyRequests": TooManyRequestsError,
    "InternalError": InternalError,
    "ServiceUnavailable": UnavailableError,
    "Timeout": ServerTimeoutError,
    "ServerTimeout": ServerTimeoutError,
}

_BY_CODE: Final[dict[int, type[StatusError]]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    405: MethodNotAllowedError,
    406: NotAcceptableError,
    409: ConflictError,
    410: ExpiredError,
    413: TooLargeError,
    415: UnsupportedMediaTypeError,
    422: InvalidError,
    429: TooManyRequestsError,
    500: InternalError,
    502: UnavailableError,
    503: UnavailableError,
    504: ServerTimeoutError,
}


def is_final(error: ClusterError) -> bool:
    """Whether a write was refused for what it contains, so that the same write will be refused again.

    A uid that differs is not such a reason: servers say that it cannot be changed when they mean that it is a different object.
    """
    if not isinstance(error, BadRequestError | TooLargeError | InvalidError):
        return False
    return all(cause.field != "metadata.uid" for cause in error.causes)


def error_from_status(status: Status) -> StatusError:
    """The exception for a Status."""
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code) or StatusError
    return kind(status)


def error_from_value(value: Json) -> StatusError:
    """The exception for a Status as decoded JSON, as in an ERROR event of a watch."""
    try:
        return error_from_status(codec.convert(Status, value))
    except DecodeError:
        return InternalError(Status(status="Failure", code=500, message=f"not a Status: {value!r}"))


_LONGEST_QUOTE: Final = 500


def error_from_response(code: int, body: bytes, retry_after: str | None = None) -> StatusError:
    """The exception for an HTTP answer, including one that a proxy gave in its own words."""
    status = _decode_status(body)
    if status is None:
        text = body[:_LONGEST_QUOTE].decode(errors="replace").strip()
        status = Status(status="Failure", code=code, message=text or f"HTTP {code}")
    if status.code == 0:
        status = msgspec.structs.replace(status, code=code)
    if retry_after is not None and retry_after.isascii() and retry_after.isdigit():
        details = msgspec.structs.replace(status.details, retry_after_seconds=int(retry_after))
        status = msgspec.structs.replace(status, details=details)
    return error_from_status(status)


class _Kinded(ApiStruct):
    kind: str = ""


def _decode_status(body: bytes) -> Status | None:
    try:
        if codec.decode(_Kinded, body).kind != "Status":
            return None
        return codec.decode(Status, body)
    except DecodeError:
        return None
