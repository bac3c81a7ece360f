"""The rules that a CustomResourceDefinition must meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from drayman.api.formats import dns_subdomain_problems
from drayman.api.struct import Json
from drayman.api.syntax.values import depth_exceeds
from drayman.api.validation.field_errors import FieldError, invalid, not_supported, required
from drayman.api.validation.metadata import IMMUTABLE
from drayman.apiserver.extensions.conversion_checks import conversion_errors
from drayman.apiserver.extensions.definition import (
    COLUMNS,
    ESTABLISHED,
    SELECTABLE,
    SUBRESOURCES,
    Definition,
    schema_of,
)
from drayman.apiserver.extensions.names import dns_1035_problems
from drayman.apiserver.extensions.schemas import any_schema
from drayman.apiserver.extensions.version_checks import (
    column_errors,
    deprecation_errors,
    schema_errors,
    selectable_errors,
    subresource_errors,
)

APPROVAL: Final = "api-approved.kubernetes.io"
_APPROVAL_HELP: Final = (
    f'protected groups must have approval annotation "{APPROVAL}", see'
    " https://github.com/kubernetes/enhancements/pull/1111"
)
MAX_DEPTH: Final = 200
"""Deepest nesting of a definition. Each level of a schema takes two, and schemas of real definitions have at most twenty."""
_SCOPES: Final = ("Cluster", "Namespaced")
_NAMES: Final = ("plural", "singular", "kind", "listKind")
_MIXED: Final = "may have mixed case, but should otherwise match: "


def definition_errors(definition: Definition, old: Definition | None = None) -> list[FieldError]:
    """The errors of a definition, without those of its metadata. The cost of expressions that `old` already has is not limited."""
    if depth_exceeds(definition.obj, MAX_DEPTH):
        return [invalid("spec.versions", None, f"must not be nested over {MAX_DEPTH} levels deep")]
    return [
        *_spec_errors(definition, old),
        *_stored_version_errors(definition),
        *_approval_errors(definition, old),
        *_preserve_errors(definition, old),
    ]


def name_problems(definition: Definition, name: str) -> tuple[str, ...]:
    """Why a definition's name is wrong: it must follow from what the definition defines."""
    problems = dns_subdomain_problems(name)
    if name != f"{definition.plural}.{definition.group}":
        return (*problems, 'must be spec.names.plural+"."+spec.group')
    return problems


def change_errors(new: Definition, old: Definition) -> Iterator[FieldError]:
    """What may not change, including the kind and scope of a served resource."""
    if old.is_true(ESTABLISHED):
        yield from _unchanged(new.spec.get("scope"), old.spec.get("scope"), "spec.scope")
        yield from _unchanged(new.kind, old.kind, "spec.names.kind")
    yield from _unchanged(new.group, old.group, "spec.group")
    yield from _unchanged(new.plural, old.plural, "spec.names.plural")


def _unchanged(new: Json, old: Json, path: str) -> Iterator[FieldError]:
    if new != old:
        yield invalid(path, new, IMMUTABLE)


def _spec_errors(definition: Definition, old: Definition | None) -> Iterator[FieldError]:
    spec = definition.spec
    yield from _group_errors(definition.group)
    scope = spec.get("scope") or ""
    if not scope:
        yield required("spec.scope")
    elif scope not in _SCOPES:
        yield not_supported("spec.scope", scope, _SCOPES)
    yield from _missing_schema_errors(definition)
    if spec.get("preserveUnknownFields") and _has_defaults(definition):
        text = "must be false in order to use defaults in the schema"
        yield invalid("spec.preserveUnknownFields", True, text)
    yield from _version_errors(definition, old)
    names = definition.names
    for name in _NAMES:
        if not names.get(name):
            yield required(f"spec.names.{name}")
    yield from _names_errors(names, "spec.names")
    yield from _shared_errors(definition, old)
    yield from conversion_errors(spec)


def _group_errors(group: str) -> Iterator[FieldError]:
    if not group:
        yield required("spec.group")
    elif problems := dns_subdomain_problems(group):
        yield invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _missing_schema_errors(definition: Definition) -> Iterator[FieldError]:
    for position, version in enumerate(definition.versions):
        if schema_of(version) is None:
            yield required(f"spec.versions[{position}].schema.openAPIV3Schema")


def _has_defaults(definition: Definition) -> bool:
    schemas = filter(None, map(schema_of, definition.versions))
    return any(any_schema(s, lambda one: one.get("default") is not None) for s in schemas)


def _version_errors(definition: Definition, old: Definition | None) -> Iterator[FieldError]:
    versions, shared = definition.versions, definition.shared
    for position, version in enumerate(versions):
        path, name = f"spec.versions[{position}]", version.get("name") or ""
        yield from invalid_label(f"{path}.name", name)
        yield from deprecation_errors(version, f"{path}.deprecationWarning")
        own = {part: value for part, value in version.items() if part not in shared}
        has_status = "status" in (version.get(SUBRESOURCES) or {})
        yield from _part_errors(
            own, path, f"{path}.schema", has_status, _same_schema(name, own, old)
        )
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield invalid("spec.versions", list(versions), "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", list(versions), text)
    if versions:
        yield from invalid_label("spec.version", versions[0].get("name") or "")


