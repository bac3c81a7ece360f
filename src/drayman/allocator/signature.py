"""What a node looks like to a question: nodes of equal signatures get equal answers, up to the names of nodes and devices.

Equal means: the same outcome, the same number of devices dropping out at each test, an allocation of the same quality. In a cluster
of a thousand equal nodes one search then answers for all of them. Signatures are small numbers made from everything that a search reads:
which devices pass which selectors, what they are and where, what is held, what is tolerated. They can be compared within one
inventory; the claims themselves are not part of them.

Nodes that see thousands of devices mostly share them. They are not described, but distinguished by their hardware, which is shared.
For devices that a question is not about (`focus`), only what a refusal and the cost of a plan say about them is looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

from drayman.allocator.policies.objective import broken_in
from drayman.allocator.problem.alignment import layout_of
from drayman.allocator.problem.focus import Selectors, focused, numbers_left_out, selectors_of
from drayman.allocator.problem.question import Question
from drayman.api.resource import ResourceClaim
from drayman.bounded import Bounded
from drayman.inventory.device import DeviceRecord
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.view import NodeView

_MOST_KEPT: Final = 1_024  # kinds of questions for each hardware


def signature(view: NodeView, claims: Sequence[ResourceClaim] | Question) -> Hashable:
    """A value that is equal for nodes on which a search for the claims ends alike."""
    question = claims if isinstance(claims, Question) else Question(claims)
    shown = focused(view, question)
    asked = selectors_of(view, question)
    return (
        shown.hardware.derived(_Appearances).of(asked, question.compared),
        shown.usage.number,
        tuple([shown.tolerated(each) for each in question.tolerations]),
        tuple([problem.state.value for problem in shown.problems]),
        tuple([(numbers_left_out(u.hardware, asked), broken_in(u)) for u in shown.left_out]),
    )


def appearance(hardware: NodeHardware, selectors: tuple[Selectors, ...]) -> int:
    """A number that is equal for hardware that these selectors, and everything that is counted, cannot tell apart."""
    return hardware.derived(_Appearances).of(selectors, ())


def describe_ahead(hardware: NodeHardware, selectors: Iterable[tuple[str, ...]]) -> None:
    """Work out what any question needs to know of a hardware, and which devices pass these selectors."""
    hardware.derived(_Appearances).describe()
    for expressions in selectors:
        hardware.select(expressions)
        for each in expressions:
            hardware.select((each,))


class _Appearances:
    """What a hardware looks like to different questions."""

    def __init__(self, hardware: NodeHardware) -> None:
        self._hardware = hardware
        self._described: Hashable = None
        self._known: Bounded[Hashable, int] = Bounded(_MOST_KEPT)

    def of(self, selectors: tuple[Selectors, ...], compared: tuple[str, ...]) -> int:
        key = (selectors, compared)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._number(selectors, compared)
        return found

    def _number(self, selectors: tuple[Selectors, ...], compared: tuple[str, ...]) -> int:
        hardware = self._hardware
        if hardware.is_vast:
            return hardware.numbering.unique()
        described = self.describe()
        verdicts = tuple(
            None if each is None else tuple([hardware.select((text,)) for text in each])
            for each in selectors
        )
        # Values are numbered as they appear, so equal numbers mean equal among the devices of the node.
        attributes = tuple(tuple(hardware.attribute(name).of_device) for name in compared)
        return hardware.numbering.of((described, verdicts, attributes))

    def describe(self) -> Hashable:
        """What all questions see of it. None where that is not looked at."""
        hardware = self._hardware
        if self._described is None and not hardware.is_vast:
            self._described = hardware.numbering.of(_describe(hardware))
        return self._described


def _describe(hardware: NodeHardware) -> Hashable:
    """Everything about the devices except names, attributes and what selectors decide."""
    numa: dict[int, int] = {-1: -1}
    sockets: dict[int, int] = {-1: -1}
    return (
        tuple([(len(pool.records), len(pool.limits)) for pool in hardware.pools]),
        (hardware.shareable, hardware.binding, hardware.selects_node, hardware.consumers),
        tuple([(info.names, info.limits) for info in hardware.counter_sets]),
        tuple(hardware.consumption),
        tuple([tuple((c.name, c.value, c.policy) for c in k) for k in hardware.capacity_kinds]),
        tuple(hardware.capacity_kind),
        tuple(
            [
                (
                    place.kind,
                    place.root,
                    numa.setdefault(place.numa, len(numa)),
                    sockets.setdefault(place.socket, len(sockets)),
                    place.fabric,
                )
                for place in hardware.derived(layout_of).places
            ]
        ),
        tuple([_selects_ambiguously(record) for record in hardware.records]),
    )


def _selects_ambiguously(record: DeviceRecord) -> bool:
    """Whether an allocation of the device ends in an error because its node selector has several terms."""
    spec = record.slice.spec
    selector = record.device.node_selector if spec.per_device_node_selection else spec.node_selector
    return selector is not None and len(selector.node_selector_terms) > 1
