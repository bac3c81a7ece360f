"""Defaults in schemas: each must be a value that its own schema accepts."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from drayman.api.validation.field_errors import FieldError, invalid
from drayman.apiserver.extensions.embedded import embedded_errors
from drayman.apiserver.extensions.pruning import prune
from drayman.apiserver.extensions.rule_evaluation import Old, RuleFindings
from drayman.apiserver.extensions.rule_types import rule_type
from drayman.apiserver.extensions.rules import RuleNode, has_rules
from drayman.apiserver.extensions.schemas import EMBEDDED, META_FIELDS, Schema, items, properties
from drayman.apiserver.extensions.value_checks import value_errors


def default_errors(
    schema: Schema, path: str, *, is_resource: bool = True, in_metadata: bool = False
) -> Iterator[FieldError]:
    """The errors of every default in a schema."""
    if schema.get(EMBEDDED):
        is_resource, in_metadata = True, False
    if schema.get("default") is not None:
        yield from _own_errors(schema, f"{path}.default", in_metadata=in_metadata)
    inner = items(schema)
    if inner is not None:
        below = f"{path}.items"
        yield from default_errors(inner, below, is_resource=False, in_metadata=in_metadata)
    for name, declared in properties(schema).items():
        inside = in_metadata or (is_resource and name in META_FIELDS)
        below = f"{path}.properties[{name}]"
        yield from default_errors(declared, below, is_resource=False, in_metadata=inside)


def _own_errors(schema: Schema, path: str, *, in_metadata: bool) -> Iterator[FieldError]:
    default = schema["default"]
    if not in_metadata:
        pruned = deepcopy(default)
        if prune(pruned, schema):
            yield invalid(path, default, "must not have unknown fields")
    found = [*embedded_errors(default, schema, path)] or value_errors(default, schema, path)
    if found or not has_rules(schema):
        yield from found
        return
    embeds = bool(schema.get(EMBEDDED))
    node = RuleNode(schema, rule_type(schema, is_resource=embeds), is_resource=embeds)
    for old in (Old(default), Old()):
        findings = RuleFindings()
        findings.evaluate(node, default, old, path)
        yield from findings.errors
        if findings.errors:
            return