def _same_schema(name: str, version: Mapping[str, Json], old: Definition | None) -> bool:
    """Whether a version had this schema before."""
    before = None if old is None else old.by_name.get(name)
    return before is not None and schema_of(before) == schema_of(version)


def _shared_errors(definition: Definition, old: Definition | None) -> Iterator[FieldError]:
    """What all versions share is checked once."""
    shared = definition.shared
    if not shared:
        return
    first = definition.versions[0].get("name") or ""
    has_status = any("status" in (v.get(SUBRESOURCES) or {}) for v in definition.versions)
    yield from _part_errors(
        shared, "spec", "spec.validation", has_status, _same_schema(first, shared, old)
    )


def _part_errors(
    part: Mapping[str, Json], path: str, schema_path: str, has_status: bool, is_old: bool
) -> Iterator[FieldError]:
    schema = schema_of(part)
    if schema is not None:
        where = f"{schema_path}.openAPIV3Schema"
        yield from schema_errors(schema, where, has_status=has_status, is_old=is_old)
    yield from subresource_errors(part.get(SUBRESOURCES) or {}, f"{path}.{SUBRESOURCES}")
    for position, column in enumerate(part.get(COLUMNS) or ()):
        yield from column_errors(column, f"{path}.{COLUMNS}[{position}]")
    fields = part.get(SELECTABLE)
    if fields:
        yield from selectable_errors(fields, schema, f"{path}.{SELECTABLE}")


def invalid_label(path: str, text: str, hint: str = "") -> Iterator[FieldError]:
    problems = dns_1035_problems(text.lower() if hint else text)
    if problems:
        yield invalid(path, text, hint + ",".join(problems))


def accepted_names_errors(definition: Definition) -> Iterator[FieldError]:
    """The errors of the accepted names in the status."""
    accepted = (definition.obj.get("status") or {}).get("acceptedNames") or {}
    yield from _names_errors(accepted, "status.acceptedNames")


def _names_errors(names: Mapping[str, Json], path: str) -> Iterator[FieldError]:
    for name in ("plural", "singular"):
        if names.get(name):
            yield from invalid_label(f"{path}.{name}", names[name])
    for name in ("kind", "listKind"):
        if names.get(name):
            yield from invalid_label(f"{path}.{name}", names[name], _MIXED)
    for part in ("shortNames", "categories"):
        for position, text in enumerate(names.get(part) or ()):
            yield from invalid_label(f"{path}.{part}[{position}]", text)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        text = "kind and listKind may not be the same"
        yield invalid(f"{path}.listKind", names["listKind"], text)


def _stored_version_errors(definition: Definition) -> Iterator[FieldError]:
    path = "status.storedVersions"
    stored: Sequence[str] = (definition.obj.get("status") or {}).get("storedVersions") or ()
    if not stored:
        yield invalid(path, None, "must have at least one stored version")
        return
    present = {version.get("name") for version in definition.versions}
    listed, names = list(stored), set(stored)
    for version in definition.versions:
        if version.get("storage") and version.get("name") not in names:
            text = f"must have the storage version {version.get('name') or ''}"
            yield invalid(path, listed, text)
    for position, name in enumerate(stored):
        if name not in present:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions"
                f" until a storage migration ensures no data remains persisted in {name} and removes {name} from"
                " status.storedVersions"
            )
            yield invalid(f"{path}[{position}]", name, text)


def is_protected(group: str) -> bool:
    """Whether a group belongs to the Kubernetes project."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def _approval(definition: Definition) -> tuple[str, str]:
    """The state of the approval of a definition, and what is wrong with it."""
    annotations = definition.obj["metadata"].get("annotations") or {}
    text = annotations.get(APPROVAL, "")
    if not text:
        return "missing", _APPROVAL_HELP
    if text.startswith("unapproved"):
        return "bypassed", ""
    if "://" not in text or not text.partition("://")[2].partition("/")[0]:
        help_text = (
            f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a reason starting with'
            ' "unapproved", see https://github.com/kubernetes/enhancements/pull/1111'
        )
        return "invalid", help_text
    return "approved", ""


def _approval_errors(definition: Definition, old: Definition | None) -> Iterator[FieldError]:
    if not is_protected(definition.group):
        return
    state, reason = _approval(definition)
    if old is not None and _approval(old)[0] == state:
        return
    path = f"metadata.annotations[{APPROVAL}]"
    if state == "missing":
        yield required(path, reason)
    elif state == "invalid":
        yield invalid(path, definition.obj["metadata"]["annotations"][APPROVAL], reason)


def _preserve_errors(definition: Definition, old: Definition | None) -> Iterator[FieldError]:
    if old is not None and old.spec.get("preserveUnknownFields"):
        return
    if definition.spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield invalid("spec.preserveUnknownFields", True, text)
