"""A refusal becomes the exception that its Status names."""

from __future__ import annotations

import pytest

from drayman.api import codec
from drayman.cluster import errors
from drayman.cluster.errors import error_from_response, error_from_value, is_final

CASES = [
    (400, "BadRequest", errors.BadRequestError),
    (401, "Unauthorized", errors.UnauthorizedError),
    (403, "Forbidden", errors.ForbiddenError),
    (404, "NotFound", errors.NotFoundError),
    (405, "MethodNotAllowed", errors.MethodNotAllowedError),
    (406, "NotAcceptable", errors.NotAcceptableError),
    (409, "AlreadyExists", errors.AlreadyExistsError),
    (409, "Conflict", errors.ConflictError),
    (410, "Expired", errors.ExpiredError),
    (410, "Gone", errors.ExpiredError),
    (413, "RequestEntityTooLarge", errors.TooLargeError),
    (415, "UnsupportedMediaType", errors.UnsupportedMediaTypeError),
    (422, "Invalid", errors.InvalidError),
    (429, "TooManyRequests", errors.TooManyRequestsError),
    (500, "InternalError", errors.InternalError),
    (503, "ServiceUnavailable", errors.UnavailableError),
    (504, "Timeout", errors.ServerTimeoutError),
    (409, "", errors.ConflictError),
    (500, "", errors.InternalError),
    (502, "", errors.UnavailableError),
    (418, "SomethingNew", errors.StatusError),
]


def body(code: int, reason: str) -> bytes:
    value = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "no",
        "code": code,
    }
    return codec.encode_json(value | ({"reason": reason} if reason else {}))


@pytest.mark.parametrize(("code", "reason", "kind"), CASES)
def test_class_follows_reason_then_code(
    code: int, reason: str, kind: type[errors.StatusError]
) -> None:
    """The reason decides which exception it is, and the code where there is no reason that is known."""
    error = error_from_response(code, body(code, reason))
    assert type(error) is kind
    assert (error.code, error.reason, str(error)) == (code, reason, "no")


def test_invalid_names_its_fields() -> None:
    """What is wrong with an object is there field by field."""
    value = {
        "kind": "Status",
        "reason": "Invalid",
        "code": 422,
        "message": 'Pod "p" is invalid: spec.containers: Required value',
        "details": {
            "name": "p",
            "kind": "Pod",
            "causes": [
                {
                    "reason": "FieldValueRequired",
                    "message": "Required value",
                    "field": "spec.containers",
                }
            ],
        },
    }
    error = error_from_value(value)
    assert isinstance(error, errors.InvalidError)
    assert [(cause.field, cause.reason) for cause in error.causes] == [
        ("spec.containers", "FieldValueRequired")
    ]


def test_retry_after_comes_from_header_or_status() -> None:
    """When to come back is known whichever way the server says it; the header is the later word."""
    in_status = codec.encode_json(
        {"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 3}}
    )
    assert error_from_response(429, in_status).retry_after == 3
    assert error_from_response(429, in_status, "7").retry_after == 7
    assert error_from_response(429, b"slow down", "2").retry_after == 2
    assert error_from_response(503, b"", "Wed, 21 Oct 2026 07:28:00 GMT").retry_after == 0


@pytest.mark.parametrize(
    "text", [b"", b"<html>Bad Gateway</html>", b"{", b"[]", b'{"kind":"Pod"}', b"\xff"]
)
def test_answer_of_a_proxy_is_an_error_all_the_same(text: bytes) -> None:
    """What is no Status gets its class from the code, and is quoted."""
    error = error_from_response(502, text)
    assert isinstance(error, errors.UnavailableError)
    assert error.code == 502


def test_expired_list_carries_a_token_to_go_on() -> None:
    """The server offers to continue an expired list at the present version."""
    value = {"kind": "Status", "code": 410, "reason": "Expired", "metadata": {"continue": "abc"}}
    error = error_from_value(value)
    assert isinstance(error, errors.ExpiredError)
    assert error.continue_ == "abc"


def test_an_error_event_without_a_status_is_an_internal_error() -> None:
    """A watch that sends nonsense as an error does not break its reader."""
    assert isinstance(error_from_value(["what"]), errors.InternalError)


@pytest.mark.parametrize(
    ("code", "reason", "field", "final"),
    [
        (413, "RequestEntityTooLarge", "", True),
        (422, "Invalid", "spec.containers[0].name", True),
        (400, "BadRequest", "", True),
        (422, "Invalid", "metadata.uid", False),
        (403, "Forbidden", "", False),
        (409, "Conflict", "", False),
        (429, "TooManyRequests", "", False),
        (500, "InternalError", "", False),
    ],
)
def test_what_is_refused_for_its_content_is_refused_for_good(
    code: int, reason: str, field: str, final: bool
) -> None:
    """Only a change of what was written helps then. A uid that differs means another object, which time may settle."""
    causes = [{"field": field, "message": "m"}] if field else []
    status = {"kind": "Status", "code": code, "reason": reason, "details": {"causes": causes}}
    assert is_final(error_from_value(status)) is final
