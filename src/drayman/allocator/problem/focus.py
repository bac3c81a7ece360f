"""The part of a node that a question is about.

A node may see thousands of devices together with all other nodes, and have a few of its own. If every selector of a question says no to
each device of one part, and fails on none of them, that part does not affect the allocation: its devices serve no request, and pools,
counters and capacities of the other part are not theirs. The search then looks at the other part alone. Where that is the shared one,
what one node has learned holds for all of them.

Two things still concern the whole node. The reasons of a refusal count the devices that no selector wants, and the cost of an
allocation counts places that are used in part, wherever they are. Both are simple sums as long as no place is in both parts, so a part
is only left out if one of the two says nothing about places.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, TypeAlias

from drayman.allocator.problem.alignment import layout_of
from drayman.allocator.problem.question import Question, WantedDevices
from drayman.bounded import Bounded
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.view import NodeView

_MOST_KEPT: Final = 1_024  # kinds of questions for each hardware

Selectors: TypeAlias = tuple[str, ...] | None
"""The expressions of class and request; None if the class is missing or has something else in it."""


def focused(view: NodeView, question: Question) -> NodeView:
    """What of the node concerns the question: the view itself, or one part of it."""
    if len(view.parts) == 1 or question.stated.has_held:
        return view  # in the second case, the devices that are held have to be shown too
    asked = selectors_of(view, question)
    serving = [part for part in view.parts if part.hardware.derived(_Concerns).any_of(asked)]
    placed = [part for part in view.parts if part.hardware.derived(_has_places)]
    if len(serving) > 1 or len(placed) > 1:
        return view
    return view.showing(serving[0] if serving else view.parts[0])


def selectors_of(view: NodeView, question: Question) -> tuple[Selectors, ...]:
    """The selectors of everything that is wanted."""
    return tuple(
        [_selectors(view, w) for request in question.requests for w in request.alternatives]
    )


def _selectors(view: NodeView, wanted: WantedDevices) -> Selectors:
    device_class = view.device_class(wanted.spec.device_class_name)
    if device_class is None:
        return None
    if wanted.selectors is not None and wanted.selectors[0] is device_class:
        return wanted.selectors[1]
    found = [s.cel for s in (*device_class.spec.selectors, *wanted.spec.selectors)]
    return tuple([cel.expression for cel in found if cel is not None])


def numbers_left_out(hardware: NodeHardware, asked: tuple[Selectors, ...]) -> Hashable:
    """How many devices of a part that is left out each selector still lets pass."""
    return hardware.derived(_Concerns).numbers(asked)


def _has_places(hardware: NodeHardware) -> bool:
    return hardware.derived(layout_of).has_places


class _Concerns:
    """Which questions concern the devices of a hardware."""

    def __init__(self, hardware: NodeHardware) -> None:
        self._hardware = hardware
        self._concerned: Bounded[Hashable, bool] = Bounded(_MOST_KEPT)
        self._numbers: Bounded[Hashable, Hashable] = Bounded(_MOST_KEPT)

    def any_of(self, asked: tuple[Selectors, ...]) -> bool:
        """Whether a device may be wanted, or cannot be judged."""
        found = self._concerned.get(asked)
        if found is None:
            found = self._concerned[asked] = any(
                any(self._hardware.select(selectors)) for selectors in _readable(asked)
            )
        return found

    def numbers(self, asked: tuple[Selectors, ...]) -> Hashable:
        found = self._numbers.get(asked)
        if found is None:
            counts = [self._passing(selectors) for selectors in _readable(asked)]
            found = self._numbers[asked] = (len(self._hardware.records), tuple(counts))
        return found

    def _passing(self, selectors: tuple[str, ...]) -> tuple[int, ...]:
        select = self._hardware.select
        ends = range(1, len(selectors) + 1)
        return tuple([select(selectors[:end])[0].bit_count() for end in ends])


def _readable(asked: Iterable[Selectors]) -> Iterable[tuple[str, ...]]:
    """Without those that end a search before it looks at any device."""
    return (selectors for selectors in asked if selectors is not None)
