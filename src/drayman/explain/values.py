"""Values in selectors that no device has: another profile, more memory than there is, a newer driver.

A condition is at fault if there are devices that pass all other conditions of class and request, and none of them passes this one. What
those devices have instead is reported, the nearest first. Where nothing passes even the others, each condition that no device passes is
reported, with what devices have instead.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from drayman.allocator.problem.question import WantedDevices
from drayman.api.semver import Version, is_valid
from drayman.explain.answer import Value
from drayman.explain.closeness import Existing, distance, is_slip, ranked, slips, text_of
from drayman.explain.conditions import (
    ATTRIBUTE,
    BOTTOM_UP,
    CAPACITY,
    DRIVER,
    TOP_DOWN,
    Comparison,
    SelectorCondition,
    WrittenValue,
    comparison_of,
    conditions_of,
)
from drayman.explain.counting import SharedDevices
from drayman.explain.spelling import expressions_of, one_of_each_question
from drayman.explain.survey import Survey
from drayman.inventory.bitsets import positions
from drayman.inventory.device import DeviceRecord
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.identity import DeviceId
from drayman.reasons.naming import claim_title
from drayman.reasons.unknown_names import all_hardware

MATCHING: Final = "matching"
ALL: Final = "all"
_MOST_LISTED: Final = 6
_MOST_TRIED: Final = 4
_PLAIN: Final = re.compile(r"[^'\"\\\x00-\x1f]*")


class Rewriting(Struct, frozen=True):
    """A rewritten selector, and a description of the change."""

    before: str
    after: str
    words: str


class Correction(Struct, frozen=True):
    """A value that is written in a selector from `begin` to `end`, and another in its place."""

    begin: int
    end: int
    old: str
    new: str
    is_slip: bool
    """Whether the value may be a slip for the other: otherwise what a class is for is not changed."""


class Mistake(Struct, frozen=True):
    """A value that is wrong, and others that could stand in its place, the nearest first."""

    value: Value
    corrections: tuple[Correction, ...]
    is_bound: bool
    """Whether all values up to one are equally good: then the first that helps is enough."""


class _Part(Struct, frozen=True):
    """A condition and the selector that it is in."""

    expression: str
    condition: SelectorCondition


def mistaken_values(survey: Survey) -> tuple[Mistake, ...]:
    """The values in the claims of a pod that keep all devices away."""
    found: dict[tuple[str, str, str], Mistake] = {}
    search: _Search | None = None
    for outlook in one_of_each_question(survey):
        for request in outlook.wanted.question.requests:
            for wanted in request.alternatives:
                search = search or _Search(survey)
                claim = claim_title(outlook.wanted.claims[wanted.claim])
                for mistake in search.of(claim, wanted):
                    key = (claim, wanted.name, mistake.value.condition)
                    found.setdefault(key, mistake)
    return tuple(found.values())


class _Search:
    """Looks for values in what all nodes have."""

    def __init__(self, survey: Survey) -> None:
        self._state = survey.state
        self._hardware = all_hardware(survey.state)

    @cached_property
    def _shared(self) -> SharedDevices:
        return SharedDevices(self._hardware)

    def of(self, claim: str, wanted: WantedDevices) -> Iterator[Mistake]:
        device_class = self._state.inventory.classes.get(wanted.spec.device_class_name)
        if device_class is None:
            return
        expressions = tuple(expressions_of(wanted, device_class))
        if self._passes(expressions):
            return
        parts = [_Part(each, part) for each in expressions for part in conditions_of(each)]
        found = list(self._at_fault(parts))
        for part, comparison, existing, among in found or self._absent(parts):
            # Another driver is no substitute for this one; one with nearly the same name may have been meant.
            kept = existing if comparison.what != DRIVER else slips(comparison, existing)
            if kept:
                yield _mistake(claim, wanted.name, part, comparison, kept, among)

    def _at_fault(
        self, parts: Sequence[_Part]
    ) -> Iterator[tuple[_Part, Comparison, Counter[Existing], str]]:
        """Conditions without which some devices pass."""
        for number, part in enumerate(parts):
            rest = tuple(p.condition.text for n, p in enumerate(parts) if n != number)
            comparison = self._comparison(part)
            if comparison is not None and self._passes(rest):
                existing = self._values(comparison, rest)
                if existing:
                    yield part, comparison, existing, MATCHING

    def _absent(
        self, parts: Sequence[_Part]
    ) -> Iterator[tuple[_Part, Comparison, Counter[Existing], str]]:
        """Conditions that no device passes."""
        for part in parts:
            comparison = self._comparison(part)
            if comparison is not None and not self._passes((part.condition.text,)):
                existing = self._values(comparison, ())
                if existing:
                    yield part, comparison, existing, ALL

    def _comparison(self, part: _Part) -> Comparison | None:
        lists = self._state.inventory.features.list_attributes
        return comparison_of(part.condition.text, list_attributes=lists)

    def _passes(self, expressions: tuple[str, ...]) -> bool:
        return any(each.select(expressions)[0] for each in self._hardware)

    def _values(self, comparison: Comparison, expressions: tuple[str, ...]) -> Counter[Existing]:
        """What devices that pass the expressions have, and how many of them."""
        found: Counter[Existing] = Counter()
        counted: set[DeviceId] = set()
        value_of = _reading(comparison)
        for hardware in self._hardware:
            for record in self._records(hardware, expressions, counted):
                value = value_of(record)
                if value is not None:
                    found[value] += 1
        return found

    def _records(
        self, hardware: NodeHardware, expressions: tuple[str, ...], counted: set[DeviceId]
    ) -> Iterator[DeviceRecord]:
        passing = self._shared.fresh(counted, hardware, hardware.select(expressions)[0])
        return (hardware.records[position] for position in positions(passing))


def _reading(comparison: Comparison) -> Callable[[DeviceRecord], Existing | None]:
    """The device's value for what is compared, if it has the same type as the written values."""
    domain, _, name = comparison.name.rpartition("/")
    is_text = all(isinstance(written.value, str) for written in comparison.values)

    def attribute(record: DeviceRecord) -> Existing | None:
        attributes = record.device.attributes
        found = attributes.get(comparison.name)
        if found is None and record.id.driver == domain:
            found = attributes.get(name)
        if found is None:
            return None
        if not is_text:
            return found.bool_ if found.int_ is None else found.int_
        if found.version is not None and is_valid(found.version):
            return Version.parse(found.version)
        return found.string

    def capacity(record: DeviceRecord) -> Existing | None:
        capacities = record.device.capacity
        found = capacities.get(comparison.name)
        if found is None and record.id.driver == domain:
            found = capacities.get(name)
        return None if found is None or not is_text else found.value

    def driver(record: DeviceRecord) -> Existing:
        return record.id.driver

    return {ATTRIBUTE: attribute, CAPACITY: capacity}.get(comparison.what, driver)


