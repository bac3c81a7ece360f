"""Steps that a search for places may take. Running out of them is an outcome of its own, and never a refusal."""

from __future__ import annotations


class OutOfSteps(Exception):
    """There are no steps left."""


class Budget:
    """Steps that are left."""

    __slots__ = ("left", "taken")

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.taken = 0

    def spend(self, steps: int = 1) -> None:
        """Account for steps. Raises OutOfSteps when none are left."""
        if self.left < steps:
            raise OutOfSteps
        self.left -= steps
        self.taken += steps
