"""How many copies of some claims a node holds at the same time.

This is about copies that are placed together, each as the others need it. Copies that are placed one after the other, each as it likes
best, may be fewer: one that prefers a whole device to half of one takes it from two that would share it.

First a bound, which counts devices, counters and capacities without placing anything; it forgets some rules, so it is never too low. Then
searches for so many copies as one question, mostly a single one: the bound is nearly always reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from drayman.allocator.policies.firstfit import FirstFit
from drayman.allocator.problem.focus import focused
from drayman.allocator.problem.prepare import Judgement, prepare
from drayman.allocator.problem.question import Question
from drayman.allocator.problem.reduction import reduced
from drayman.allocator.problem.tables import Alternative, PreparationError, Tables
from drayman.allocator.tree.engine import OutOfSteps
from drayman.api.resource import ResourceClaim
from drayman.inventory.bitsets import positions
from drayman.inventory.device import Amount
from drayman.inventory.view import NodeView

COUNT_STEPS: Final = 3_000
"""Steps of all searches for one count. The question of one copy needs some tens, that of as many as a node holds some hundred."""


class Together(Struct, frozen=True):
    """How many copies a node holds at once."""

    number: int
    """So many have been placed."""
    at_most: int
    """There is no way to place more than this."""
    steps: int

    @property
    def is_exact(self) -> bool:
        return self.number == self.at_most


def together(
    view: NodeView, claims: Sequence[ResourceClaim], most: int, *, max_steps: int = COUNT_STEPS
) -> Together:
    """How many copies of the claims the node of the view holds at once, if at most so many are wanted."""
    if most <= 0 or not claims:
        return Together(max(0, most), max(0, most), 0)
    most = copies_at_most(view, claims, most)
    return _Count(view, claims, max_steps).between(0, most)


def copies_at_most(view: NodeView, claims: Sequence[ResourceClaim], most: int) -> int:
    """A number that no way to place copies exceeds."""
    question = Question(claims)
    try:
        tables = prepare(focused(view, question), question, Judgement.LENIENT)
    except PreparationError:
        return 0
    for request in tables.requests:
        # Each copy uses one of the alternatives.
        ways = sum(_uses_at_most(tables, each, most) for each in request.alternatives)
        most = min(most, ways)
    return most


def _uses_at_most(tables: Tables, wanted: Alternative, most: int) -> int:
    """How many copies can have what one alternative asks for."""
    if wanted.sequence == ():  # all devices, and there is none
        return 0
    devices = wanted.candidates
    if any(not devices >> position & 1 for position in wanted.sequence or ()):
        return 0
    if wanted.admin or not wanted.number:
        return most if devices.bit_count() >= wanted.number else 0
    shareable = tables.view.hardware.shareable & devices
    places = _exclusive(tables, devices & ~shareable)
    for position in positions(shareable):
        places += _shares(tables, wanted, position, most)
    return min(most, places // wanted.number)


def _exclusive(tables: Tables, devices: int) -> int:
    """How many of these can be in use at once, as far as counters allow."""
    hardware = tables.view.hardware
    if not devices & hardware.consumers:
        return devices.bit_count()
    number = 0
    by_set: dict[int, list[tuple[Amount, ...]]] = {}
    for position in positions(devices):
        consumed = hardware.consumption[position]
        if consumed:
            # One that takes from several sets is counted with the first of them.
            index, amounts = consumed[0]
            by_set.setdefault(index, []).append(amounts)
        else:
            number += 1
    for index, taken in by_set.items():
        fitting = len(taken)
        for left, amounts in zip(
            tables.view.usage.counters[index], zip(*taken, strict=True), strict=True
        ):
            least = min(amounts)
            if least > 0:
                fitting = min(fitting, max(0, int(left // least)))
        number += fitting
    return number


def _shares(tables: Tables, wanted: Alternative, position: int, most: int) -> int:
    """How many shares of a device there are for such requests."""
    hardware = tables.view.hardware
    charge = tables.charges[wanted.charge][hardware.capacity_kind[position]]
    if charge is None:
        return 0
    fitting = most * wanted.number
    if not hardware.features.consumable_capacity:
        return fitting
    for left, taken in zip(tables.view.usage.remaining(position), charge, strict=True):
        if taken > 0:
            fitting = min(fitting, max(0, int(left // taken)))
    return fitting


def least_by_class(claims: Sequence[ResourceClaim]) -> dict[str, int]:
    """How many devices of each class the claims take in any case, whichever alternatives serve them."""
    least: dict[str, int] = {}
    for claim in claims:
        for request in claim.spec.devices.requests:
            specs = [spec for _, spec in request.alternatives()]
            if len({spec.device_class_name for spec in specs}) != 1:
                continue
            if any(spec.allocation_mode != "ExactCount" for spec in specs):
                continue
            if request.exactly is not None and request.exactly.admin_access:
                continue
            name = specs[0].device_class_name
            least[name] = least.get(name, 0) + min(spec.count for spec in specs)
    return least


def free_of_class(view: NodeView, asked: Sequence[Question], name: str, most: int) -> int:
    """How many devices of a class several questions can have between them, if at most so many are wanted."""
    union = 0
    tables: Tables | None = None
    for question in asked:
        try:
            tables = prepare(view, question, Judgement.LENIENT)
        except PreparationError:
            continue
        for request in tables.requests:
            for wanted in request.alternatives:
                if wanted.spec.device_class_name == name:
                    union |= wanted.candidates
    if tables is None:
        return 0
    if union & view.hardware.shareable:
        return most
    return min(most, _exclusive(tables, union))


class _Count:
    """Searches for a number of copies, within a limit for all of them."""

    def __init__(self, view: NodeView, claims: Sequence[ResourceClaim], max_steps: int) -> None:
        self._view = view
        self._claims = tuple(claims)
        self._left = max_steps
        self._max_steps = max_steps

    def between(self, number: int, at_most: int) -> Together:
        """The number lies between two; the upper one is tried first."""
        proven, guess = at_most, at_most
        while number < at_most:
            found = self._holds(guess)
            if found:
                number = guess
            else:
                at_most = guess - 1
                if found is not None and proven >= guess:
                    proven = guess - 1
            guess = (number + at_most + 1) // 2
        # What was given up on may fit or not; more than was refuted does not.
        return Together(number, max(number, proven), self._max_steps - self._left)

    def _holds(self, copies: int) -> bool | None:
        """Whether so many copies fit; None if that was not found out."""
        if self._left <= 0:
            return None
        question = Question(self._claims * copies)
        view = focused(self._view, question)
        run = FirstFit(
            reduced(prepare(view, question, Judgement.LENIENT)), self._left, strict=False
        )
        try:
            return run.run() is not None
        except OutOfSteps:
            return None
        finally:
            self._left -= run.steps
