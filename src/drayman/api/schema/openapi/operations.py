"""The operations on a resource: which paths it has, and what may be sent to each.

Clients look for two things above all: the kind that an operation is about, and whether a patch takes `fieldValidation`.
"""

from __future__ import annotations

from typing import Final

from drayman.api.schema.openapi.resources import ServedResource, ServedSubresource
from drayman.api.schema.openapi.schemas import GVK, Schema, component_name, gvk, reference
from drayman.api.schema.tables import schema_for
from drayman.api.struct import Json

Paths = dict[str, dict[str, Json]]

STATUS: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
PATCH: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"
DELETE_OPTIONS: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"

_MEDIA_TYPES: Final = ("application/json", "application/yaml")
_PATCH_TYPES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_STRATEGIC: Final = "application/strategic-merge-patch+json"

_QUERY_TYPES: Final = {
    "allowWatchBookmarks": "boolean",
    "continue": "string",
    "dryRun": "string",
    "fieldManager": "string",
    "fieldSelector": "string",
    "fieldValidation": "string",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "labelSelector": "string",
    "limit": "integer",
    "orphanDependents": "boolean",
    "propagationPolicy": "string",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_LIST_QUERY: Final = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit",
    "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_WRITE_QUERY: Final = ("dryRun", "fieldManager", "fieldValidation")
_DELETE_QUERY: Final = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_COLLECTION_QUERY: Final = (
    "continue", "dryRun", "fieldSelector", "gracePeriodSeconds", "labelSelector", "limit",
    "orphanDependents", "propagationPolicy", "resourceVersion", "resourceVersionMatch",
    "sendInitialEvents", "timeoutSeconds",
)  # fmt: skip

_METHODS: Final = {
    "get": "get",
    "list": "get",
    "create": "post",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "delete",
}
_ACTIONS: Final = {"create": "post", "update": "put"}
_WORDS: Final = {"get": "read", "update": "replace"}


class PathBuilder:
    """Builds the paths of one group version."""

    def __init__(self, group: str, version: str) -> None:
        self._group = group
        self._version = version
        self._prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
        words = (group or "core").removesuffix(".k8s.io").replace("-", ".").split(".")
        self._area = "".join(word.capitalize() for word in words) + version.capitalize()
        self._tag = f"{'_'.join(words)}_{version}"

    def add(self, resource: ServedResource, component: str, paths: Paths) -> None:
        """Adds the paths of a resource whose schema has the given name."""
        scope = "Namespaced" if resource.namespaced else ""
        within = "/namespaces/{namespace}" if resource.namespaced else ""
        collection = f"{self._prefix}{within}/{resource.name}"
        item = f"{collection}/{{name}}"
        shared = [_path_parameter("namespace")] if resource.namespaced else []
        for verb in ("list", "create", "deletecollection"):
            if verb in resource.verbs:
                operation = self._operation(resource, verb, component, scope)
                paths.setdefault(collection, {"parameters": shared})[_METHODS[verb]] = operation
        if resource.namespaced and "list" in resource.verbs:
            everywhere = self._operation(resource, "list", component, "", "ForAllNamespaces")
            paths[f"{self._prefix}/{resource.name}"] = {"get": everywhere}
        shared = [_path_parameter("name"), *shared]
        for verb in ("get", "update", "patch", "delete"):
            if verb in resource.verbs:
                operation = self._operation(resource, verb, component, scope)
                paths.setdefault(item, {"parameters": shared})[_METHODS[verb]] = operation
        for part in resource.subresources:
            target = paths.setdefault(f"{item}/{part.name}", {"parameters": shared})
            for verb in sorted(part.verbs & _METHODS.keys()):
                target[_METHODS[verb]] = self._part_operation(resource, part, verb, scope)

    def _operation(
        self, resource: ServedResource, verb: str, component: str, scope: str, suffix: str = ""
    ) -> Schema:
        middle = "Collection" if verb == "deletecollection" else ""
        word = "delete" if verb == "deletecollection" else _WORDS.get(verb, verb)
        answer = f"{component}List" if verb == "list" else component
        return {
            "operationId": f"{word}{self._area}{middle}{scope}{resource.kind}{suffix}",
            "tags": [self._tag],
            **_exchange(verb, component, answer, strategic=not resource.is_custom),
            "x-kubernetes-action": _ACTIONS.get(verb, verb),
            GVK: gvk(self._group, self._version, resource.kind),
        }

    def _part_operation(
        self, resource: ServedResource, part: ServedSubresource, verb: str, scope: str
    ) -> Schema:
        word = _WORDS.get(verb, verb)
        name = f"{resource.kind}{part.name.capitalize()}"
        component = _foreign_component(part)
        return {
            "operationId": f"{word}{self._area}{scope}{name}",
            "tags": [self._tag],
            **_exchange(verb, component, component, strategic=not resource.is_custom),
            "x-kubernetes-action": _ACTIONS.get(verb, verb),
            GVK: gvk(part.group, part.version, part.kind),
        }


def _foreign_component(part: ServedSubresource) -> str | None:
    """The schema of what a subresource takes and gives, where it is an object of a built-in kind."""
    message = schema_for(part.group, part.version, part.kind)
    return None if message is None else component_name(message)


def _exchange(verb: str, component: str | None, answer: str | None, *, strategic: bool) -> Schema:
    """What an operation takes and gives."""
    match verb:
        case "list":
            return {"parameters": _query(_LIST_QUERY), "responses": _responses(answer, "200")}
        case "get":
            return {"responses": _responses(answer, "200")}
        case "create" | "update":
            codes = ("200", "201", "202") if verb == "create" else ("200", "201")
            return {
                "parameters": _query(_WRITE_QUERY),
                "requestBody": _content(component, ("*/*",)),
                "responses": _responses(answer, *codes),
            }
        case "patch":
            types = (*_PATCH_TYPES, _STRATEGIC) if strategic else _PATCH_TYPES
            return {
                "parameters": _query((*_WRITE_QUERY, "force")),
                "requestBody": _content(PATCH, types),
                "responses": _responses(answer, "200", "201"),
            }
    is_collection = verb == "deletecollection"
    return {
        "parameters": _query(_COLLECTION_QUERY if is_collection else _DELETE_QUERY),
        "requestBody": {"content": {"*/*": {"schema": reference(DELETE_OPTIONS)}}},
        "responses": _responses(STATUS, *(("200",) if is_collection else ("200", "202"))),
    }


def _content(component: str | None, media_types: tuple[str, ...]) -> Schema:
    schema = reference(component) if component else {"type": "object"}
    return {"content": {type_: {"schema": schema} for type_ in media_types}, "required": True}


def _responses(component: str | None, *codes: str) -> Schema:
    names = {"200": "OK", "201": "Created", "202": "Accepted"}
    content: Schema = {}
    if component:
        content = {"content": {type_: {"schema": reference(component)} for type_ in _MEDIA_TYPES}}
    responses = {code: {"description": names[code], **content} for code in codes}
    return {**responses, "401": {"description": "Unauthorized"}}


def _query(names: tuple[str, ...]) -> list[Schema]:
    return [{"name": name, "in": "query", "schema": {"type": _QUERY_TYPES[name]}} for name in names]


def _path_parameter(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
