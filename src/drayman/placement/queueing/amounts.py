"""What queues count: GPUs, processors in thousandths, memory in bytes."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, NamedTuple


class Amounts(NamedTuple):
    """So much of everything that queues count."""

    gpu: Fraction | int = 0
    cpu: int = 0
    memory: int = 0

    def plus(self, other: Amounts) -> Amounts:
        return Amounts(self.gpu + other.gpu, self.cpu + other.cpu, self.memory + other.memory)

    def minus(self, other: Amounts) -> Amounts:
        return Amounts(self.gpu - other.gpu, self.cpu - other.cpu, self.memory - other.memory)


NOTHING: Final = Amounts()
RESOURCES: Final = ("gpu", "cpu", "memory")
"""By the names that a queue has for them."""
