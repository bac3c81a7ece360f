"""`url()` and the parts of a URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from drayman.cel.costs import STRING_TRAVERSAL, CallEstimate, CostEstimate, CostNode
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Library, member, priced, static, succeeds
from drayman.cel.libraries import uri
from drayman.cel.libraries.rules import NOMINAL, traversal_rule
from drayman.cel.types import BOOL, STRING, list_of, map_of, object_type
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


is_url = succeeds(uri.parse_request)


def _equality_estimate(args: Sequence[CostNode]) -> CallEstimate:
    size = args[1].computed_size
    longest = size.max if size is not None else 1
    return CallEstimate(CostEstimate(1, longest).scaled(STRING_TRAVERSAL))


def _query(value: UrlValue) -> MapValue:
    return MapValue.of(value.url.query_values().items())


_PARAMETERS = map_of(STRING, list_of(STRING))

URLS = Library(
    "kubernetes.urls",
    functions=(
        *priced(
            traversal_rule(keeps_size=True),
            static("url", "string_to_url", (STRING,), URL, parse_url),
        ),
        *priced(
            NOMINAL,
            member("getScheme", "url_get_scheme", (URL,), STRING, lambda v: v.url.scheme.decode()),
            member(
                "getHost",
                "url_get_host",
                (URL,),
                STRING,
                lambda v: v.url.host.decode(errors="replace"),
            ),
            member("getHostname", "url_get_hostname", (URL,), STRING, lambda v: v.url.hostname),
            member("getPort", "url_get_port", (URL,), STRING, lambda v: v.url.port),
            member(
                "getEscapedPath",
                "url_get_escaped_path",
                (URL,),
                STRING,
                lambda v: v.url.escaped_path,
            ),
            member("getQuery", "url_get_query", (URL,), _PARAMETERS, _query),
        ),
        static("isURL", "is_url_string", (STRING,), BOOL, is_url),
    ),
    equality={URL.name: _equality_estimate},
)
