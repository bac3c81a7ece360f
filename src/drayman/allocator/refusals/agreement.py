"""What constraints leave of the devices that each request could have.

A constraint leaves the devices that lack nothing it compares. Where there are enough of those, it leaves only values on which enough
devices agree, for this request and for the others that the constraint is about. What it says is necessary for an allocation, not
sufficient: requests may still compete for the same devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drayman.allocator.problem.question import Question
from drayman.allocator.refusals.sieve import Hurdle, Passed, Sieve
from drayman.inventory.attributes import AttributeIndex
from drayman.inventory.bitsets import positions
from drayman.inventory.view import NodeView


class Agreement:
    """What the constraints leave of the devices that each request could have."""

    def __init__(self, view: NodeView, question: Question, alone: Sequence[list[Sieve]]) -> None:
        self._question = question
        self._alone = alone
        attribute = view.hardware.attribute
        self._matches = [attribute(compared.name) for compared in question.matches]
        self._distincts = [attribute(compared.name) for compared in question.distincts]
        self._shared_values: dict[int, list[int]] = {}

    def steps(self, sieve: Sieve) -> Iterator[Passed]:
        left = sieve.passed[-1].devices
        for index in sieve.wanted.matches:
            step = self._matching(sieve, index, left)
            left = step.devices
            yield step
        for index in sieve.wanted.distincts:
            step = self._differing(sieve, index, left)
            left = step.devices
            yield step

    def _matching(self, sieve: Sieve, index: int, left: int) -> Passed:
        attribute, name = self._matches[index], self._question.matches[index].name
        present = left & attribute.present
        lost = _without(left & ~present)
        if present.bit_count() < sieve.number:
            return Passed(Hurdle.CONSTRAINT, present, name, lost)
        common = self._common_values(index)
        enough = 0
        for value in common:
            if (present & attribute.holders[value]).bit_count() >= sieve.number:
                enough |= present & attribute.holders[value]
        closest = 0 if enough else present & attribute.holders[self._closest_value(index)]
        return Passed(Hurdle.CONSTRAINT, enough, name, lost, closest)

    def _common_values(self, index: int) -> list[int]:
        """The values on which each request that the constraint is about can find enough devices, or could not anyway."""
        known = self._shared_values.get(index)
        if known is None:
            about = self._about(index)
            known = self._shared_values[index] = [
                value
                for value, devices in enumerate(self._matches[index].holders)
                if all(_serves(alternatives, index, devices) for alternatives in about)
            ]
        return known

    def _closest_value(self, index: int) -> int:
        """The value with which the fewest devices are missing, over all requests that the constraint is about."""
        about, holders = self._about(index), self._matches[index].holders
        return min(
            range(len(holders)),
            key=lambda value: sum(_lacking(each, index, holders[value]) for each in about),
        )

    def _about(self, index: int) -> list[list[Sieve]]:
        return [
            alternatives
            for alternatives in self._alone
            if any(index in sieve.wanted.matches for sieve in alternatives)
        ]

    def _differing(self, sieve: Sieve, index: int, left: int) -> Passed:
        attribute, name = self._distincts[index], self._question.distincts[index].name
        present = left & attribute.present
        lost = _without(left & ~present)
        values = sum(1 for devices in attribute.holders if devices & present)
        if present.bit_count() < sieve.number or values >= sieve.number:
            return Passed(Hurdle.CONSTRAINT, present, name, lost)
        return Passed(Hurdle.CONSTRAINT, 0, name, lost, _one_of_each(attribute, present))


def _serves(alternatives: Sequence[Sieve], index: int, devices: int) -> bool:
    """Whether a request could be served with these devices, or could not be served with any."""
    is_hopeless = True
    for sieve in alternatives:
        left = sieve.passed[-1].devices
        if left.bit_count() >= sieve.number:
            is_hopeless = False
            bound = index in sieve.wanted.matches
            if not bound or (left & devices).bit_count() >= sieve.number:
                return True
    return is_hopeless


def _lacking(alternatives: Sequence[Sieve], index: int, devices: int) -> int:
    """How many devices a request lacks if those that the constraint is about have to be among these."""
    return min(
        max(sieve.number - (left & devices if bound else left).bit_count(), 0)
        for sieve, left, bound in (
            (sieve, sieve.passed[-1].devices, index in sieve.wanted.matches)
            for sieve in alternatives
        )
    )


def _without(devices: int) -> tuple[tuple[str, int], ...]:
    return (("without the attribute", devices),) if devices else ()


def _one_of_each(attribute: AttributeIndex, devices: int) -> int:
    """Devices no two of which share a value, taken in order."""
    found = blocked = 0
    for position in positions(devices):
        if not blocked >> position & 1:
            found |= 1 << position
            blocked |= attribute.conflicts[position]
    return found
