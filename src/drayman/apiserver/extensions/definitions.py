"""CustomResourceDefinitions as a resource: defaults, status, and what may be written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from drayman.api.validation.field_errors import FieldError
from drayman.api.validation.metadata import check_metadata, check_metadata_update
from drayman.apiserver.extensions.definition import GROUP, KIND, Definition, schema_of
from drayman.apiserver.extensions.definition_checks import (
    accepted_names_errors,
    change_errors,
    definition_errors,
    name_problems,
)
from drayman.apiserver.extensions.deletion import delete_definition
from drayman.apiserver.extensions.naming import set_names
from drayman.apiserver.extensions.schemas import LIST_TYPE, every_schema, items
from drayman.apiserver.extensions.text_formats import is_recognized
from drayman.apiserver.kinds.rules import metadata_of
from drayman.apiserver.served.acting import Part, by
from drayman.apiserver.served.resources import ApiResource, Subresource
from drayman.apiserver.served.strategy import (
    LARGE_EXPRESSIONS,
    Context,
    Object,
    StatusStrategy,
    Strategy,
    restore,
)

_HTTPS: Final = 443


class DefinitionStrategy(Strategy):
    """Rules of definitions. Names are accepted, and the resource established, as soon as a definition is written."""

    @property
    def large_from(self) -> int:
        return LARGE_EXPRESSIONS

    def default(self, obj: Object, context: Context) -> None:
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind") or ""
        if kind and not names.get("singular"):
            names["singular"] = kind.lower()
        if kind and not names.get("listKind"):
            names["listKind"] = f"{kind}List"
        conversion = spec.get("conversion") or {"strategy": "None"}
        spec["conversion"] = conversion
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None and not service.get("port"):
            service["port"] = _HTTPS

    def prepare_for_create(self, obj: Object, context: Context) -> None:
        obj["status"] = {}
        _keep_stored_versions(obj)
        set_names(obj, context.objects, context.now)

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        restore(new, old, "status")
        new["status"] = dict(new.get("status") or {})
        _keep_stored_versions(new)
        set_names(new, context.objects, context.now)

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        definition = Definition(obj)
        metadata = check_metadata(
            metadata_of(obj),
            namespaced=False,
            name_problems=lambda name: name_problems(definition, name),
        )
        return [*metadata, *definition_errors(definition)]

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        after, before = Definition(new), Definition(old)
        return [
            *check_metadata_update(metadata_of(new), metadata_of(old)),
            *definition_errors(after, before),
            *change_errors(after, before),
        ]

    def warnings(self, new: Object, old: Object | None, context: Context) -> list[str]:
        known = set(_warnings(Definition(old))) if old is not None else set()
        return [text for text in _warnings(Definition(new)) if text not in known]


class DefinitionStatusStrategy(StatusStrategy):
    """The status of definitions: migrations remove versions from it."""

    keeps_metadata: ClassVar[tuple[str, ...]] = (
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    )

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        return [
            *check_metadata_update(metadata_of(new), metadata_of(old)),
            *accepted_names_errors(Definition(new)),
        ]


def _keep_stored_versions(obj: Object) -> None:
    """Note the storage version among those that objects may be stored in."""
    storage = Definition(obj).storage_version
    stored = list(obj["status"].get("storedVersions") or ())
    if storage and storage not in stored:
        stored.append(storage)
    if stored:
        obj["status"]["storedVersions"] = stored


def _warnings(definition: Definition) -> Iterator[str]:
    for version in definition.versions:
        for schema in every_schema(schema_of(version) or {}):
            name = schema.get("format")
            if name and not is_recognized(name, schema.get("type") or ""):
                yield f'unrecognized format "{name}"'
            item_type = (items(schema) or {}).get("type")
            if schema.get(LIST_TYPE) == "set" and item_type in ("object", "array"):
                yield (
                    f'x-kubernetes-list-type: set for items of type "{item_type}" is not supported by server-side apply'
                    " or CEL validation rules"
                )


def definitions_resource() -> ApiResource:
    """The resource `customresourcedefinitions`."""
    return ApiResource(
        group=GROUP,
        kind=KIND,
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        strategy=DefinitionStrategy(),
        subresources=(Subresource(name="status", strategy=DefinitionStatusStrategy()),),
        has_generation=True,
        requires_version_on_update=True,
        answers_with_deleted_object=True,
        delete_handler=delete_definition,
        acting=by(Part.SERVER, effect="the kind that it defines is served"),
    )
