"""Names in claims that no device has: most of the time they are misspelt.

A selector that reads an attribute which does not exist matches nothing or fails on every device, and says no more than that. Here the names
it reads are compared with those that devices have. Only selectors that accept no device are looked at: one that asks whether an attribute
exists may well name one that does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain

from drayman.allocator.problem.question import WantedDevices
from drayman.api.resource import DeviceClass, ResourceSlice
from drayman.cel.reads import Group
from drayman.explain.answer import Spelling
from drayman.explain.conditions import ATTRIBUTE, CAPACITY
from drayman.explain.survey import Outlook, Survey
from drayman.inventory.pool import newest_slices
from drayman.reasons.naming import claim_title
from drayman.reasons.slips import similar


class KnownNames:
    """The attributes and capacities that devices have, by full name, with the number of devices."""

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self._slices = tuple(slices)

    @cached_property
    def attributes(self) -> Mapping[str, int]:
        return self._count(of_attributes=True)

    @cached_property
    def capacities(self) -> Mapping[str, int]:
        return self._count(of_attributes=False)

    def of(self, what: str) -> Mapping[str, int]:
        return self.attributes if what == ATTRIBUTE else self.capacities

    def _count(self, *, of_attributes: bool) -> Mapping[str, int]:
        # Devices of one make have the same names, so sets of names are counted first.
        sets: Counter[tuple[str, tuple[str, ...]]] = Counter()
        for piece in chain.from_iterable(newest_slices(self._slices).values()):
            for device in piece.spec.devices or ():
                held = tuple(device.attributes if of_attributes else device.capacity)
                sets[piece.spec.driver, held] += 1
        found: Counter[str] = Counter()
        for (driver, names), devices in sets.items():
            for name in names:
                found[full_name(driver, name)] += devices
        return found


def full_name(driver: str, name: str) -> str:
    """A name with its domain, which is the driver's if it is left out."""
    return name if "/" in name else f"{driver}/{name}"


def misspelt(survey: Survey, known: KnownNames) -> tuple[Spelling, ...]:
    """The names in the claims of a pod that no device has."""
    found: dict[tuple[str, str, str, str], Spelling] = {}
    for outlook in one_of_each_question(survey):
        for request in outlook.wanted.question.requests:
            for wanted in request.alternatives:
                claim = claim_title(outlook.wanted.claims[wanted.claim])
                for source, what, name in _names_read(survey, outlook, wanted):
                    if name not in known.of(what):
                        # A constraint is written once for all requests of a claim.
                        of = "" if source in _constraints(outlook, wanted) else wanted.name
                        found.setdefault(
                            (claim, of, what, name),
                            Spelling(
                                claim=claim,
                                request=of,
                                selector=source,
                                attribute=name,
                                what=what,
                                similar=similar(name, known.of(what)),
                            ),
                        )
    return tuple(found.values())


def one_of_each_question(survey: Survey) -> Iterator[Outlook]:
    """Nodes on which the pod asks for the same need only be looked at once."""
    asked = set()
    for outlook in survey.outlooks:
        if outlook.wanted.delegated not in asked:
            asked.add(outlook.wanted.delegated)
            yield outlook


def _names_read(
    survey: Survey, outlook: Outlook, wanted: WantedDevices
) -> Iterator[tuple[str, str, str]]:
    """Where a name is written, whether it names an attribute or a capacity, and the full name."""
    device_class = survey.state.inventory.classes.get(wanted.spec.device_class_name)
    for expression in expressions_of(wanted, device_class):
        if not _accepted_anywhere(survey, expression):
            for what, name in _reads(expression, survey):
                yield expression, what, name
    for source, name in _constraints(outlook, wanted).items():
        yield source, ATTRIBUTE, name


def _constraints(outlook: Outlook, wanted: WantedDevices) -> dict[str, str]:
    """The constraints on a request as they are written, with the attribute of each."""
    question = outlook.wanted.question
    matches = [question.matches[index].name for index in wanted.matches]
    distincts = [question.distincts[index].name for index in wanted.distincts]
    found = {f"matchAttribute: {name}": name for name in matches}
    return found | {f"distinctAttribute: {name}": name for name in distincts}


def expressions_of(wanted: WantedDevices, device_class: DeviceClass | None) -> Iterator[str]:
    """The selectors of class and request."""
    of_class = () if device_class is None else device_class.spec.selectors
    for selector in (*of_class, *wanted.spec.selectors):
        if selector.cel is not None:
            yield selector.cel.expression


def _accepted_anywhere(survey: Survey, expression: str) -> bool:
    for outlook in survey.outlooks:
        view = outlook.view
        for hardware in (view.hardware, *(usage.hardware for usage in view.left_out)):
            if hardware.select((expression,))[0]:
                return True
    return False


def _reads(expression: str, survey: Survey) -> Iterator[tuple[str, str]]:
    reads = survey.state.inventory.reads(expression)
    groups: tuple[tuple[str, Group], ...] = (
        (ATTRIBUTE, reads.attributes),
        (CAPACITY, reads.capacity),
    )
    for what, group in groups:
        for domain, name in sorted(group.keys):
            yield what, f"{domain}/{name}"
