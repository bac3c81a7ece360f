"""Label and field selectors of list, watch and deletecollection requests.

The grammar and the error texts are those of Kubernetes: people paste the errors into search engines. A field selector
may only use fields that the resource declares, since the server must distinguish a typo from a field without a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from drayman.api.formats import label_key_problems, label_value_problems
from drayman.api.integers import parse_integer
from drayman.api.struct import Json
from drayman.apiserver.protocol.errors import StatusError, bad_request
from drayman.apiserver.requests.matching import FieldRule, LabelRules
from drayman.apiserver.served.resources import ApiResource
from drayman.apiserver.served.strategy import Object

Labels = Mapping[str, str]
_END: Final = ""
_TOKEN: Final = re.compile(r"\s*(==|!=|[=<>!(),]|[^=<>!(),\s]+)")
_SYMBOLS: Final = frozenset({"=", "==", "!=", "<", ">", "!", "(", ")", ",", _END})
_OPERATORS: Final = ("in", "notin", "=", "==", "!=", ">", "<")
_EXPECTED_OPERATORS: Final = "in, notin, =, ==, !=, gt, lt"


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    key: str
    operator: str
    values: frozenset[str]


class _Parser:
    """Reads tokens one ahead. Which words are operators depends on the position, so tokens are plain strings."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._position = 0

    def peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else _END

    def take(self) -> str:
        token = self.peek()
        self._position += 1
        return token

    def requirements(self) -> list[LabelRequirement]:
        found: list[LabelRequirement] = []
        while (token := self.peek()) != _END:
            if token in _SYMBOLS and token != "!":
                raise bad_request(f"found '{token}', expected: !, identifier, or 'end of string'")
            found.append(self._requirement())
            separator = self.take()
            if separator == _END:
                break
            if separator != ",":
                raise bad_request(f"found '{separator}', expected: ',' or 'end of string'")
            if (following := self.peek()) in _SYMBOLS and following != "!":
                raise bad_request(f"found '{following}', expected: identifier after ','")
        return found

    def _requirement(self) -> LabelRequirement:
        absent = self.peek() == "!"
        if absent:
            self.take()
        key = self.take()
        if key in _SYMBOLS:
            raise _unparsable(f"found '{key}', expected: identifier")
        if problems := label_key_problems(key):
            raise _unparsable(f'<nil>: Invalid value: "{key}": {"; ".join(problems)}')
        if self.peek() in (_END, ","):
            return LabelRequirement(key, "!" if absent else "exists", frozenset())
        operator = self.take()
        if operator not in _OPERATORS:
            raise _unparsable(f"found '{operator}', expected: {_EXPECTED_OPERATORS}")
        values = self._set() if operator in ("in", "notin") else frozenset({self._value()})
        self._check_values(key, operator, values)
        return LabelRequirement(key, operator, values)

    @staticmethod
    def _check_values(key: str, operator: str, values: frozenset[str]) -> None:
        for index, value in enumerate(sorted(values)):
            place = f"values[{index}][{key}]"
            if problems := label_value_problems(value):
                text = "; ".join(problems)
                raise _unparsable(f'{place}: Invalid value: "{value}": {text}')
            if operator in ("<", ">") and parse_integer(value) is None:
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise _unparsable(f'values[{index}]: Invalid value: "{value}": {detail}')

    def _value(self) -> str:
        if self.peek() in (_END, ","):
            return ""
        value = self.take()
        if value in _SYMBOLS:
            raise _unparsable(f"found '{value}', expected: identifier")
        return value

    def _set(self) -> frozenset[str]:
        opening = self.take()
        if opening != "(":
            raise _unparsable(f"found '{opening}' expected: '('")
        if self.peek() == ")":
            self.take()
            return frozenset({""})
        if (token := self.peek()) in _SYMBOLS and token != ",":
            raise _unparsable(f"found '{token}', expected: ',', ')' or identifier")
        values = self._identifiers()
        self.take()
        return values

    def _identifiers(self) -> frozenset[str]:
        """Up to, not including, the closing parenthesis. A missing value between commas is the empty one."""
        values: set[str] = set()
        while True:
            token = self.take()
            if token == ",":
                if not values:
                    values.add("")
                if self.peek() == ")":
                    values.add("")
                    return frozenset(values)
                if self.peek() == ",":
                    self.take()
                    values.add("")
            elif token in _SYMBOLS:
                raise _unparsable(f"found '{token}', expected: ',', or identifier")
            else:
                values.add(token)
                if (following := self.peek()) == ")":
                    return frozenset(values)
                if following != ",":
                    raise _unparsable(f"found '{following}', expected: ',' or ')'")


