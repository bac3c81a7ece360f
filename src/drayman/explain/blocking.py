"""Devices of one node that nearly would do, and what is in the way of each: a holder, a taint, too little capacity, another value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from drayman.allocator.refusals.sieve import Hurdle, Passed, Sieve
from drayman.api.resource import ResourceClaim
from drayman.explain.holders import Holders, on_its_counters
from drayman.inventory.bitsets import positions
from drayman.inventory.view import NodeView
from drayman.reasons.naming import amount_title, claim_title, is_for_extended, taint_title
from drayman.reasons.wording import counted

MOST_BLOCKED: Final = 32
"""How many devices of a request are listed. A node can see thousands."""
_WORDS: Final = {
    Hurdle.FEATURE: "of a kind that is switched off",
    Hurdle.CLASS: "not of the class",
    Hurdle.SELECTOR: "not selected",
    Hurdle.FREE: "in use",
    Hurdle.TAINTS: "tainted",
    Hurdle.CAPACITY: "without the capacity",
    Hurdle.COUNTERS: "without counters left",
    Hurdle.CONSTRAINT: "against the constraint",
}


class Blocking:
    """What is in the way on one node."""

    def __init__(self, view: NodeView, known: Holders) -> None:
        self._view = view
        self._known = known

    def reasons(self, sieve: Sieve) -> dict[str, str]:
        """By device: those that pass the selectors if there are any, otherwise those of the class."""
        base = Hurdle.SELECTOR if sieve.left_by(Hurdle.SELECTOR) else Hurdle.CLASS
        tests = [passed.test for passed in sieve.passed]
        start = max((i for i, test in enumerate(tests) if test in (Hurdle.CLASS, base)), default=0)
        before = sieve.passed[start].devices
        found: dict[str, str] = {}
        for passed in sieve.passed[start + 1 : -1]:
            left = passed.closest or passed.devices
            for position in positions(before & ~left):
                if len(found) < MOST_BLOCKED:
                    name = str(self._view.id_of(position))
                    found[name] = self._reason(sieve, passed, position)
            before &= left
        return found

    def _reason(self, sieve: Sieve, passed: Passed, position: int) -> str:
        match passed.test:
            case Hurdle.SELECTOR:
                return f"not selected by {passed.detail}"
            case Hurdle.FREE:
                return f"in use by {self._holder(position)}"
            case Hurdle.TAINTS:
                return f"tainted {self._taint(sieve, position)}"
            case Hurdle.CAPACITY:
                return self._capacity(sieve, position)
            case Hurdle.COUNTERS:
                return self._counters(position)
            case Hurdle.CONSTRAINT:
                return self._value(passed, position)
            case _:
                return passed.detail or _WORDS[passed.test]

    def _holder(self, position: int) -> str:
        device = self._view.id_of(position)
        holders = self._known.of_device(device) or dict.fromkeys(
            holder for holder, _ in on_its_counters(self._view, device, self._known)
        )
        titles = [self._known.title(holder) for holder in holders]
        more = f" and {len(titles) - 2} more" if len(titles) > 2 else ""
        return f"{', '.join(titles[:2])}{more}" if titles else "an unknown holder"

    def _taint(self, sieve: Sieve, position: int) -> str:
        hardware = self._view.hardware
        taints = hardware.taints(self._view.taints[0].rules)
        found = taints.untolerated(hardware.records[position], sieve.wanted.spec.tolerations)
        return ", ".join(taint_title(*taint) for taint in found)

    def _capacity(self, sieve: Sieve, position: int) -> str:
        hardware = self._view.hardware
        kind = hardware.capacity_kind[position]
        charge = hardware.charges(sieve.wanted.amounts)[kind]
        capacities = hardware.capacity_kinds[kind]
        if charge is None:
            lacking = [n for n, _ in sieve.wanted.amounts if n not in {c.name for c in capacities}]
            return f"has no {lacking[0]}" if lacking else "its policy does not allow the amount"
        left = self._view.usage.remaining(position)
        for capacity, wanted, have in zip(capacities, charge, left, strict=True):
            if wanted > have:
                whole = "in total" if have == capacity.value else "left"
                amounts = f"{amount_title(wanted)} wanted, {amount_title(have)} {whole}"
                return f"{capacity.name}: {amounts}"
        return _WORDS[Hurdle.CAPACITY]

    def _counters(self, position: int) -> str:
        view, hardware = self._view, self._view.hardware
        for index, amounts in hardware.consumption[position]:
            info = hardware.counter_sets[index]
            for name, wanted, have in zip(
                info.names, amounts, view.usage.counters[index], strict=True
            ):
                if wanted > have:
                    what = f"{amount_title(wanted)} wanted, {amount_title(have)} left"
                    return f"{info.name}/{name}: {what} ({self._holder(position)})"
        return "counters of its pool are used up"

    def _value(self, passed: Passed, position: int) -> str:
        attribute = self._view.hardware.attribute(passed.detail)
        values = [
            str(value)
            for number, (_, value) in enumerate(attribute.values)
            if attribute.of_device[position] >> number & 1
        ]
        return f"{passed.detail} is {', '.join(values)}" if values else f"has no {passed.detail}"

    def sentence(self, sieve: Sieve, claims: Sequence[ResourceClaim], *, never: bool) -> str:
        """What a request finds, and why the rest is not available."""
        claim = claim_title(claims[sieve.wanted.claim])
        what = f"request {sieve.wanted.name} of claim {claim}"
        if is_for_extended(claims[sieve.wanted.claim]):
            what = f"what extended resources want of class {sieve.wanted.spec.device_class_name}"
        wanted = counted(sieve.number, "device")
        if objection := _objection(sieve):
            all_or_some = wanted if sieve.all_of is None else "all devices"
            return f"{what} wants {all_or_some}, but {objection}"
        found = f"{min(sieve.would_do.bit_count(), sieve.number)} of {wanted}"
        if sieve.all_of is not None:
            found = f"{sieve.would_do.bit_count()} of all {wanted}"
        lost = self._lost(sieve)
        went = f" ({lost})" if lost else ""
        short = sieve.short_at
        is_about_use = short is not None and short.test.order > Hurdle.SELECTOR.order
        but = "".join(f", but {why}" for why, _ in sieve.passed[-1].lost)
        ever = " even if nothing were in use" if never and is_about_use and not but else ""
        return f"{what} finds {found}{ever}{went}{but}"

    def _lost(self, sieve: Sieve) -> str:
        """Devices by the test that they fail, beginning with the class if any device belongs to it."""
        counts: Counter[str] = Counter()
        before = sieve.everything
        of_class = bool(sieve.left_by(Hurdle.CLASS))
        for passed in sieve.passed:
            left = passed.closest or passed.devices
            lost = (before & ~left).bit_count()
            if (
                lost
                and passed.test is not Hurdle.COUNT
                and not (of_class and passed.test is Hurdle.CLASS)
            ):
                counts[_lost_words(passed)] += lost
            before &= left
        return ", ".join(f"{number} {words}" for words, number in counts.items())


def _objection(sieve: Sieve) -> str:
    """Why devices are not considered: a feature is off, or a pool of which all are wanted cannot be seen."""
    short = sieve.short_at
    if short is not None and short.test is Hurdle.FEATURE:
        return short.detail
    hidden = sieve.all_of is not None and not sieve.would_do
    return next((why for why, _ in sieve.passed[-1].lost), "") if hidden else ""


def _lost_words(passed: Passed) -> str:
    if passed.test is not Hurdle.CONSTRAINT:
        return _WORDS[passed.test]
    lacks = not passed.closest and any(devices for _, devices in passed.lost)
    return f"without {passed.detail}" if lacks else f"apart in {passed.detail}"
