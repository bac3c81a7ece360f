"""The rules of custom resources: those of their schema in the version the client wrote in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

from drayman.api.formats import label_key_problems
from drayman.api.struct import Json
from drayman.api.validation.field_errors import FieldError, invalid
from drayman.api.validation.metadata import check_metadata, check_metadata_update
from drayman.apiserver.extensions.correlation import Correlation, key_of
from drayman.apiserver.extensions.custom_form import CustomConversion, as_stored
from drayman.apiserver.extensions.defaulting import set_defaults
from drayman.apiserver.extensions.embedded import embedded_errors
from drayman.apiserver.extensions.findings import blocking_error
from drayman.apiserver.extensions.list_types import list_type_errors
from drayman.apiserver.extensions.rule_evaluation import Old, RuleFindings
from drayman.apiserver.extensions.rules import RuleNode, rule_tree
from drayman.apiserver.extensions.schemas import EMPTY, Schema, properties
from drayman.apiserver.extensions.value_checks import value_errors
from drayman.apiserver.kinds.misspelt_names import misspelt
from drayman.apiserver.kinds.reading import map_at
from drayman.apiserver.kinds.rules import metadata_of
from drayman.apiserver.patching.go_text import type_name
from drayman.apiserver.served.strategy import (
    Context,
    Object,
    StatusStrategy,
    Strategy,
    restore,
)

_MAX_REPLICAS: Final = 2**31 - 1
_STANDARD_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})


@dataclass(frozen=True)
class VersionRules:
    """What holds for objects written in one version."""

    schema: Schema
    has_status: bool
    scale: Mapping[str, str] | None = None

    @cached_property
    def rules(self) -> RuleNode | None:
        return rule_tree(self.schema)

    @cached_property
    def status_schema(self) -> Schema:
        return properties(self.schema).get("status") or EMPTY

    def scale_errors(self, obj: Object, *, with_spec: bool) -> Iterator[FieldError]:
        """The values that the scale subresource shows must be numbers."""
        if self.scale is None:
            return
        names = ("specReplicasPath", "statusReplicasPath") if with_spec else ("statusReplicasPath",)
        for name in names:
            yield from _replica_errors(obj, self.scale[name])
        path = self.scale.get("labelSelectorPath")
        if path:
            yield from _selector_errors(obj, path)

    def rule_findings(self, obj: Object, old: Object | None) -> RuleFindings:
        findings = RuleFindings()
        if self.rules is not None:
            correlation = None if old is None else Correlation(obj, old, self.schema)
            findings.evaluate(self.rules, obj, Old(old, correlation))
        return findings


def _wrong_type(path: str, value: Json, expected: str) -> str:
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{path} accessor error: {shown} is of the type {type_name(value)}, expected {expected}"


def _value_at(obj: Json, path: str) -> tuple[Json, str]:
    """The value at a simple path, and what prevents reading it."""
    for name in path.removeprefix(".").split("."):
        if obj is None:
            return None, ""
        if not isinstance(obj, dict):
            return None, _wrong_type(path, obj, "map[string]interface{}")
        obj = obj.get(name)
    return obj, ""


def _replica_errors(obj: Object, path: str) -> Iterator[FieldError]:
    value, problem = _value_at(obj, path)
    if not problem and value is not None and type(value) is not int:
        problem = _wrong_type(path, value, "int64")
    if problem:
        yield invalid(path, 0, problem)
    elif value is not None and value < 0:
        yield invalid(path, value, "should be a non-negative integer")
    elif value is not None and value > _MAX_REPLICAS:
        yield invalid(path, value, f"should be less than or equal to {_MAX_REPLICAS}")


def _selector_errors(obj: Object, path: str) -> Iterator[FieldError]:
    value, problem = _value_at(obj, path)
    if not problem and value is not None and not isinstance(value, str):
        problem = _wrong_type(path, value, "string")
    if problem:
        yield invalid(path, "", problem)


@dataclass(frozen=True, slots=True)
class CustomStrategy(Strategy):
    """Rules of the main endpoint if the status has its own endpoint."""

    versions: Mapping[str, VersionRules]
    storage: str
    conversion: CustomConversion
    namespaced: bool

    @property
    def has_costly_rules(self) -> bool:
        # A rule that compares the items of a list with each other is costly for short lists already.
        return any(version.rules is not None for version in self.versions.values())

    def _rules(self, context: Context) -> VersionRules:
        return self.versions.get(context.version) or self.versions[self.storage]

    def default(self, obj: Object, context: Context) -> None:
        set_defaults(obj, self._rules(context).schema)

    def prepare_for_create(self, obj: Object, context: Context) -> None:
        if self._rules(context).has_status:
            obj.pop("status", None)

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        if self._rules(context).has_status:
            restore(new, old, "status")

    def generation_changes(self, new: Object, old: Object) -> bool:
        before, after = dict(old), dict(new)
        # What the client wrote in another version is stored in the form of the storage version.
        as_stored(after, self.versions[self.storage].schema)
        return any(
            after.get(name) != before.get(name)
            for name in after.keys() | before.keys()
            if name != "metadata"
        )

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        rules = self._rules(context)
        errors = [
            *check_metadata(metadata_of(obj), namespaced=self.namespaced),
            *value_errors(obj, rules.schema),
            *rules.scale_errors(obj, with_spec=True),
            *embedded_errors(obj, rules.schema),
            *list_type_errors(obj, rules.schema),
        ]
        errors += _rule_errors(rules, obj, None, errors)
        self._store(obj, context, errors)
        return errors

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        rules = self._rules(context)
        before = self._before(old, context)
        correlation = Correlation(new, before, rules.schema)
        errors = [
            *check_metadata_update(metadata_of(new), metadata_of(old)),
            *value_errors(new, rules.schema, "", correlation),
            *rules.scale_errors(new, with_spec=True),
            *embedded_errors(new, rules.schema),
        ]
        errors += _new_list_errors(new, before, rules.schema)
        errors += _rule_errors(rules, new, before, errors)
        self._store(new, context, errors)
        return errors

    def warnings(self, new: Object, old: Object | None, context: Context) -> list[str]:
        before = {} if old is None else map_at(old, "metadata")
        found = [*_finalizer_warnings(new, old), *misspelt(map_at(new, "metadata"), before)]
        if old is not None:
            found += self._rules(context).rule_findings(new, self._before(old, context)).warnings
        return found

    def _before(self, old: Object, context: Context) -> Object:
        """The old object in the version of the request."""
        if context.version in (self.storage, "") or context.version not in self.versions:
            return old
        return self.conversion.from_hub(old, context.version)

    def _store(self, obj: Object, context: Context, errors: list[FieldError]) -> None:
        """Convert an object that is valid in another version to the storage version."""
        if not errors and context.version != self.storage:
            as_stored(obj, self.versions[self.storage].schema)


class WholeStrategy(CustomStrategy):
    """Rules of the main endpoint, where there is no other."""

    __slots__ = ()
    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = ()


@dataclass(frozen=True, slots=True)
class CustomStatusStrategy(StatusStrategy):
    """Rules of the status endpoint: nothing else changes, and only CEL rules check anything else."""

    main: CustomStrategy
    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("metadata",), ("spec",))
    keeps_metadata: ClassVar[tuple[str, ...]] = ("*",)

    @property
    def has_costly_rules(self) -> bool:
        return self.main.has_costly_rules

    def default(self, obj: Object, context: Context) -> None:
        self.main.default(obj, context)

    def generation_changes(self, new: Object, old: Object) -> bool:
        return False

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        rules = self.main._rules(context)
        before = self.main._before(old, context)
        errors: list[FieldError] = []
        if "status" in new:
            correlation = key_of(Correlation(new, before, rules.schema), "status")
            errors += value_errors(new["status"], rules.status_schema, "status", correlation)
        errors += rules.scale_errors(new, with_spec=False)
        errors += _new_list_errors(new, before, rules.schema)
        errors += _rule_errors(rules, new, before, errors)
        self.main._store(new, context, errors)
        return errors


def _new_list_errors(new: Object, before: Object, schema: Schema) -> list[FieldError]:
    """What occurs twice in a list, unless that was so before. What has not changed is looked at only if something else is wrong."""
    changed = {name: value for name, value in new.items() if before.get(name) != value}
    found = [*list_type_errors(changed, schema)]
    return found if found and not [*list_type_errors(before, schema)] else []


def _rule_errors(
    rules: VersionRules, obj: Object, old: Object | None, errors: list[FieldError]
) -> list[FieldError]:
    """The errors of the rules, or one saying that they were not evaluated."""
    if rules.rules is None:
        return []
    blocked = blocking_error(errors)
    return [blocked] if blocked is not None else rules.rule_findings(obj, old).errors


def _finalizer_warnings(new: Object, old: Object | None) -> list[str]:
    before = (old or {}).get("metadata", {}).get("finalizers") or ()
    added = set(new["metadata"].get("finalizers") or ()) - set(before)
    found: list[str] = []
    for name in sorted(added):
        prefix = f'metadata.finalizers: "{name}": '
        found += [prefix + problem for problem in label_key_problems(name)]
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            found.append(
                f"{prefix}prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other"
                " finalizer writers"
            )
    return found
