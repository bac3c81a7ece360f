"""The cost model: estimates before evaluation, sizes during it.

Costs and sizes are unsigned 64-bit numbers that saturate at their maximum, as in the reference implementation: this shows in the published
figures of an expression (`max_cost`). An `EstimateRule` sees the arguments of a call as `CostNode`s and never their costs, which the
estimator adds itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from drayman.cel.types import Type
from drayman.cel.values import size_of

MAX = 2**64 - 1

SELECT = 1
LIST_CREATE = 10
MAP_CREATE = 30
STRUCT_CREATE = 40
STRING_TRAVERSAL = 0.1  # per character
REGEX_LENGTH = 0.25  # per character of a pattern


def scale(size: int, factor: float) -> int:
    """`size * factor`, rounded up, at most `MAX`."""
    product = math.ceil(float(size) * factor)
    return product if product < MAX else MAX


class SizeEstimate(Struct, frozen=True):
    """Bounds of a size: characters, bytes, list elements or map entries."""

    min: int
    max: int

    def __add__(self, other: SizeEstimate) -> SizeEstimate:
        return SizeEstimate(min(self.min + other.min, MAX), min(self.max + other.max, MAX))

    def __mul__(self, other: SizeEstimate) -> SizeEstimate:
        return SizeEstimate(min(self.min * other.min, MAX), min(self.max * other.max, MAX))

    def __or__(self, other: SizeEstimate) -> SizeEstimate:
        """The smallest estimate that covers both."""
        return SizeEstimate(min(self.min, other.min), max(self.max, other.max))

    def cost(self, factor: float = 1.0) -> CostEstimate:
        """The cost of touching everything once at `factor` for each unit, rounded up."""
        return CostEstimate(scale(self.min, factor), scale(self.max, factor))

    def times(self, each: CostEstimate) -> CostEstimate:
        return CostEstimate(min(self.min * each.min, MAX), min(self.max * each.max, MAX))


class CostEstimate(Struct, frozen=True):
    """Bounds of a cost."""

    min: int
    max: int

    def __add__(self, other: CostEstimate) -> CostEstimate:
        return CostEstimate(min(self.min + other.min, MAX), min(self.max + other.max, MAX))

    def __mul__(self, other: CostEstimate) -> CostEstimate:
        return CostEstimate(min(self.min * other.min, MAX), min(self.max * other.max, MAX))

    def __or__(self, other: CostEstimate) -> CostEstimate:
        return CostEstimate(min(self.min, other.min), max(self.max, other.max))

    def scaled(self, factor: float) -> CostEstimate:
        return CostEstimate(scale(self.min, factor), scale(self.max, factor))


UNKNOWN_SIZE = SizeEstimate(0, MAX)
FREE = CostEstimate(0, 0)
UNIT = CostEstimate(1, 1)


def fixed_size(size: int) -> SizeEstimate:
    return SizeEstimate(size, size)


def fixed_cost(cost: int) -> CostEstimate:
    return CostEstimate(cost, cost)


class EntrySize(Struct, frozen=True):
    """Estimates for the contents of a container: the keys (of a map) or 1 (of a list), and the values."""

    is_list: bool
    key: SizeEstimate
    value: SizeEstimate

    def __or__(self, other: EntrySize) -> EntrySize:
        return EntrySize(self.is_list, self.key | other.key, self.value | other.value)


class CostNode(Protocol):
    """An argument of a call, as an estimate rule sees it."""

    @property
    def type(self) -> Type:
        """The static type."""

    @property
    def computed_size(self) -> SizeEstimate | None:
        """What the expression and the environment say about the size of the value; None if nothing."""

    @property
    def size(self) -> SizeEstimate:
        """`computed_size`, or `UNKNOWN_SIZE`."""

    @property
    def entry_size(self) -> EntrySize | None:
        """The sizes of keys and elements if the expression itself determines them."""

    @property
    def literal(self) -> object:
        """The value of a literal (also of the literal `null`, as None); `NOT_LITERAL` for any other node."""

    def items(self) -> CostNode | None:
        """The elements of a list (or, as upstream has it, whatever the first type parameter is); None without parameters."""


class _NotLiteral:
    """Marks a node that is not a literal."""


NOT_LITERAL = _NotLiteral()


class CallEstimate(Struct, frozen=True):
    cost: CostEstimate
    result_size: SizeEstimate | None = None
    result_entry_size: EntrySize | None = None


# The worst and best case of one call, without its arguments. `args` has the target of a member call first.
# None: no opinion, the next rule (see `functions.Function`) decides.
EstimateRule: TypeAlias = Callable[[Sequence[CostNode]], CallEstimate | None]


class _Pending:
    """Stands for the result of a call that has not been made yet; its size is 0."""


PENDING = _Pending()

# The cost of one call that happened. `args` has the target first; an argument or the result may be an EvaluationError.
# Rules are applied twice: with the result `PENDING` before the call, so that nothing too expensive is started, and again after it.
CostRule: TypeAlias = Callable[[Sequence[object], object], int]


def actual_size(value: object) -> int:
    """The size for cost purposes: `size()` of strings, bytes, lists and maps, 0 while pending, 1 for everything else."""
    return 0 if value is PENDING else size_of(value)


def traversal(value: object, factor: float = STRING_TRAVERSAL) -> int:
    """The actual cost of walking over a string once."""
    return math.ceil(actual_size(value) * factor)
