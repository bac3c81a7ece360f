"""`url()` and the parts of a URL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from drayman.cel.costs import STRING_TRAVERSAL, CallEstimate, CostEstimate, CostNode
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Function, Library, Overload
from drayman.cel.libraries import uri
from drayman.cel.libraries.rules import (
    nominal_cost,
    nominal_estimate,
    traversal_cost,
    traversal_estimate,
)
from drayman.cel.types import BOOL, STRING, Type, list_of, map_of, object_type
from drayman.cel.values import MapValue, Opaque, no_such_overload

URL = object_type("kubernetes.URL")


@dataclass(frozen=True, slots=True, eq=False)
class UrlValue(Opaque):
    type_name: ClassVar[str] = URL.name

    url: uri.Url

    def equals(self, other: object) -> bool:
        if not isinstance(other, UrlValue):
            raise no_such_overload()
        return str(self.url) == str(other.url)


def parse_url(text: str) -> UrlValue:
    try:
        uri.parse_request(text)
        return UrlValue(uri.parse(text))
    except ValueError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


def is_url(text: str) -> bool:
    try:
        uri.parse_request(text)
    except ValueError:
        return False
    return True


def get_scheme(value: UrlValue) -> str:
    return value.url.scheme.decode()


def get_host(value: UrlValue) -> str:
    return value.url.host.decode(errors="replace")


def get_hostname(value: UrlValue) -> str:
    return value.url.hostname


def get_port(value: UrlValue) -> str:
    return value.url.port


def get_escaped_path(value: UrlValue) -> str:
    return value.url.escaped_path


def get_query(value: UrlValue) -> MapValue:
    return MapValue.of(value.url.query_values().items())


def _accessor(
    name: str, id: str, implementation: Callable[[UrlValue], object], result: Type = STRING
) -> Function:
    return Function(
        name,
        (Overload(id, (URL,), result, implementation, member=True),),
        nominal_estimate,
        nominal_cost,
    )


def _equality_estimate(args: Sequence[CostNode]) -> CallEstimate:
    size = args[1].computed_size
    longest = size.max if size is not None else 1
    return CallEstimate(CostEstimate(1, longest).scaled(STRING_TRAVERSAL))


URLS = Library(
    "kubernetes.urls",
    functions=(
        Function(
            "url",
            (Overload("string_to_url", (STRING,), URL, parse_url),),
            traversal_estimate(keeps_size=True),
            traversal_cost(),
        ),
        _accessor("getScheme", "url_get_scheme", get_scheme),
        _accessor("getHost", "url_get_host", get_host),
        _accessor("getHostname", "url_get_hostname", get_hostname),
        _accessor("getPort", "url_get_port", get_port),
        _accessor("getEscapedPath", "url_get_escaped_path", get_escaped_path),
        _accessor("getQuery", "url_get_query", get_query, map_of(STRING, list_of(STRING))),
        Function("isURL", (Overload("is_url_string", (STRING,), BOOL, is_url),)),
    ),
    equality={URL.name: _equality_estimate},
)
