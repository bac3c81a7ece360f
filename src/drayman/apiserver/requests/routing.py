"""From a path and a method to a resource and what to do with it.

Paths below a group version have one of four forms: a collection, an object, a part of an object, and the first three within a
namespace. The table of resources defines what is served there and with which verbs; nothing is registered twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.apiserver.protocol.errors import (
    bad_request,
    method_not_allowed,
    no_such_resource,
    not_found,
)
from drayman.apiserver.protocol.exchange import Request
from drayman.apiserver.served.resources import ApiResource, Resources, Subresource

_COLLECTION_VERBS: Final = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT_VERBS: Final = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PART_VERBS: Final = {**_OBJECT_VERBS, "POST": "create"}
CONNECTED: Final = frozenset({"attach", "exec", "portforward", "proxy"})
"""Parts of an object that take any method and any path after their name."""


class PageNotFound(Exception):
    """There is nothing at a path, not even something that could answer with a Status."""


@dataclass(frozen=True, slots=True)
class Route:
    """A request to a resource."""

    resource: ApiResource
    version: str
    verb: str
    namespace: str = ""
    name: str = ""
    subresource: Subresource | None = None
    rest: str = ""
    """What follows the name of a connected subresource."""


def split_group_version(path: str) -> tuple[str, str, list[str]] | None:
    """Group, version and the segments after them; None for a path without a group version."""
    root, _, rest = path.lstrip("/").partition("/")
    segments = rest.split("/")
    if root == "api" and segments[0]:
        return "", segments[0], segments[1:]
    if root == "apis" and len(segments) > 1 and segments[0] and segments[1]:
        return segments[0], segments[1], segments[2:]
    return None


def find_route(
    resources: Resources, request: Request, group: str, version: str, segments: list[str]
) -> Route:
    """The route of a request below a group version that is served. Raises StatusError 400, 404 or 405."""
    if segments and segments[-1] == "":
        segments = segments[:-1]  # One trailing slash is ignored.
    if not segments or "" in segments:
        raise no_such_resource()
    watch = segments[0] == "watch" and len(segments) > 1
    if watch:
        segments = segments[1:]
    namespace, segments = _split_namespace(segments)
    resource = resources.find(group, version, segments[0])
    if resource is None or (namespace and not resource.namespaced):
        raise _unserved(resources, group)
    name = segments[1] if len(segments) > 1 else ""
    _check_name(name)
    if name and resource.namespaced and not namespace:
        raise no_such_resource()
    if watch:
        return _require(Route(resource, version, "watch", namespace, name))
    if len(segments) > 2:
        return _part(request, resource, version, namespace, segments[1:])
    return _require(
        Route(resource, version, _verb(request, resource, namespace, name), namespace, name)
    )


def _unserved(resources: Resources, group: str) -> Exception:
    """Custom groups have no handler of their own, so the answer is only that there is no such page."""
    found = [resource for resource in resources if resource.group == group]
    if found and all(resource.custom for resource in found):
        return PageNotFound(group)
    return no_such_resource()


def _split_namespace(segments: list[str]) -> tuple[str, list[str]]:
    """`namespaces/N/pods/…` is about pods; `namespaces/N` and its own parts are about the namespace."""
    if (
        segments[0] == "namespaces"
        and len(segments) > 2
        and segments[2] not in ("status", "finalize")
    ):
        return segments[1], segments[2:]
    return "", segments


def _check_name(name: str) -> None:
    for forbidden in ("/", "%"):
        if forbidden in name:
            raise bad_request(f"Name parameter invalid: \"{name}\": may not contain '{forbidden}'")
    if name in (".", ".."):
        raise bad_request(f"Name parameter invalid: \"{name}\": may not be '{name}'")


def _verb(request: Request, resource: ApiResource, namespace: str, name: str) -> str:
    verb = (_OBJECT_VERBS if name else _COLLECTION_VERBS).get(request.method)
    if verb is None:
        raise method_not_allowed()
    if verb == "list":
        return "watch" if request.query.flag("watch") else "list"
    if not name and resource.namespaced and not namespace:
        raise method_not_allowed()  # Requests across namespaces are read-only.
    return verb


def _require(route: Route) -> Route:
    if route.verb not in route.resource.verbs:
        raise method_not_allowed()
    return route


def _part(
    request: Request, resource: ApiResource, version: str, namespace: str, segments: list[str]
) -> Route:
    name, part, *rest = segments
    subresource = resource.subresource(part)
    if subresource is None or (rest and part not in CONNECTED):
        if resource.custom:
            raise not_found(resource.subject(name))
        raise no_such_resource()
    verb = _PART_VERBS.get(request.method)
    if verb is None or verb not in subresource.verbs:
        raise method_not_allowed()
    return Route(resource, version, verb, namespace, name, subresource, "/".join(rest))
