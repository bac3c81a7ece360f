"""`pods/NAME/log`: the log of a container, as its node has it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from drayman.api.times import MomentRangeError, moment_of
from drayman.api.validation import FieldError
from drayman.api.validation.field_errors import forbidden, invalid
from drayman.apiserver.protocol.errors import StatusError, Subject, bad_request
from drayman.apiserver.protocol.errors import invalid as invalid_status
from drayman.apiserver.protocol.exchange import Answer, Query, Response, StreamingResponse
from drayman.apiserver.protocol.options import integer
from drayman.apiserver.reaching.containers import (
    container_of,
    named,
    node_api_of,
    pod_of,
    query_of,
)
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.served.resources import Subresource
from drayman.node.streams.model import LogOptions, NodeApiError
from drayman.workloads.dispatching.pods import cluster_of

_TEXT: Final = "text/plain"
_POSITIVE: Final = "must be greater than 0"
_GO_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_REASONS: Final = {400: "BadRequest", 404: "NotFound"}


def log_options(query: Query, pod: str) -> LogOptions:
    """Raises StatusError 400 or 422."""
    options = LogOptions(
        follow=bool(query.flag("follow")),
        previous=bool(query.flag("previous")),
        timestamps=bool(query.flag("timestamps")),
        since=_moment(query.text("sinceTime")),
        since_seconds=integer(query, "sinceSeconds"),
        tail=integer(query, "tailLines"),
        limit_bytes=integer(query, "limitBytes"),
        trusts_any_certificate=bool(query.flag("insecureSkipTLSVerifyBackend")),
    )
    errors = list(_errors(options, query))
    if errors:
        raise invalid_status(Subject("PodLogOptions", name=pod), errors)
    return options


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return moment_of(text)
    except MomentRangeError as error:
        raise bad_request(f"sinceTime: {error}") from error
    except ValueError as error:
        message = f'parsing time "{text}" as "{_GO_LAYOUT}": cannot parse "{text}" as "2006"'
        raise bad_request(message) from error


def _errors(options: LogOptions, query: Query) -> Iterator[FieldError]:
    if options.tail is not None and options.tail < 0:
        yield invalid("tailLines", options.tail, "must be greater than or equal to 0")
    if options.limit_bytes is not None and options.limit_bytes < 1:
        yield invalid("limitBytes", options.limit_bytes, _POSITIVE)
    if options.since_seconds is not None and options.since is not None:
        detail = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        yield forbidden("sinceSeconds", detail)
    elif options.since_seconds is not None and options.since_seconds < 1:
        yield invalid("sinceSeconds", options.since_seconds, _POSITIVE)
    if query.get("stream") is not None:
        yield forbidden("stream", "may not be specified")


async def log(call: Call) -> Answer:
    """Raises StatusError. A pod without a node has no log yet, which is not an error."""
    pod = pod_of(call)
    query = query_of(call)
    options = log_options(query, call.name)
    name = named(pod, container_of(query, pod))
    if not pod["spec"].get("nodeName") and not cluster_of(pod.get("status")):
        return Response(204, b"", _TEXT)
    api = node_api_of(call, pod, "its log")
    try:
        chunks = await api.logs(name, options)
    except NodeApiError as error:
        raise StatusError(error.code, _REASONS.get(error.code, ""), str(error)) from error
    return StreamingResponse(chunks, content_type=_TEXT)


LOG: Final = Subresource(name="log", verbs=("get",), handlers={"get": log})
