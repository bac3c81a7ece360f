"""Requirements of a selector put together, so that matching an object costs no more than the object is large.

A selector may have a thousand requirements and be matched with thousands of objects, at every change of each, for thousands of watches.
Most objects have few labels: what a selector wants of one label is one rule, and what it forbids is looked up by the labels there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from drayman.api.integers import parse_integer

Labels = Mapping[str, str]


class Requirement(Protocol):
    """A requirement on a label."""

    @property
    def key(self) -> str: ...

    @property
    def operator(self) -> str: ...

    @property
    def values(self) -> frozenset[str]: ...


@dataclass(slots=True)
class _Wanted:
    """What is required of a label that has to be there."""

    values: frozenset[str] | None = None
    above: int | None = None
    below: int | None = None

    def accepts(self, value: str) -> bool:
        if self.values is not None and value not in self.values:
            return False
        if self.above is None and self.below is None:
            return True
        number = parse_integer(value)
        return (
            number is not None
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )


@dataclass(slots=True)
class LabelRules:
    """All requirements on labels."""

    _wanted: dict[str, _Wanted] = field(default_factory=dict)
    _forbidden: dict[str, set[str] | None] = field(default_factory=dict)
    """Values that labels must not have; None for a label that must not be there."""

    @classmethod
    def of(cls, requirements: Iterable[Requirement]) -> LabelRules:
        rules = cls()
        for each in requirements:
            rules._add(each)
        return rules

    def _add(self, requirement: Requirement) -> None:
        key, values = requirement.key, requirement.values
        match requirement.operator:
            case "!":
                self._forbidden[key] = None
            case "notin" | "!=":
                known = self._forbidden.setdefault(key, set())
                if known is not None:
                    known |= values
            case operator:
                wanted = self._wanted.setdefault(key, _Wanted())
                if operator in ("in", "=", "=="):
                    wanted.values = values if wanted.values is None else wanted.values & values
                elif operator in (">", "<"):
                    self._compare(wanted, operator, next(iter(values)))

    def _compare(self, wanted: _Wanted, operator: str, text: str) -> None:
        bound = parse_integer(text)
        if bound is None:
            wanted.values = frozenset()
        elif operator == ">":
            wanted.above = bound if wanted.above is None else max(bound, wanted.above)
        else:
            wanted.below = bound if wanted.below is None else min(bound, wanted.below)

    def match(self, labels: Labels) -> bool:
        if len(self._wanted) > len(labels):
            return False
        for key, wanted in self._wanted.items():
            value = labels.get(key)
            if value is None or not wanted.accepts(value):
                return False
        if len(self._forbidden) <= len(labels):
            return not any(k in labels and self._forbids(k, labels[k]) for k in self._forbidden)
        return not any(k in self._forbidden and self._forbids(k, v) for k, v in labels.items())

    def _forbids(self, key: str, value: str) -> bool:
        values = self._forbidden[key]
        return values is None or value in values


class FieldRule:
    """All requirements on one field."""

    __slots__ = ("_forbidden", "_read", "_wanted")

    def __init__(self, read: Callable[..., str]) -> None:
        self._read = read
        self._wanted: set[str] = set()
        self._forbidden: set[str] = set()

    def add(self, value: str, *, is_wanted: bool) -> None:
        (self._wanted if is_wanted else self._forbidden).add(value)

    def matches(self, obj: object) -> bool:
        value = self._read(obj)
        # A field has one value, so it cannot have two that are wanted.
        return value not in self._forbidden and (not self._wanted or self._wanted == {value})