def _unparsable(why: str) -> StatusError:
    return bad_request(f"unable to parse requirement: {why}")


def parse_labels(text: str) -> tuple[LabelRequirement, ...]:
    """The requirements of a label selector. Raises StatusError 400."""
    return tuple(_Parser(text).requirements())


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    name: str
    value: str
    wanted: bool
    read: Callable[[Object], str]


_METADATA_FIELDS: Final[dict[str, Callable[[Object], str]]] = {
    "metadata.name": lambda obj: str(obj["metadata"].get("name", "")),
    "metadata.namespace": lambda obj: str(obj["metadata"].get("namespace", "")),
}


def parse_fields(text: str, resource: ApiResource, version: str) -> tuple[FieldRequirement, ...]:
    """The requirements of a field selector. Raises StatusError 400 for bad syntax and for fields that are not selectable."""
    found: list[FieldRequirement] = []
    for term in re.findall(r"((?:\\.|[^\\,])*)(?:,|$)", text):
        if not term:
            continue
        name, operator, value = _field_term(term, text)
        known = _METADATA_FIELDS.get(name) or resource.selectable.get(name)
        if known is None or (name == "metadata.namespace" and not resource.namespaced):
            raise _unknown_field(name, resource, version)
        found.append(FieldRequirement(name, value, operator != "!=", known))
    return tuple(found)


def _field_term(term: str, whole: str) -> tuple[str, str, str]:
    match = re.match(r"((?:\\.|[^=!\\])*?)(!=|==|=)(.*)\Z", term, re.DOTALL)
    if match is None:
        raise bad_request(f"invalid selector: '{whole}'; can't understand '{term}'")
    name, operator, value = match.groups()
    if re.search(r"(?<!\\)[=]", value):
        raise bad_request(f"invalid field selector: unescaped character in value '{value}'")
    return name, operator, re.sub(r"\\([\\,=])", r"\1", value)


def _unknown_field(name: str, resource: ApiResource, version: str) -> StatusError:
    if not resource.selectable:
        known = '"metadata.name", "metadata.namespace"'
        return bad_request(f'"{name}" is not a known field selector: only {known}')
    if resource.group and not resource.custom:
        kind = f"{resource.group}/{version}, Kind={resource.kind}"
        return bad_request(f"field label not supported for {kind}: {name}")
    return bad_request(f"field label not supported: {name}")


@dataclass(frozen=True, slots=True)
class Selector:
    """Both selectors of a request."""

    labels: tuple[LabelRequirement, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()
    _label_rules: LabelRules = field(init=False, repr=False, compare=False)
    _field_rules: tuple[FieldRule, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rules: dict[str, FieldRule] = {}
        for each in self.fields:
            rules.setdefault(each.name, FieldRule(each.read)).add(each.value, is_wanted=each.wanted)
        object.__setattr__(self, "_label_rules", LabelRules.of(self.labels))
        object.__setattr__(self, "_field_rules", tuple(rules.values()))

    @property
    def is_empty(self) -> bool:
        return not self.labels and not self.fields

    @property
    def only_name(self) -> str | None:
        """The one name that can match, where the selector asks for one."""
        names = (f.value for f in self.fields if f.name == "metadata.name" and f.wanted)
        return next(names, None)

    def matches(self, obj: Object) -> bool:
        labels: Json = obj["metadata"].get("labels") or {}
        return self._label_rules.match(labels) and all(r.matches(obj) for r in self._field_rules)


EVERYTHING: Final = Selector()
