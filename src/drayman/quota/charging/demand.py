"""Whether there are devices for all requests of a workload at the same time, whoever uses them now.

Requests compete for devices: a device that two of them could have serves one of them, and no pod gets what another has. So all requests
that devices were looked up for are matched together, in the best way there is, not in the order in which they are written. Devices that
can be shared serve many requests, each once. It is a necessary condition: nodes, counters and constraints are the business of the search.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from drayman.allocator.pruning.flow import serves
from drayman.quota.charging.outcome import Code, RefusedError, refuse


@dataclass(frozen=True, slots=True)
class DeviceDemand:
    """Devices that pods ask for."""

    path: str
    device_class: str
    devices: int
    """Those that match."""
    shareable: int
    """Of these, those that others can use as well."""
    count: int
    """How many each pod needs."""
    pods: int

    @property
    def exclusive(self) -> tuple[int, int]:
        """The devices that no other request can use, and how many of them are needed at least."""
        lacking = max(0, self.count - self.shareable.bit_count())
        return self.devices & ~self.shareable, lacking * self.pods


class Competition:
    """The requests of a workload, in their order."""

    def __init__(self) -> None:
        self._demands: list[DeviceDemand] = []

    def add(self, demand: DeviceDemand) -> None:
        """Take one more request into account. Raises RefusedError if it alone asks for more devices than match."""
        found = demand.devices.bit_count()
        if found < demand.count:
            raise _too_few(demand, f"{found} match")
        self._demands.append(demand)

    def check(self) -> None:
        """Raise RefusedError if there are not enough devices for all requests, about the first that gets none beside the others."""
        if self._first_are_served(len(self._demands)):
            return
        short = bisect_left(
            range(1, len(self._demands)), True, key=lambda n: not self._first_are_served(n)
        )
        total = sum(each.count * each.pods for each in self._demands[: short + 1])
        demand = self._demands[short]
        text = f"{demand.devices.bit_count()} match, but the workload asks for {total} devices that it can only have once"
        raise _too_few(demand, text)

    def _first_are_served(self, number: int) -> bool:
        return serves(each.exclusive for each in self._demands[:number])


def _too_few(demand: DeviceDemand, text: str) -> RefusedError:
    pods = f" for each of {demand.pods} pods" if demand.pods > 1 else ""
    said = f"class {demand.device_class}: {demand.count} wanted{pods}, {text}"
    return refuse(Code.DEVICE_SHORTAGE, demand.path, said, retryable=True)
