"""The state of one evaluation, and the shape of a planned step.

A step is a function from the state to a value. Errors are values here, because the language computes with them: a step
returns an EvaluationError instead of raising it. Only exceeding the cost limit is raised, since nothing may absorb that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from drayman.cel.errors import CostLimitError

Step: TypeAlias = Callable[["State"], object]


class State:
    """Variables, local slots and the bill so far. Every local variable of an expression has a slot of its own."""

    __slots__ = ("cost", "limit", "slots", "variables")

    def __init__(self, variables: Mapping[str, object], slots: int, limit: int) -> None:
        self.variables = variables
        self.slots: list[object] = [UNSET] * slots
        self.cost = 0
        self.limit = limit

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitError


class _Unset:
    """Marks a variable that gets its value when it is first read."""


UNSET = _Unset()
