"""The best allocation of a small problem: every valid one, compared rule by rule.

The rules are those that the product documents for its policy `best`, written again from that description. Kinds and places are
those of the random problems: a driver is a kind, root and NUMA node are the standard attributes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from oracle.alignment import ALIGN, groups_of, is_member, rung
from oracle.brute import Enumerator, Placement
from oracle.model import Model
from oracle.pools import Device

ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = "resource.kubernetes.io/numaNode"
SOCKET = "dra.cpu/socketID"
FABRIC = "drayman.dev/nvlinkGroup"

Cost = tuple[Any, ...]
DeviceKey = tuple[str, str, str]

_KINDS = {"gpu": "gpu", "nic": "nic"}


@dataclass(frozen=True, slots=True)
class Place:
    kind: str
    root: str | None
    numa: int | None
    socket: int | None = None
    fabric: str | None = None


def best_placement(model: Model, budget: int = 30_000) -> Placement | None:
    """The valid allocation with the least cost; None if there is none. Raises TooLarge."""
    judge = _Judge(model)
    found = (p for p in Enumerator(model, budget).placements() if judge.is_aligned(p))
    return min(found, key=judge.cost, default=None)


def first_aligned(model: Model, budget: int = 30_000) -> Placement | None:
    """The first valid allocation that reaches the best levels."""
    judge = _Judge(model)
    found = (p for p in Enumerator(model, budget).placements() if judge.is_aligned(p))
    return min(found, key=lambda p: (judge.rungs(p), judge.positions(p)), default=None)


def best_rung(model: Model, ladder: str, held: set[DeviceKey], budget: int = 30_000) -> int | None:
    """The best level that any valid allocation reaches, all entries together with devices that are held; None if there is none."""
    ((_, levels),) = groups_of(ladder)
    judge = _Judge(model)
    already = [judge.places[i] for i, device in enumerate(model.devices) if device.id in held]
    found = [
        rung(
            levels,
            already + [judge.places[e.device] for e in placement.entries if not e.choice.admin],
        )
        for placement in Enumerator(model, budget).placements()
    ]
    return min((index for index in found if index < len(levels)), default=None)


def cost_of(model: Model, placement: Placement) -> Cost:
    """The cost of one valid allocation, rule by rule."""
    return _Judge(model).cost(placement)


class _Judge:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.places = _places(model.devices)
        self.unusable_before = self._unusable(frozenset())
        self.stated = [
            (number, names, levels)
            for number, claim in enumerate(model.problem["claims"])
            if ALIGN in (claim["metadata"].get("annotations") or {})
            for names, levels in groups_of(claim["metadata"]["annotations"][ALIGN])
        ]
        stated = {place.fabric for place in self.places if place.fabric is not None}
        self.has_fabrics = len(stated) > 1

    def cost(self, placement: Placement) -> Cost:
        """Lower is better, from left to right."""
        entries = [entry.device for entry in placement.entries if not entry.choice.admin]
        places = [self.places[index] for index in entries]
        taken = frozenset(entries)
        unusable = self._unusable(taken)
        return (
            self._alternatives(placement),
            self.rungs(placement),
            self._fabrics(places),
            *misalignment(places),
            *spread(places),
            self._spoiled(taken, unusable),
            self._opened(taken),
            self._broken(taken, unusable, "fabric") if self.has_fabrics else 0,
            self._broken(taken, unusable, "numa"),
            self._broken(taken, unusable, "root"),
            self.positions(placement),
        )

    def rungs(self, placement: Placement) -> tuple[int, ...]:
        """The level that each stated alignment reaches."""
        return tuple(
            rung(
                levels,
                [
                    self.places[entry.device]
                    for entry in placement.entries
                    if entry.claim == number
                    and not entry.choice.admin
                    and is_member(names, entry.choice.name)
                ],
            )
            for number, names, levels in self.stated
        )

    def is_aligned(self, placement: Placement) -> bool:
        """Whether the required levels are reached."""
        reached = zip(self.rungs(placement), self.stated, strict=True)
        return all(index < len(levels) for index, (_, _, levels) in reached)

    def _fabrics(self, places: list[Place]) -> int:
        """NVLink groups that the GPUs are spread over, where there are several."""
        found = [place.fabric for place in places if place.kind == "gpu"]
        known = {fabric for fabric in found if fabric is not None}
        return len(known) + found.count(None) if self.has_fabrics else 0

    def _alternatives(self, placement: Placement) -> list[int]:
        return [
            index
            for claim, chosen in zip(self.model.claims, placement.chosen, strict=True)
            for request, index in zip(claim.requests, chosen, strict=True)
            if request.listed
        ]

    def positions(self, placement: Placement) -> list[int]:
        ordered = sorted((e.claim, e.request, e.device) for e in placement.entries)
        return [device for _, _, device in ordered]

    def _unusable(self, taken: frozenset[int]) -> set[int]:
        """Devices whose counters are not there once these devices are taken."""
        if not self.model.on("DRAPartitionableDevices"):
            return {n for n, device in enumerate(self.model.devices) if device.spends}
        found = set()
        for pool in self.model.pools:
            left = self.model.counters_left(pool)
            over = any(value < 0 for value in left.values())
            for index in taken:
                device = self.model.devices[index]
                free_share = device.shareable and device.id in self.model.in_use
                if device.id[:2] == pool.id and not free_share:
                    for key, value in device.spends.items():
                        left[key] -= value
            for index, device in enumerate(self.model.devices):
                if device.id[:2] == pool.id and device.spends:
                    short = any(left[key] < value for key, value in device.spends.items())
                    paid = device.shareable and device.id in self.model.in_use
                    if (short or over) and not paid:
                        found.add(index)
        return found

    def _spoiled(self, taken: frozenset[int], unusable: set[int]) -> int:
        held = {n for n, device in enumerate(self.model.devices) if device.id in self.model.in_use}
        return len(unusable - self.unusable_before - taken - held)

    def _opened(self, taken: frozenset[int]) -> int:
        devices = (self.model.devices[index] for index in taken)
        return sum(device.shareable and device.id not in self.model.in_use for device in devices)

    def _broken(self, taken: frozenset[int], unusable: set[int], level: str) -> int:
        groups: dict[tuple[str, object], set[bool]] = {}
        for index, device in enumerate(self.model.devices):
            place = self.places[index]
            where = getattr(place, level)
            if device.shareable or where is None:
                continue
            gone = device.id in self.model.in_use or index in taken or index in unusable
            groups.setdefault((place.kind, where), set()).add(gone)
        return sum(len(states) == 2 for states in groups.values())


def _places(devices: Iterable[Device]) -> list[Place]:
    """Kind and place of each device; a root is where the first of its devices says it is, a NUMA node likewise."""
    numa_of_root: dict[str, int] = {}
    socket_of_numa: dict[int, int] = {}
    found = []
    for device in devices:
        attributes = device.spec.get("attributes") or {}
        root = attributes.get(ROOT, {}).get("string")
        numa = attributes.get(NUMA, {}).get("int")
        socket = attributes.get(SOCKET, {}).get("int")
        if root is not None and numa is not None:
            numa_of_root.setdefault(root, numa)
        if numa is not None and socket is not None:
            socket_of_numa.setdefault(numa, socket)
        kind = _KINDS.get(device.id[0].partition(".")[0], device.id[0])
        fabric = attributes.get(FABRIC, {}).get("string")
        found.append(Place(kind, root, numa, socket, fabric))
    places = []
    for p in found:
        numa = p.numa if p.root is None else numa_of_root.get(p.root)
        socket = p.socket if numa is None else socket_of_numa.get(numa)
        places.append(Place(p.kind, p.root, numa, socket, p.fabric))
    return places


def misalignment(places: list[Place]) -> tuple[int, int]:
    """`far` and `near`: entries of the larger kind that have no partner nearby, over all pairs of kinds."""
    far = near = 0
    for one, other in combinations(sorted({place.kind for place in places}), 2):
        mine = [place for place in places if place.kind == one]
        others = [place for place in places if place.kind == other]
        more, fewer = (mine, others) if len(mine) >= len(others) else (others, mine)
        each = -(-len(more) // len(fewer))
        servants = [place for place in fewer for _ in range(each)]
        _, more, servants = _serve(more, servants, by_root=True)
        at_numa, _, _ = _serve(more, servants, by_root=False)
        near += at_numa
        far += len(more) - at_numa
    return far, near


def _serve(
    more: list[Place], servants: list[Place], *, by_root: bool
) -> tuple[int, list[Place], list[Place]]:
    """How many find a servant in their own group, who does not, and which servants are left."""
    left = list(servants)
    unserved = []
    for place in more:
        where = place.root if by_root else place.numa
        match = next(
            (s for s in left if where is not None and (s.root if by_root else s.numa) == where),
            None,
        )
        if match is None:
            unserved.append(place)
        else:
            left.remove(match)
    return len(more) - len(unserved), unserved, left


def spread(places: list[Place]) -> tuple[int, int]:
    """NUMA nodes, then roots, that the entries of each kind are spread over; the unknown count each."""
    numa: Counter[tuple[str, object]] = Counter((place.kind, place.numa) for place in places)
    roots: Counter[tuple[str, object]] = Counter((place.kind, place.root) for place in places)
    return _groups(numa), _groups(roots)


def _groups(counted: Mapping[tuple[str, object], int]) -> int:
    return sum(number if where is None else 1 for (_, where), number in counted.items())
