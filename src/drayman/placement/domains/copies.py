"""How many copies of a pod each node holds.

Counted by devices, counters and capacities, taints and resources of the node, and not by sums: six free devices on one side and two on the
other are not eight. Nodes that look the same to the pod are counted once (`allocator.signature`), and what was counted is kept until
something about the node changes.

A count is never too low. It is exact unless a search was given up, other pods matter to the pod, several nodes share its devices, or the
devices themselves take resources of their node.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from drayman.allocator import Question, Together, signature, together
from drayman.allocator.copies import copies_at_most
from drayman.allocator.problem.focus import focused
from drayman.api.resource import ResourceClaim
from drayman.bounded import Bounded
from drayman.inventory.allowance import STEP
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.view import NodeView
from drayman.placement.answering import Checks, prepared
from drayman.placement.demand import Demand
from drayman.placement.domains.following import Changes
from drayman.placement.fit import FITS, NO_NEIGHBOURS, NO_VOLUMES, Cause, NodeFacts, usage_room
from drayman.placement.fit.terms import terms_of
from drayman.placement.nodes import NodeState
from drayman.placement.surroundings import Surroundings

_MOST_DEMANDS: Final = 64
_MOST_COUNTS: Final = 4_096
_LEAST_COUNTED: Final = 64
"""Copies that are counted on a node even if fewer are wanted: as many as a node of partitioned devices holds."""


_DeviceCounts: TypeAlias = Bounded[Hashable, tuple[int, Together | None]]
"""How many were tried and what was found, by everything that it depends on."""


class Copies(Struct, frozen=True):
    """How many copies of a pod a node holds."""

    at_most: int
    is_exact: bool = True
    pool: SharedPool | None = None
    """What other nodes count as well, if nothing of it is the node's own."""


class SharedPool(Struct, frozen=True):
    """Devices that several nodes reach."""

    key: Hashable
    """Equal for nodes that reach the same ones, and on which the pods ask for the same of them."""
    holds: int
    """How many copies there are devices for, on whichever nodes."""


_NONE: Final = Copies(0)


class CopiesWanted(Struct, frozen=True):
    """Pods that are alike, and how many of them."""

    demand: Demand
    number: int
    shared: frozenset[str] = frozenset()
    """The names of claims that they use together. Those are not copied with them."""
    is_mixed: bool = False
    """Whether they differ in labels, volumes or rules about other pods. Those are then left out of account."""

    @property
    def counted(self) -> int:
        """Up to how many are counted on a node: more than are wanted, to know which nodes have little room left over."""
        return max(_LEAST_COUNTED, 1 << (self.number - 1).bit_length()) if self.number else 0

    @property
    def key(self) -> Hashable:
        key = self.demand.bare_key if self.is_mixed else self.demand.key
        return key, self.counted, self.shared, self.is_mixed

    def claims_on(self, facts: NodeFacts) -> tuple[ResourceClaim, ...]:
        """The claims that each of them has for itself on a node."""
        claims = self.demand.on(facts).claims
        if not self.shared:
            return claims
        return tuple(claim for claim in claims if claim.metadata.name not in self.shared)


def kinds_of(
    demands: Sequence[Demand], shared: frozenset[str] = frozenset()
) -> tuple[tuple[CopiesWanted, ...], tuple[int, ...]]:
    """Pods by kind, and the kind of each of them.

    Pods of a gang often differ in labels, such as their index, or in volumes of their own. They are one kind all the same: a gang of a
    thousand pods has a few kinds at most, or counting would take as long as placing them.
    """
    alike: dict[Hashable, list[Demand]] = {}
    for demand in demands:
        alike.setdefault(demand.bare_key, []).append(demand)
    number = {key: position for position, key in enumerate(alike)}
    kinds = tuple(
        CopiesWanted(group[0], len(group), shared, len({demand.key for demand in group}) > 1)
        for group in alike.values()
    )
    return kinds, tuple(number[demand.bare_key] for demand in demands)


class CopyCounts:
    """Counts of one cluster state, kept up to date."""

    def __init__(self, state: Surroundings) -> None:
        self._state = state
        self._kept: Bounded[Hashable, _OneKind] = Bounded(_MOST_DEMANDS)
        self._devices: _DeviceCounts = Bounded(_MOST_COUNTS)
        self.searches = 0
        """How often devices were counted."""

    def of(self, wanted: CopiesWanted) -> Mapping[str, Copies]:
        """By name, the nodes that hold any. Valid until the next change."""
        kind = self._kept.get(wanted.key)
        if kind is None:
            kind = self._kept[wanted.key] = _OneKind(self._state, wanted, self._devices)
        before = kind.searches
        try:
            return kind.counts(wanted)
        finally:
            self.searches += kind.searches - before


