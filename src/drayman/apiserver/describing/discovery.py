"""Discovery: what is served, in the old form (a document per group version) and in the aggregated one (everything at once).

Clients cache these, so the aggregated documents carry an ETag. Everything is derived from the table of resources and rebuilt only
when that has changed.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from drayman.apiserver.protocol.exchange import JSON_TYPE, Request, Response
from drayman.apiserver.protocol.negotiation import not_acceptable, parse_accept
from drayman.apiserver.served.encoding import encode
from drayman.apiserver.served.resources import ApiResource, GroupVersionKind, Resources, Subresource
from drayman.apiserver.served.strategy import Object

DISCOVERY_GROUP: Final = "apidiscovery.k8s.io"
AGGREGATED: Final = "APIGroupDiscoveryList"
AGGREGATED_VERSION: Final = "v2"


@dataclass(slots=True)
class Discovery:
    """The discovery documents of a table of resources."""

    resources: Resources
    address: str = ""
    """Host and port under which clients reach the server."""
    _generation: int = -1
    _aggregated: dict[str, Response] = field(default_factory=dict)

    def aggregated(self, request: Request, root: str) -> Response | None:
        """The aggregated document of `api` or `apis`, or None if the client does not ask for that. Raises StatusError 406."""
        form = _wanted_form(request)
        if form is None:
            return None
        if self._generation != self.resources.generation:
            self._aggregated.clear()
            self._generation = self.resources.generation
        if root not in self._aggregated:
            self._aggregated[root] = self._aggregate(root)
        made = self._aggregated[root]
        etag = made.headers["Etag"]
        if request.header("if-none-match") == etag:
            return Response(304, headers=dict(made.headers), content_type=made.content_type)
        return Response(200, made.body, made.content_type, dict(made.headers))

    def _aggregate(self, root: str) -> Response:
        groups = self.resources.groups()
        chosen = {g: v for g, v in groups.items() if (g == "") is (root == "api")}
        document = {
            "kind": AGGREGATED,
            "apiVersion": f"{DISCOVERY_GROUP}/{AGGREGATED_VERSION}",
            "metadata": {},
            "items": [self._group_item(group, versions) for group, versions in chosen.items()],
        }
        body = encode(document) + b"\n"
        etag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
        content_type = f"{JSON_TYPE};g={DISCOVERY_GROUP};v={AGGREGATED_VERSION};as={AGGREGATED}"
        headers = {"Etag": etag, "Cache-Control": "public", "Vary": "Accept"}
        return Response(200, body, content_type, headers)

    def _group_item(self, group: str, versions: Iterable[str]) -> Object:
        return {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "freshness": "Current",
                    "resources": [
                        _aggregated_resource(resource)
                        for resource in sorted(
                            self.resources.in_version(group, version), key=lambda r: r.plural
                        )
                    ],
                }
                for version in versions
            ],
        }

    def versions(self) -> Object:
        """`/api` in the old form."""
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": self.address}
        return {
            "kind": "APIVersions",
            "versions": self.resources.groups().get("", []),
            "serverAddressByClientCIDRs": [address],
        }

    def groups(self) -> Object:
        """`/apis` in the old form."""
        groups = self.resources.groups()
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_group(group, versions) for group, versions in groups.items() if group],
        }

    def group(self, name: str) -> Object | None:
        """`/apis/GROUP`, or None if there is no such group."""
        versions = self.resources.groups().get(name)
        if not name or versions is None:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}

    def resource_list(self, group: str, version: str) -> Object | None:
        """`/api/v1` or `/apis/GROUP/VERSION`, or None if there is no such version."""
        resources = self.resources.in_version(group, version)
        if not resources:
            return None
        kind = {"kind": "APIResourceList"}
        if group:
            kind["apiVersion"] = "v1"
        entries: list[Object] = []
        for resource in sorted(resources, key=lambda r: r.plural):
            entries.append(_resource_entry(resource))
            entries.extend(
                _subresource_entry(resource, part)
                for part in sorted(resource.subresources, key=lambda p: p.name)
            )
        return {
            **kind,
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": entries,
        }

    def paths(self) -> list[str]:
        """The paths of all group versions."""
        found = ["/api", "/apis"]
        for group, versions in self.resources.groups().items():
            base = f"/apis/{group}" if group else "/api"
            found.extend([base] if group else [])
            found.extend(f"{base}/{version}" for version in versions)
        return found


def _wanted_form(request: Request) -> str | None:
    """The aggregated form if it is the first that can be served; None for the old one. Raises StatusError 406."""
    accept = request.header("accept")
    if AGGREGATED not in accept:
        return None
    for media in parse_accept(accept):
        parameters = media.parameters
        if parameters.get("as") == AGGREGATED:
            if parameters.get("g") == DISCOVERY_GROUP and parameters.get("v") == AGGREGATED_VERSION:
                return AGGREGATED
        elif media.type in (JSON_TYPE, "*/*", "application/*"):
            return None
    raise not_acceptable(unknown_shape=True)


def _group(name: str, versions: list[str]) -> Object:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def _kind_entry(kind: GroupVersionKind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _aggregated_resource(resource: ApiResource) -> Object:
    entry: Object = {
        "resource": resource.plural,
        "responseKind": _kind_entry(GroupVersionKind("", "", resource.kind)),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular_name,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        parts = sorted(resource.subresources, key=lambda part: part.name)
        entry["subresources"] = [_aggregated_part(resource, part) for part in parts]
    return entry


def _aggregated_part(resource: ApiResource, part: Subresource) -> Object:
    kind = part.kind or GroupVersionKind("", "", resource.kind)
    return {
        "subresource": part.name,
        "responseKind": _kind_entry(kind),
        "verbs": list(part.verbs),
    }


def _resource_entry(resource: ApiResource) -> Object:
    entry: Object = {
        "name": resource.plural,
        "singularName": resource.singular_name,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if "list" in resource.verbs:
        entry["storageVersionHash"] = storage_version_hash(resource.hub_kind)
    return entry


def _subresource_entry(resource: ApiResource, part: Subresource) -> Object:
    entry: Object = {
        "name": f"{resource.plural}/{part.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": part.kind.kind if part.kind is not None else resource.kind,
        "verbs": list(part.verbs),
    }
    if part.kind is not None and part.kind.group != resource.group:
        entry = {"group": part.kind.group, "version": part.kind.version, **entry}
    return entry


def storage_version_hash(kind: GroupVersionKind) -> str:
    """Shows clients whether objects are still stored in the same form."""
    text = f"{kind.group}/{kind.version}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()
