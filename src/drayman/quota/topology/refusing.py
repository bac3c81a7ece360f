"""Why pods have no place in a topology: how many would fit, where, and what limits that."""

from __future__ import annotations

from drayman.quota.demands import NotPlaced, TopologyDemand
from drayman.quota.topology.capacity import CORDONED, NOT_READY, NOT_SELECTED, TAINTED, Capacity
from drayman.quota.topology.counting import NO_LEADER, Counts, Held
from drayman.quota.topology.wishes import Mode, Wish

_OF_NODES = (NOT_READY, CORDONED, TAINTED, NOT_SELECTED)


def not_placed(
    topology: str,
    capacity: Capacity,
    wish: Wish,
    counts: Counts,
    count: int,
    leader: TopologyDemand | None,
) -> NotPlaced:
    """The refusal, in words."""
    required = wish.mode is Mode.REQUIRED
    domains = capacity.domains(wish.level if required else 0)
    if not domains:
        return NotPlaced(f"topology {topology!r} has no nodes of the flavor")
    rooms = [(_room(counts.of(path), leader), path) for path in domains]
    wanted = count // wish.slices.size
    if required:
        most, where = max(rooms, key=lambda room: room[0])
        place = f" in one domain of level {capacity.levels[wish.level]!r}"
        place += f" (at best in {capacity.tree.title(where)})" if most > 0 else ""
    else:
        most, place = sum(max(0, room) for room, _ in rooms), ""
        if leader is not None:
            most = _beside(counts, domains)
    beside = f" beside the leader, pod set {leader.pod_set!r}," if leader is not None else ""
    size = wish.slices.size
    things = "pods" if size == 1 else f"slices of {size} pods"
    return NotPlaced(
        f"topology {topology!r} allows to fit only {max(0, most)} out of {wanted} {things}"
        f"{beside}{place}; {_limits(counts)}"
    )


def _room(held: Held, leader: TopologyDemand | None) -> int:
    return held.units if leader is None else held.with_leader


def _beside(counts: Counts, domains: tuple[tuple[str, ...], ...]) -> int:
    """What the whole topology holds beside a leader."""
    held = [counts.of(path) for path in domains]
    losses = [each.units - each.with_leader for each in held if each.with_leader != NO_LEADER]
    return sum(each.units for each in held) - min(losses) if losses else 0


def _limits(counts: Counts) -> str:
    """What limits how many pods the lowest domains hold, the most frequent first."""
    limits = sorted(counts.limited_by().items(), key=lambda item: (-item[1], item[0]))
    words = [
        f"{number} {reason}" if reason in _OF_NODES else f"{number} limited by {reason}"
        for reason, number in limits
    ]
    total = sum(number for _, number in limits)
    noun = "domain" if total == 1 else "domains"
    return f"of {total} lowest {noun}, {', '.join(words)}"
