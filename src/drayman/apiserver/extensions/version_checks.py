"""The parts of one version of a definition: schema, subresources, columns, selectable fields, deprecation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
    too_many,
)
from drayman.apiserver.extensions.default_checks import default_errors
from drayman.apiserver.extensions.paths import FieldPathError, valid_field_path
from drayman.apiserver.extensions.rule_checks import rule_errors
from drayman.apiserver.extensions.rules import rule_tree
from drayman.apiserver.extensions.schema_checks import keyword_errors
from drayman.apiserver.extensions.schemas import Schema
from drayman.apiserver.extensions.structural_checks import structural_errors

MAX_SELECTABLE: Final = 8
LONGEST_WARNING: Final = 256
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = tuple(
    "binary byte date date-time double float int32 int64 password".split()
)
_AT_ROOT_WITH_STATUS: Final = frozenset(
    "description type format title maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern maxItems"
    " minItems uniqueItems multipleOf required items properties externalDocs example"
    " x-kubernetes-preserve-unknown-fields x-kubernetes-validations".split()
)
_ROOT_FIELDS: Final = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems"
    " MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations"
)


def schema_errors(
    schema: Schema, path: str, *, has_status: bool, is_old: bool
) -> Iterator[FieldError]:
    """The errors of a schema. Rules are checked once the rest of it is valid."""
    found = [*_root_errors(schema, path, has_status=has_status)]
    structure = structural_errors(schema, path) or [*default_errors(schema, path)]
    found += structure
    keywords = [*keyword_errors(schema, path)]
    found += keywords
    if not structure and not keywords:
        # Stored definitions keep working: the cost of rules is checked when they are written.
        found += () if is_old else rule_errors(rule_tree(schema), path)
    yield from found


def _root_errors(schema: Schema, path: str, *, has_status: bool) -> Iterator[FieldError]:
    if has_status:
        type_name = schema.get("type")
        if type_name and type_name != "object":
            text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            yield invalid(f"{path}.type", type_name, text)
        elif {name for name, value in schema.items() if value} - _AT_ROOT_WITH_STATUS:
            text = f"only [{_ROOT_FIELDS}] fields are allowed at the root of the schema if the status subresource is enabled"
            yield invalid(path, dict(schema), text)
    if schema.get("nullable"):
        yield forbidden(f"{path}.nullable", "nullable cannot be true at the root")


def deprecation_errors(version: Mapping[str, Json], path: str) -> Iterator[FieldError]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    if not version.get("deprecated"):
        yield invalid(path, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > LONGEST_WARNING:
        yield invalid(path, warning, f"must be <= {LONGEST_WARNING} characters long")
    if not warning:
        yield invalid(path, warning, "must not be an empty string")
    for position, character in enumerate(warning):
        if not character.isprintable():
            text = f"must only contain printable UTF-8 characters; non-printable character found at index {position}"
            yield invalid(path, warning, text)
            break


def subresource_errors(subresources: Mapping[str, Json], path: str) -> Iterator[FieldError]:
    scale = subresources.get("scale")
    if scale is None:
        return
    for name, roots in (
        ("specReplicasPath", (".spec",)),
        ("statusReplicasPath", (".status",)),
        ("labelSelectorPath", (".spec", ".status")),
    ):
        where, text = f"{path}.scale.{name}", scale.get(name) or ""
        if not text:
            if name != "labelSelectorPath":
                yield required(where)
        elif found := [*_simple_path_errors(text, where)]:
            yield from found
        elif not text.startswith(tuple(f"{root}." for root in roots)):
            places = f"either {' or '.join(roots)}" if len(roots) > 1 else roots[0]
            yield invalid(where, text, f"should be a json path under {places}")


def _simple_path_errors(text: str, path: str) -> Iterator[FieldError]:
    if not text.startswith("."):
        yield invalid(path, text, "must be a simple json path starting with .")


def column_errors(column: Mapping[str, Json], path: str) -> Iterator[FieldError]:
    types, formats = ",".join(_COLUMN_TYPES), ",".join(_COLUMN_FORMATS)
    if not column.get("name"):
        yield required(f"{path}.name")
    if not column.get("type"):
        yield required(f"{path}.type", f"must be one of {types}")
    elif column["type"] not in _COLUMN_TYPES:
        yield invalid(f"{path}.type", column["type"], f"must be one of {types}")
    if column.get("format") and column["format"] not in _COLUMN_FORMATS:
        yield invalid(f"{path}.format", column["format"], f"must be one of {formats}")
    text = column.get("jsonPath") or ""
    if not text:
        yield required(f"{path}.JSONPath")
    else:
        yield from _simple_path_errors(text, f"{path}.JSONPath")


def selectable_errors(
    fields: Sequence[Mapping[str, Json]], schema: Schema | None, path: str
) -> Iterator[FieldError]:
    if schema is None:
        text = "may only be set when `version.schema.openAPIV3Schema` is not included"
        yield invalid(path, "", text)
        return
    seen: set[str] = set()
    for position, field in enumerate(fields):
        where, text = f"{path}[{position}].jsonPath", field.get("jsonPath") or ""
        if not text:
            yield required(where)
            continue
        try:
            shown, found = valid_field_path(text, schema, allow_brackets=False)
        except FieldPathError as error:
            yield invalid(where, text, f"is an invalid path: {error}")
            continue
        if shown.partition(".")[0] == "metadata":
            yield invalid(where, text, "must not point to fields in metadata")
        if found is None or found.get("type") not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats"
                " are allowed."
            )
            yield invalid(where, text, detail)
        if shown in seen:
            yield duplicate(where, text)
        seen.add(shown)
    if len(seen) > MAX_SELECTABLE:
        yield too_many(path, len(seen), MAX_SELECTABLE)
