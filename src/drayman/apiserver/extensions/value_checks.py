"""Values against OpenAPI schemas, with the errors of the library Kubernetes uses for it.

On update, what was already wrong and did not change is not an error (`Correlation`): a schema can be tightened without making
existing objects impossible to update.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    ErrorKind,
    FieldError,
    invalid,
    not_supported,
    required,
    too_many,
)
from drayman.apiserver.extensions.correlation import Correlation, key_of, position_of
from drayman.apiserver.extensions.findings import child, shown, type_invalid
from drayman.apiserver.extensions.scalar_checks import number_errors, string_errors, type_error
from drayman.apiserver.extensions.schemas import LIST_TYPE, Schema, additional, items, properties
from drayman.apiserver.served.encoding import encode

_ALTERNATIVES: Final = frozenset(("anyOf", "oneOf", "allOf", "not"))


@dataclass(slots=True)
class CheckedValue:
    """The errors of a value, and how much of it was valid, which decides the nearest of several alternatives."""

    errors: list[FieldError] = field(default_factory=list)
    matches: int = 0

    def add(self, other: CheckedValue) -> None:
        self.errors += other.errors
        self.matches += other.matches


@dataclass(frozen=True, slots=True)
class ValuePlace:
    """Where a value is: its path within the checked value, and the path of the checked value."""

    path: str = ""
    base: str = ""
    enumerations: dict[int, Enumeration] = field(default_factory=dict, compare=False, repr=False)
    """Those of the schema that were met so far, by the id of their choices."""
    is_tried: bool = False
    """Whether this is one of several alternatives, of which the nearest is the one with most that is valid."""

    @property
    def field(self) -> str:
        """The field in an error."""
        if not self.path:
            return shown(self.base)
        return child(self.base, self.path.removeprefix("."))

    @property
    def nowhere(self) -> str:
        """The field of errors that name none."""
        return shown(self.base)

    def child(self, name: str) -> ValuePlace:
        return ValuePlace(child(self.path, name), self.base, self.enumerations, self.is_tried)

    def entry(self, name: str) -> ValuePlace:
        return ValuePlace(f"{self.path}.{name}", self.base, self.enumerations, self.is_tried)

    def item(self, position: int) -> ValuePlace:
        path = f"{self.path}[{position}]"
        return ValuePlace(path, self.base, self.enumerations, self.is_tried)

    @property
    def tried(self) -> ValuePlace:
        return ValuePlace(self.path, self.base, self.enumerations, True)


def value_errors(
    value: Json, schema: Schema, base: str = "", correlation: Correlation | None = None
) -> list[FieldError]:
    """The errors of a value that lies at the path `base`."""
    return _node(value, schema, ValuePlace("", base), correlation).errors


def _node(
    value: Json, schema: Schema, place: ValuePlace, correlation: Correlation | None
) -> CheckedValue:
    """A value, with or without an old one to compare with."""
    if correlation is not None and not place.is_tried and _is_as_before(correlation):
        return CheckedValue()
    outcome = _check(value, schema, place, correlation)
    if outcome.errors and correlation is not None and correlation.unchanged:
        return CheckedValue([], outcome.matches)
    return outcome


def _is_as_before(correlation: Correlation) -> bool:
    """Whether it can be seen at once that nothing has changed. Items of lists that are maps are looked at one by one."""
    new = correlation.new
    if isinstance(new, list):
        return correlation.schema.get(LIST_TYPE) != "map" and bool(new == correlation.old)
    return isinstance(new, dict) and bool(new == correlation.old)


def _check(
    value: Json, schema: Schema, place: ValuePlace, correlation: Correlation | None
) -> CheckedValue:
    outcome = CheckedValue()
    error = type_error(value, schema, place.path)
    if error is None:
        outcome.matches += 1
    else:
        shown_value, detail = error
        outcome.errors.append(type_invalid(place.field, shown_value, detail))
    if value is not None:
        if not _ALTERNATIVES.isdisjoint(schema):
            outcome.add(_alternatives(value, schema, place.tried, correlation))
        _by_type(outcome, value, schema, place, correlation)
    outcome.errors += _enum_errors(value, schema, place)
    if isinstance(value, dict):
        outcome.add(_object(value, schema, place, correlation))
    return outcome


def _by_type(
    outcome: CheckedValue,
    value: Json,
    schema: Schema,
    place: ValuePlace,
    correlation: Correlation | None,
) -> None:
    if isinstance(value, str):
        outcome.errors += string_errors(value, schema, place.path, place.field)
    elif isinstance(value, list):
        outcome.add(_list(value, schema, place, correlation))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        outcome.errors += number_errors(value, schema, place.path, place.field, place.nowhere)


def _enum_errors(value: Json, schema: Schema, place: ValuePlace) -> Iterator[FieldError]:
    choices: list[Json] | None = schema.get("enum")
    if not choices:
        return
    known = place.enumerations.get(id(choices))
    if known is None:
        known = place.enumerations[id(choices)] = Enumeration(choices)
    if not known.includes(value):
        yield FieldError(ErrorKind.NOT_SUPPORTED, place.field, value, known.detail)


class Enumeration:
    """The choices of a schema, prepared once for all values: a list may be as long as its enumeration."""

    def __init__(self, choices: list[Json]) -> None:
        self._choices = choices
        self._scalars = {(type(one) is bool, one) for one in choices if not _is_composite(one)}
        self._others = [one for one in choices if _is_composite(one)]

    @cached_property
    def detail(self) -> str:
        """What an error says. All of them share one text."""
        shown = (one if isinstance(one, str) else encode(one).decode() for one in self._choices)
        return not_supported("", None, shown).detail

    def includes(self, value: Json) -> bool:
        """Whether a value is one of the choices. True is not 1."""
        if _is_composite(value):
            return value in self._others
        return (type(value) is bool, value) in self._scalars


def _is_composite(value: Json) -> bool:
    return isinstance(value, dict | list)


def _list(
    value: list[Json], schema: Schema, place: ValuePlace, correlation: Correlation | None
) -> CheckedValue:
    outcome = CheckedValue()
    inner = items(schema)
    if inner is not None:
        for position, item in enumerate(value):
            old = position_of(correlation, position)
            outcome.add(_node(item, inner, place.item(position), old))
    size, least, most = len(value), schema.get("minItems"), schema.get("maxItems")
    name = place.path
    if least is not None and size < least:
        text = f"{name} in body should have at least {least} items"
        outcome.errors.append(invalid(place.field, size, text))
    if most is not None and size > most:
        outcome.errors.append(too_many(place.field, size, most))
    return outcome


def _object(
    value: dict[str, Json], schema: Schema, place: ValuePlace, correlation: Correlation | None
) -> CheckedValue:
    outcome = CheckedValue()
    outcome.errors += _size_errors(value, schema, place)
    declared, others = properties(schema), additional(schema)
    for name, inner in value.items():
        if name in declared:
            continue
        if others is not None:
            outcome.add(_node(inner, others, place.entry(name), key_of(correlation, name)))
        elif schema.get("additionalProperties") is False:
            text = f"{place.path}.{name} in body is a forbidden property"
            outcome.errors.append(invalid(place.field, name, text))
    for name, inner_schema in declared.items():
        if name in value:
            old = key_of(correlation, name)
            outcome.add(_node(value[name], inner_schema, place.child(name), old))
    for name in schema.get("required") or ():
        if name not in value:
            outcome.errors.append(required(place.entry(name).field))
    return outcome


def _size_errors(value: dict[str, Json], schema: Schema, place: ValuePlace) -> Iterator[FieldError]:
    size, least, most = len(value), schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and size < least:
        text = f"{place.path} in body should have at least {least} properties"
        yield invalid(place.field, size, text)
    if most is not None and size > most:
        yield too_many(place.field, size, most)


def _alternatives(
    value: Json, schema: Schema, place: ValuePlace, correlation: Correlation | None
) -> CheckedValue:
    """allOf, anyOf, oneOf and not."""
    outcome = CheckedValue()

    def tried(name: str) -> list[CheckedValue]:
        return [_check(value, part, place, correlation) for part in schema.get(name) or ()]

    def complain(text: str) -> None:
        outcome.errors.append(invalid(place.nowhere, "", f'"{place.path}" {text}'))

    if (found := tried("anyOf")) and all(one.errors for one in found):
        complain("must validate at least one schema (anyOf)")
        outcome.add(_nearest(found))
    if found := tried("oneOf"):
        valid = sum(not one.errors for one in found)
        if valid != 1:
            count = f"Found {valid} valid alternatives" if valid else "Found none valid"
            complain(f"must validate one and only one schema (oneOf). {count}")
            if not valid:
                outcome.add(_nearest(found))
    if found := tried("allOf"):
        for one in found:
            outcome.add(one)
        failed = sum(bool(one.errors) for one in found)
        if failed:
            suffix = ". None validated" if failed == len(found) else ""
            complain(f"must validate all the schemas (allOf){suffix}")
    forbidden = schema.get("not")
    if forbidden is not None and not _check(value, forbidden, place, correlation).errors:
        complain("must not validate the schema (not)")
    return outcome


def _nearest(failures: list[CheckedValue]) -> CheckedValue:
    return max(failures, key=lambda failure: failure.matches)
