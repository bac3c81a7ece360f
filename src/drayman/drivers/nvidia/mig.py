"""MIG: how an NVIDIA GPU divides, and the counters that keep its parts from overlapping.

The driver offers every partition at every placement as a device of its own. Each consumes its amounts and the memory slices
it covers from the counter set of its GPU; the whole GPU consumes all of it. So the geometry is in the counters alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Final

from drayman.api.quantity import Quantity
from drayman.api.resource import (
    Counter,
    CounterSet,
    DeviceCapacity,
    DeviceCounterConsumption,
)


@dataclass(frozen=True, slots=True)
class Amounts:
    """What a partition, or a whole GPU that can be divided, has of everything that is counted."""

    memory_mebibytes: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    jpeg_engines: int
    ofa_engines: int
    encoders: int = 0

    def named(self) -> tuple[tuple[str, str, Quantity], ...]:
        """(capacity name, counter name, amount) of each."""
        return (
            ("memory", "memory", Quantity.parse(f"{self.memory_mebibytes}Mi")),
            ("multiprocessors", "multiprocessors", _count(self.multiprocessors)),
            ("copyEngines", "copy-engines", _count(self.copy_engines)),
            ("decoders", "decoders", _count(self.decoders)),
            ("encoders", "encoders", _count(self.encoders)),
            ("jpegEngines", "jpeg-engines", _count(self.jpeg_engines)),
            ("ofaEngines", "ofa-engines", _count(self.ofa_engines)),
        )


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of partition: its NVML profile id, what it has, and the memory slices it may start at."""

    name: str
    id: int
    amounts: Amounts
    starts: tuple[int, ...]
    size: int

    def device_name(self, gpu: str, start: int) -> str:
        """As the driver names it: `gpu-0-mig-1g10gb-me-20-3`."""
        text = self.name.replace(".", "").replace("+", "-")
        return f"{gpu}-mig-{text}-{self.id}-{start}"


ANYWHERE: Final = (0, 1, 2, 3, 4, 5, 6)
"""The last memory slice belongs to no compute slice."""
PAIRS: Final = (0, 2, 4, 6)

