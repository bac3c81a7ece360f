"""Depth-first search for the first allocation, in upstream's order.

Claims, requests and alternatives are taken in the order given, devices in search order, and the devices of one request as combinations.
Whatever prunes the search only removes branches that do not hold the first solution, so the answer is the one that trying
everything would give.

The search keeps its own stack instead of recursing: a problem may have a thousand devices to place.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import Protocol, TypeAlias

from drayman.allocator.problem.limits import MAX_ENTRIES
from drayman.allocator.problem.tables import Alternative, Tables
from drayman.allocator.tree.state import State, Transitions


class Signal(Enum):
    """How a branch ended."""

    FAILED = "failed"
    OVERFULL = "overfull"  # a claim would get too many devices, whatever devices are chosen before


class PlacedDevice:
    """A device given to an alternative. Linked to the one before, so that branches share their beginnings."""

    __slots__ = ("alternative", "before", "position")

    def __init__(
        self, alternative: Alternative, position: int, before: PlacedDevice | None
    ) -> None:
        self.alternative = alternative
        self.position = position
        self.before = before


class ErrorFound(Exception):
    """The search came upon a device that makes the whole question an error."""

    def __init__(self, alternative: Alternative, position: int, *, constraint: bool) -> None:
        super().__init__()
        self.alternative = alternative
        self.position = position
        self.constraint = constraint  # mode All breaks a constraint; otherwise a selector failed


class OutOfSteps(Exception):
    """The search was not finished within its steps."""


class Pruning(Protocol):
    """What may cut branches short. Each method must only remove branches without the first solution."""

    def enter(self, request: int, state: State) -> State | None:
        """The state with what follows from it, or None if the requests from here on cannot be served."""

    def key(self, request: int, state: State) -> Hashable:
        """What distinguishes this state from others at the same request."""

    def first(self, alternative: Alternative, trail: PlacedDevice | None) -> int:
        """The first position worth trying for a request, given what was placed before."""

    def more(self, alternative: Alternative, missing: int, rest: int, state: State) -> bool:
        """Whether so many devices out of `rest` for this request, and all that follows, may still be possible."""

    def equivalent(self, alternative: Alternative, position: int, start: int, state: State) -> int:
        """After a device failed: the devices that would fail in the same way."""


class _Cursor:
    """Where the search goes next: into a request, or on to the next device of one."""

    __slots__ = ("alternative", "number", "request", "start", "state", "trail")

    def __init__(
        self,
        request: int,
        alternative: Alternative | None,
        number: int,
        start: int,
        state: State,
        trail: PlacedDevice | None,
    ) -> None:
        self.request = request
        self.alternative = alternative  # None: still to be chosen
        self.number = number  # devices that the alternative has already
        self.start = start  # first position to try
        self.state = state
        self.trail = trail


class _Choice:
    """Alternatives of a `firstAvailable` request that are yet to be tried."""

    __slots__ = ("at", "index", "overfull")

    def __init__(self, at: _Cursor) -> None:
        self.at = at
        self.index = 0
        self.overfull = True  # so far


class _Slot:
    """Devices that are yet to be tried for one place of a request."""

    __slots__ = ("alternative", "at", "errors", "position", "rest")

    def __init__(self, at: _Cursor, alternative: Alternative, rest: int, errors: int) -> None:
        self.at = at
        self.alternative = alternative
        self.rest = rest
        self.errors = errors
        self.position = -1


class _Boundary:
    """Where a claim begins. That it would get too many devices does not concern the claims before it."""

    __slots__ = ()


class _Remembered:
    """A state that is to be remembered if it leads nowhere."""

    __slots__ = ("request", "state")

    def __init__(self, request: int, state: State) -> None:
        self.request = request
        self.state = state


_Frame: TypeAlias = _Choice | _Slot | _Boundary | _Remembered


class Engine:
    """One search."""

    def __init__(
        self, tables: Tables, transitions: Transitions, pruning: Pruning | None, *, strict: bool
    ) -> None:
        self._requests = tables.requests
        self._tables = tables
        self._transitions = transitions
        self._pruning = pruning
        self._strict = strict
        self._stack: list[_Frame] = []
        self._failures: dict[Hashable, Signal] = {}
        self._failed_requests: set[int] = set()
        self._cursor = _Cursor(0, None, 0, 0, transitions.initial(), None)
        self.steps = 0
        self.solution: PlacedDevice | None = None

    def run(self, max_steps: int) -> bool:
        """Whether there is an allocation; it is then in `solution`.

        Raises ErrorFound, and OutOfSteps when that many steps were taken in total; the search can then be resumed.
        """
        while True:
            if self.steps >= max_steps:
                raise OutOfSteps
            self.steps += 1
            cursor = self._cursor
            if cursor.request == len(self._requests):
                self.solution = cursor.trail
                return True
            following = self._visit(cursor)
            while isinstance(following, Signal):
                if not self._stack:
                    return False
                following = self._resume(self._stack.pop(), following)
            self._cursor = following

    def _visit(self, at: _Cursor) -> _Cursor | Signal:
        if at.alternative is None:
            return self._visit_request(at)
        if at.alternative.sequence is not None:
            return self._place_all(at, at.alternative, at.alternative.sequence)
        return self._visit_slot(at, at.alternative)

    def _visit_request(self, at: _Cursor) -> _Cursor | Signal:
        request = self._requests[at.request]
        if request.opens_claim and at.request:
            at.state = self._transitions.next_claim(at.state)
            self._stack.append(_Boundary())
        if self._pruning is not None:
            narrowed = self._pruning.enter(at.request, at.state)
            if narrowed is None:
                return Signal.FAILED
            at.state = narrowed
            # On the way down nothing is known yet, so keys are only made where something has failed.
            if at.request in self._failed_requests:
                known = self._failures.get(self._pruning.key(at.request, at.state))
                if known is not None:
                    return known
            self._stack.append(_Remembered(at.request, at.state))
        if request.listed:
            return self._next_alternative(_Choice(at))
        return self._begin(at, request.alternatives[0])

    def _begin(self, at: _Cursor, alternative: Alternative) -> _Cursor | Signal:
        start = self._pruning.first(alternative, at.trail) if self._pruning is not None else 0
        return self._visit(_Cursor(at.request, alternative, 0, start, at.state, at.trail))

    def _visit_slot(self, at: _Cursor, alternative: Alternative) -> _Cursor | Signal:
        missing = alternative.number - at.number
        if not missing:
            return _Cursor(at.request + 1, None, 0, 0, at.state, at.trail)
        if at.state.entries + missing > MAX_ENTRIES:
            return Signal.OVERFULL
        from_start = -1 << at.start
        rest = self._transitions.available(at.state, alternative) & from_start
        errors = alternative.failing and (
            alternative.failing & self._transitions.free(at.state, alternative) & from_start
        )
        if not errors and rest.bit_count() < missing:
            return Signal.FAILED
        return self._next_device(_Slot(at, alternative, rest, errors))

    def _next_device(self, slot: _Slot) -> _Cursor | Signal:
        options = slot.rest | slot.errors
        if not options:
            return Signal.FAILED
        low = options & -options
        position = low.bit_length() - 1
        alternative, at = slot.alternative, slot.at
        if low & slot.errors:
            raise ErrorFound(alternative, position, constraint=False)
        slot.rest ^= low
        slot.position = position
        self._stack.append(slot)
        return _Cursor(
            at.request,
            alternative,
            at.number + 1,
            position + 1,
            self._transitions.place(at.state, alternative, position),
            PlacedDevice(alternative, position, at.trail),
        )

    def _next_alternative(self, choice: _Choice) -> _Cursor | Signal:
        alternatives = self._requests[choice.at.request].alternatives
        if choice.index == len(alternatives):
            return Signal.OVERFULL if choice.overfull else Signal.FAILED
        self._stack.append(choice)
        return self._begin(choice.at, alternatives[choice.index])

    def _place_all(
        self, at: _Cursor, alternative: Alternative, sequence: tuple[int, ...]
    ) -> _Cursor | Signal:
        if not sequence:
            return Signal.FAILED
        state, trail = at.state, at.trail
        if state.entries + len(sequence) > MAX_ENTRIES:
            return Signal.OVERFULL
        for position in sequence:
            self.steps += 1
            bit = 1 << position
            if not self._transitions.unoccupied(state, alternative, bit):
                return Signal.FAILED
            if not self._transitions.keeps_constraints(state, alternative, position):
                if self._strict:
                    raise ErrorFound(alternative, position, constraint=True)
                return Signal.FAILED
            if state.capacity_blocked[alternative.charge] & bit:
                return Signal.FAILED
            state = self._transitions.place(state, alternative, position)
            trail = PlacedDevice(alternative, position, trail)
        return _Cursor(at.request + 1, None, 0, 0, state, trail)

    def _resume(self, frame: _Frame, signal: Signal) -> _Cursor | Signal:
        """Go on from a place where something else can be tried, or back further."""
        match frame:
            case _Slot():
                return signal if signal is Signal.OVERFULL else self._after_failure(frame)
            case _Choice():
                if signal is Signal.FAILED:
                    frame.overfull = False
                frame.index += 1
                return self._next_alternative(frame)
            case _Remembered():
                self._remember(frame, signal)
                return signal
            case _Boundary():
                return Signal.FAILED

    def _remember(self, failed: _Remembered, signal: Signal) -> None:
        if self._pruning is not None:
            self._failures[self._pruning.key(failed.request, failed.state)] = signal
            self._failed_requests.add(failed.request)

    def _after_failure(self, slot: _Slot) -> _Cursor | Signal:
        pruning, at = self._pruning, slot.at
        if pruning is not None and (slot.rest or slot.errors):
            alternative = slot.alternative
            slot.rest &= ~pruning.equivalent(alternative, slot.position, at.start, at.state)
            if not slot.errors:
                missing = alternative.number - at.number
                if slot.rest.bit_count() < missing:
                    return Signal.FAILED
                if not pruning.more(alternative, missing, slot.rest, at.state):
                    return Signal.FAILED
        return self._next_device(slot)