def _mistake(
    claim: str,
    request: str,
    part: _Part,
    comparison: Comparison,
    existing: Counter[Existing],
    among: str,
) -> Mistake:
    nearest = ranked(comparison, existing)
    shown = nearest[:_MOST_LISTED]
    found = Value(
        claim=claim,
        request=request,
        selector=part.expression,
        condition=part.condition.text,
        what=comparison.what,
        name=comparison.name,
        wanted=_wanted(part, comparison),
        among=among,
        existing=tuple((text_of(value), existing[value]) for value in shown),
        more=len(nearest) - len(shown),
    )
    tried = (_correction(part, comparison, value) for value in nearest[:_MOST_TRIED])
    return Mistake(found, tuple(tried), comparison.operator in TOP_DOWN + BOTTOM_UP)


def rewritten(expression: str, corrections: Sequence[Correction]) -> Rewriting:
    """An expression with all these corrections made."""
    after, words = expression, list[str]()
    for each in sorted(corrections, key=lambda each: -each.begin):
        after = f"{after[: each.begin]}{each.new}{after[each.end :]}"
        words.insert(0, f"{each.new} instead of {each.old}")
    return Rewriting(expression, after, f"write {' and '.join(words)}")


def _wanted(part: _Part, comparison: Comparison) -> str:
    """How the values are compared, as they are written."""
    written = [_source(part, value) for value in comparison.values]
    listed = f"[{', '.join(written)}]" if comparison.operator == "in" else written[0]
    return f"{comparison.operator} {listed}"


def _source(part: _Part, written: WrittenValue) -> str:
    return part.condition.text[written.begin : written.end]


def _correction(part: _Part, comparison: Comparison, value: Existing) -> Correction:
    written = min(comparison.values, key=lambda each: distance(value, each))
    if isinstance(value, int) and not isinstance(value, bool):
        value += {">": -1, "<": 1}.get(comparison.operator, 0)  # these leave out the bound itself
    old = _source(part, written)
    new = _literal(text_of(value), old)
    at = part.condition.begin
    return Correction(at + written.begin, at + written.end, old, new, is_slip(value, written))


def _literal(text: str, before: str) -> str:
    """A value as it is written in an expression, with the quotes that it had there."""
    if before[:1] not in "'\"":
        return text if before[:1].lower() != "r" else json.dumps(text, ensure_ascii=False)
    if _PLAIN.fullmatch(text):
        return f"{before[0]}{text}{before[0]}"
    return json.dumps(text, ensure_ascii=False)
