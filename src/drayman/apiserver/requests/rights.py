"""The rights that requests need, in the terms of authorization."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from drayman.api.formats import path_segment_problems
from drayman.apiserver.protocol.access import Attributes, denied
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.protocol.exchange import Query
from drayman.apiserver.requests.routing import Route
from drayman.apiserver.requests.selectors import Selector, parse_fields

if TYPE_CHECKING:
    from drayman.apiserver.requests.calls import Call


_CONNECTING: Final = frozenset({("pods", part) for part in ("attach", "exec", "portforward")})


def attributes_of(route: Route, query: Query) -> Attributes:
    """What a request to a resource must be authorized for.

    Browsers and kubectl open a WebSocket to a container with GET, but what follows is more than reading: it takes the same right as POST.
    """
    attributes = _attributes(route)
    if attributes.verb == "get" and (attributes.resource, attributes.subresource) in _CONNECTING:
        return replace(attributes, verb="create")
    if route.verb in ("list", "watch") and not route.name:
        return replace(attributes, name=_selected_name(route, query))
    return attributes


def authorize(call: Call, verb: str) -> None:
    """Require the right to do something else than what was asked for, as it amounts to that too. Raises StatusError 403."""
    attributes = replace(_attributes(call), verb=verb)
    decision = call.core.authorizer.authorize(call.user, attributes)
    if not decision.allowed:
        raise denied(call.user, attributes, decision.reason)


def _attributes(asked: Route | Call) -> Attributes:
    resource, name = asked.resource, asked.name
    # For authorization, a namespace belongs to itself.
    namespace = name if resource.storage_name == "namespaces" and name else asked.namespace
    part = asked.subresource.name if asked.subresource is not None else ""
    return Attributes(
        asked.verb, resource.group, asked.version, resource.plural, part, namespace, name
    )


def _selected_name(route: Route, query: Query) -> str:
    """The name that a list or watch is restricted to: a right to that one object suffices for it."""
    text = query.text("fieldSelector")
    if not text:
        return ""
    try:
        fields = parse_fields(text, route.resource, route.version)
    except StatusError:
        return ""  # The request is refused for its selector once it is authorized.
    name = Selector(fields=fields).only_name or ""
    return "" if path_segment_problems(name) else name
