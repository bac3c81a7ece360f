"""What is left of a node's devices after each test, for one request: sets and how to read them. `funnel` makes them."""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct

from drayman.allocator.problem.question import WantedDevices


class Hurdle(Enum):
    """The tests in order."""

    FEATURE = "feature"
    CLASS = "class"
    SELECTOR = "selector"
    FREE = "free"
    TAINTS = "taints"
    CAPACITY = "capacity"
    COUNTERS = "counters"
    CONSTRAINT = "constraint"
    COUNT = "count"

    @property
    def order(self) -> int:
        return _ORDER[self]


_ORDER: Final = {test: index for index, test in enumerate(Hurdle)}


class Passed(Struct, frozen=True):
    """What one test leaves."""

    test: Hurdle
    devices: int
    detail: str = ""
    lost: tuple[tuple[str, int], ...] = ()
    """Devices that it does not leave for a reason of their own, by reason."""
    closest: int = 0
    """Of a constraint that leaves nothing: the largest set that meets it."""


class Sieve(Struct, frozen=True):
    """One request, or one of its alternatives, on one node."""

    wanted: WantedDevices
    everything: int
    """The devices of the node."""
    passed: tuple[Passed, ...]
    all_of: int | None = None
    """Mode All: the devices that are required."""

    @property
    def number(self) -> int:
        """How many devices are wanted."""
        if self.all_of is not None:
            return max(self.all_of.bit_count(), 1)
        return max(self.wanted.spec.count, 1)

    @property
    def is_enough(self) -> bool:
        """Whether the request could be served if there were no other."""
        return bool(self.passed[-1].devices)

    @property
    def short_at(self) -> Passed | None:
        """The first test that leaves fewer devices than are wanted."""
        for passed in self.passed:
            is_late = passed.test.order > Hurdle.SELECTOR.order
            wanted = 1 if self.all_of is not None and not is_late else self.number
            if passed.devices.bit_count() < wanted:
                return passed
        return None

    @property
    def would_do(self) -> int:
        """The devices that pass every test but the count; where a constraint is not met, those that come closest to it."""
        left = self.everything
        for passed in self.passed:
            if passed.closest:
                return passed.closest
            if passed.test is not Hurdle.COUNT:
                left = passed.devices
        return left

    @property
    def missing(self) -> int:
        """How many more devices the request needs. None, if another request is why it is not served."""
        return max(self.number - self.would_do.bit_count(), 0)

    def left_by(self, test: Hurdle) -> int:
        """The devices left after a test and all before it."""
        left = self.everything
        for passed in self.passed:
            if passed.test.order > test.order:
                break
            left = passed.devices
        return left