A100_40GB: Final = (
    Profile("1g.5gb", 19, Amounts(4864, 14, 1, 0, 0, 0), ANYWHERE, 1),
    Profile("1g.5gb+me", 20, Amounts(4864, 14, 1, 1, 1, 1), ANYWHERE, 1),
    Profile("1g.10gb", 15, Amounts(9856, 14, 1, 1, 0, 0), PAIRS, 2),
    Profile("2g.10gb", 14, Amounts(9856, 28, 2, 1, 0, 0), (0, 2, 4), 2),
    Profile("3g.20gb", 9, Amounts(19968, 42, 3, 2, 0, 0), (0, 4), 4),
    Profile("4g.20gb", 5, Amounts(19968, 56, 4, 2, 0, 0), (0,), 4),
    Profile("7g.40gb", 0, Amounts(40192, 98, 7, 5, 1, 1), (0,), 8),
)
# Printed by the vendor but for the decoders of the smallest.
A100_80GB: Final = (
    Profile("1g.10gb", 19, Amounts(9856, 14, 1, 0, 0, 0), ANYWHERE, 1),
    Profile("1g.10gb+me", 20, Amounts(9856, 14, 1, 1, 1, 1), ANYWHERE, 1),
    Profile("1g.20gb", 15, Amounts(19968, 14, 1, 1, 0, 0), PAIRS, 2),
    Profile("2g.20gb", 14, Amounts(19968, 28, 2, 1, 0, 0), (0, 2, 4), 2),
    Profile("3g.40gb", 9, Amounts(40192, 42, 3, 2, 0, 0), (0, 4), 4),
    Profile("4g.40gb", 5, Amounts(40192, 56, 4, 2, 0, 0), (0,), 4),
    Profile("7g.80gb", 0, Amounts(80384, 98, 7, 5, 1, 1), (0,), 8),
)
H100_80GB: Final = (
    Profile("1g.10gb", 19, Amounts(9984, 16, 1, 1, 1, 0), ANYWHERE, 1),
    Profile("1g.10gb+me", 20, Amounts(9984, 16, 1, 1, 1, 1), ANYWHERE, 1),
    Profile("1g.20gb", 15, Amounts(20096, 26, 1, 1, 1, 0), PAIRS, 2),
    Profile("2g.20gb", 14, Amounts(20096, 32, 2, 2, 2, 0), (0, 2, 4), 2),
    Profile("3g.40gb", 9, Amounts(40448, 60, 3, 3, 3, 0), (0, 4), 4),
    Profile("4g.40gb", 5, Amounts(40448, 64, 4, 4, 4, 0), (0,), 4),
    Profile("7g.80gb", 0, Amounts(81152, 132, 8, 7, 7, 1), (0,), 8),
)
H200_141GB: Final = (
    Profile("1g.18gb", 19, Amounts(16384, 16, 1, 1, 1, 0), ANYWHERE, 1),
    Profile("1g.18gb+me", 20, Amounts(16384, 16, 1, 1, 1, 1), ANYWHERE, 1),
    Profile("1g.35gb", 15, Amounts(33280, 26, 1, 1, 1, 0), PAIRS, 2),
    Profile("2g.35gb", 14, Amounts(33280, 32, 2, 2, 2, 0), (0, 2, 4), 2),
    Profile("3g.71gb", 9, Amounts(71424, 60, 3, 3, 3, 0), (0, 4), 4),
    Profile("4g.71gb", 5, Amounts(71424, 64, 4, 4, 4, 0), (0,), 4),
    Profile("7g.141gb", 0, Amounts(143360, 132, 8, 7, 7, 1), (0,), 8),
)
# The three largest are not published by the vendor in this detail; the sums are right.
B200_180GB: Final = (
    Profile("1g.23gb", 19, Amounts(22528, 18, 2, 1, 1, 0), ANYWHERE, 1),
    Profile("1g.23gb+me", 20, Amounts(22528, 18, 2, 1, 1, 1), ANYWHERE, 1),
    Profile("1g.45gb", 15, Amounts(45312, 30, 2, 1, 1, 0), PAIRS, 2),
    Profile("2g.45gb", 14, Amounts(45312, 36, 4, 2, 2, 0), (0, 2, 4), 2),
    Profile("3g.90gb", 9, Amounts(91136, 70, 6, 3, 3, 0), (0, 4), 4),
    Profile("4g.90gb", 5, Amounts(91136, 72, 8, 4, 4, 0), (0,), 4),
    Profile("7g.180gb", 0, Amounts(182272, 148, 16, 7, 7, 1), (0,), 8),
)


@lru_cache(maxsize=64)
def maxima(profiles: tuple[Profile, ...]) -> Amounts:
    """What a GPU with these profiles has as a whole: the most that any of them has."""
    return Amounts(
        *(
            max(getattr(profile.amounts, each.name) for profile in profiles)
            for each in fields(Amounts)
        )
    )


@lru_cache(maxsize=64)
def slices(profiles: tuple[Profile, ...]) -> int:
    """How many memory slices a GPU with these profiles has."""
    return max(start + profile.size for profile in profiles for start in profile.starts)


@lru_cache(maxsize=256)
def capacities(amounts: Amounts) -> dict[str, DeviceCapacity]:
    """The capacities of a device that has these amounts. Shared: not to be changed."""
    return {name: DeviceCapacity(value=amount) for name, _, amount in amounts.named()}


@lru_cache(maxsize=1024)
def consumption(
    gpu: str, amounts: Amounts, start: int, size: int
) -> tuple[DeviceCounterConsumption, ...]:
    """What a device takes from its GPU: the amounts, and the memory slices from `start` on."""
    return (
        DeviceCounterConsumption(
            counter_set=counter_set_name(gpu), counters=dict(_counters(amounts, start, size))
        ),
    )


@lru_cache(maxsize=256)
def counter_set(gpu: str, amounts: Amounts, slices: int) -> CounterSet:
    """Everything a GPU has."""
    counters: Mapping[str, Counter] = dict(_counters(amounts, 0, slices))
    return CounterSet(name=counter_set_name(gpu), counters=dict(counters))


def counter_set_name(gpu: str) -> str:
    """The name of the counter set of a GPU."""
    return f"{gpu}-counter-set"


def _counters(amounts: Amounts, start: int, size: int) -> Iterator[tuple[str, Counter]]:
    for _, name, amount in amounts.named():
        yield name, Counter(value=amount)
    for index in range(start, start + size):
        yield f"memory-slice-{index}", Counter(value=_count(1))


def _count(number: int) -> Quantity:
    return Quantity.parse(str(number))