class _OneKind:
    """The counts for pods that are alike."""

    def __init__(self, state: Surroundings, wanted: CopiesWanted, devices: _DeviceCounts) -> None:
        self._state = state
        self._key = (wanted.demand.bare_key, wanted.shared)
        self._devices = devices
        self._changes = Changes(state)
        self._most = wanted.counted
        self._counts: dict[str, Copies] = {}
        self._stale: dict[str, None] = {}
        self._floating = (-1, -1)
        self._questions: dict[frozenset[str], Question] = {}
        self.searches = 0

    def counts(self, wanted: CopiesWanted) -> Mapping[str, Copies]:
        state = self._state
        checks = Checks(wanted.demand) if wanted.is_mixed else prepared(state, wanted.demand)
        if wanted.demand.impossible is not None or checks.volumes.refusal is not FITS:
            return {}
        self._find_stale(checks)
        # What has been counted stays counted if this is interrupted.
        while self._stale:
            name = next(iter(self._stale))
            node = state.nodes.get(name)
            found = _NONE if node is None else self._count(wanted, checks, node)
            if found.at_most:
                self._counts[name] = found
            else:
                self._counts.pop(name, None)
            del self._stale[name]
        return self._counts

    def _find_stale(self, checks: Checks) -> None:
        changed = self._changes.since_last()
        floating = (self._state.floating_taken, self._state.floating_freed)
        keeps = not checks.is_tied and checks.neighbours is NO_NEIGHBOURS
        if changed is None or floating != self._floating or not keeps:
            self._floating = floating
            changed = (*self._counts, *self._state.nodes)
        self._stale.update(dict.fromkeys(changed))

    def _count(self, wanted: CopiesWanted, checks: Checks, node: NodeState) -> Copies:
        demand, facts = wanted.demand, node.facts
        if self._state.static_verdicts.verdict(demand.needs, facts) is not FITS:
            return _NONE
        most = usage_room(demand.needs, facts, node.usage, self._most, demand.delegated_on(facts))
        if not most or demand.on(facts).impossible is not None:
            return _NONE
        if checks.volumes is not NO_VOLUMES and checks.volumes.verdict(facts) is not FITS:
            return _NONE
        if demand.held and demand.held_verdict(node.node) is not FITS:
            return _NONE
        is_exact = not wanted.is_mixed
        if checks.neighbours is not NO_NEIGHBOURS:
            # Others of the gang may bring what is missing, but pods that keep this one away stay.
            if checks.neighbours.verdict(facts).cause is Cause.POD_ANTI_AFFINITY:
                return _NONE
            if _keeps_copies_away(demand, facts):
                most = min(most, 1)
            is_exact = False
        claims = wanted.claims_on(facts)
        if not claims:
            return Copies(most, is_exact)
        view = self._state.view(node)
        found = self._of_devices(demand.delegated_on(facts), claims, view, most)
        if not found.at_most:
            return _NONE
        is_exact = is_exact and found.is_exact and not self._state.mapped_devices
        if not _sees_shared(view):
            return Copies(found.at_most, is_exact)
        pool = self._pool(demand.delegated_on(facts), claims, view)
        return Copies(found.at_most, False, pool)

    def _pool(
        self, delegated: frozenset[str], claims: tuple[ResourceClaim, ...], view: NodeView
    ) -> SharedPool | None:
        """The devices that serve the claims, if the node shares all of them with others."""
        shown = focused(view, Question(claims))
        if len(shown.parts) > 1 or any(
            record.slice.spec.node_name for record in shown.hardware.records
        ):
            return None
        # Nodes that reach the same devices have the same hardware.
        key = (shown.hardware.derived(_number_of), delegated)
        return SharedPool(key, copies_at_most(shown, claims, self._most))

    def _of_devices(
        self,
        delegated: frozenset[str],
        claims: tuple[ResourceClaim, ...],
        view: NodeView,
        most: int,
    ) -> Together:
        question = self._questions.get(delegated)
        if question is None:
            question = self._questions[delegated] = Question(claims)
        key = (self._key, self._state.marks.epoch, delegated, signature(view, question))
        tried, known = self._devices.get(key, (0, None))
        if known is None or (known.at_most == tried and tried < most):
            # What is limited by devices, and not by how many were tried, holds for more, too.
            allowance = self._state.allowance
            allowance.spend(STEP)
            self.searches += 1
            known = together(view, claims, most)
            allowance.note(known.steps * STEP)
            self._devices[key] = (most, known)
            allowance.keep()
        return Together(min(most, known.number), min(most, known.at_most), known.steps)


def _number_of(hardware: NodeHardware) -> int:
    """A number that no other hardware has."""
    return hardware.numbering.unique()


def _sees_shared(view: NodeView) -> bool:
    """Whether the node sees devices that others see as well."""
    return any(
        not pool.records[0].slice.spec.node_name
        for part in view.parts
        for pool in part.hardware.pools
        if pool.records
    )


def _keeps_copies_away(demand: Demand, facts: NodeFacts) -> bool:
    """Whether a pod on the node would keep a second one like it away."""
    needs = demand.needs
    return any(
        term.topology_key in facts.labels
        and needs.namespace in term.namespaces
        and term.selector.matches(needs.labels)
        for term in terms_of(needs).anti_affinity
    )
