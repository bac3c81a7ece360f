"""What is left of nodes, seen by the tasks of a trace: how much of the free GPUs they can use, and what keeps them from the rest.

For one kind of task, a free part of a GPU is lost to the first of these that applies: the task does not accept the model; the node has
too little CPU, or too little memory, for one more such task; too little is left of this GPU; too few of the node's GPUs have enough left.
What remains is usable. For a mix of kinds, these are means over the tasks with GPUs, each weighted by how often it is in the trace. The sum
of what is lost is the fragmentation (Weng et al., USENIX ATC '23).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from drayman.simulate.trace.tables import TraceTask

MODEL: Final = "model"
CPU: Final = "cpu"
MEMORY: Final = "memory"
FRACTION: Final = "fraction"
COUNT: Final = "count"
USABLE: Final = "usable"
CAUSES: Final[Mapping[str, str]] = {
    MODEL: "tasks do not accept the model",
    CPU: "too little CPU is left on the node",
    MEMORY: "too little memory is left on the node",
    FRACTION: "too little is left of the GPU",
    COUNT: "too few GPUs of the node are free",
    USABLE: "usable, but no such task came in time",
}

_MIB: Final = 1 << 20


class NodeRoom(Struct, frozen=True):
    """What is left of a node."""

    model: str
    cpu_milli: int
    memory: int
    """In bytes."""
    gpus: tuple[int, ...]
    """In thousandths, ascending."""


class Audience:
    """The tasks that rooms are looked at for."""

    def __init__(self, tasks: Iterable[TraceTask]) -> None:
        kinds = Counter(task.kind for task in tasks if task.kind.gpus)
        self._total = sum(kinds.values())
        # Kinds that want the same GPUs are looked at together.
        self._alike: dict[tuple[int, int, tuple[str, ...]], list[tuple[int, int, int]]] = {}
        for kind, count in kinds.items():
            wanted = (kind.gpus, kind.gpu_milli, kind.models)
            needs = (kind.cpu_milli, kind.memory_mib * _MIB, count)
            self._alike.setdefault(wanted, []).append(needs)

    def shares(self, rooms: Iterable[NodeRoom]) -> dict[str, float]:
        """By cause, how much of the free GPUs is lost, and how much is usable: in GPUs."""
        totals = dict.fromkeys(CAUSES, 0)
        for room, number in Counter(rooms).items():
            if any(room.gpus):
                for cause, amount in self._of(room).items():
                    totals[cause] += amount * number
        return {cause: amount / self._total / 1000 for cause, amount in totals.items()}

    def _of(self, room: NodeRoom) -> dict[str, int]:
        """In thousandths of GPUs, times tasks."""
        found = dict.fromkeys(CAUSES, 0)
        free = sum(room.gpus)
        for (gpus, milli, models), needs in self._alike.items():
            if models and room.model not in models:
                found[MODEL] += free * sum(count for _, _, count in needs)
                continue
            enough = [left for left in room.gpus if left >= milli]
            usable = sum(enough)
            for cpu, memory, count in needs:
                if cpu > room.cpu_milli:
                    found[CPU] += free * count
                elif memory > room.memory:
                    found[MEMORY] += free * count
                else:
                    found[FRACTION] += (free - usable) * count
                    found[USABLE if len(enough) >= gpus else COUNT] += usable * count
        return found


def fragmentation(shares: Mapping[str, float]) -> float:
    """How much of the free GPUs the mean task cannot use."""
    return sum(amount for cause, amount in shares.items() if cause != USABLE)
