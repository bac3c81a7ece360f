"""Which volume fits a claim, and where: the single rule for everything that binds existing volumes.

A volume fits a claim if it is of the claim's class and mode, large enough, supports the access modes of the claim, is selected by it and
does not belong to another claim. Of those that fit, the smallest is taken, so that large ones are left for large claims. A volume that is
set aside for the claim comes before all others, and excludes them even where it cannot be reached.

Disks of nodes come by the thousand, each with a node affinity of its own. So they are indexed by the host they name: a node is checked
against its own and against those that are tied to nodes in some other way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from enum import Enum

from msgspec import Struct

from drayman.api.core import NodeSelector
from drayman.api.errors import SelectorError
from drayman.api.labels import compile_selector as compile_labels
from drayman.api.nodeselector import compile_selector
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.api.volume_binding import (
    AVAILABLE,
    FILESYSTEM,
    capacity_of,
    class_name_of,
    is_set_aside,
    requested,
)
from drayman.placement.fit.node import NodeFacts
from drayman.placement.fit.node_choice import HOSTNAME


class Mismatch(Enum):
    """Why a volume does not fit a claim. In the order of the checks."""

    TAKEN = "taken"
    TOO_SMALL = "too small"
    OTHER_MODE = "of another volume mode"
    DELETED = "being deleted"
    OTHER_CLASS = "of another class"
    NOT_SELECTED = "not selected by the claim"
    ACCESS = "without the access modes"
    NOT_READY = "not available yet"


_Ranked = tuple[int, PersistentVolume]
"""A volume and its place in the order: the smallest first, then by name."""


class Candidates(Struct, frozen=True):
    """The volumes that fit a claim, wherever they are."""

    set_aside: PersistentVolume | None = None
    """The volume that is meant for the claim. If set, it is the only candidate."""
    by_host: Mapping[str, tuple[_Ranked, ...]] = {}
    others: tuple[_Ranked, ...] = ()

    def on(self, facts: NodeFacts, without: Set[str] = frozenset()) -> PersistentVolume | None:
        """The volume for the claim on a node; `without` names some that are promised to other claims of the same pod."""
        if self.set_aside is not None:
            free = self.set_aside.metadata.name not in without
            return self.set_aside if free and reaches(self.set_aside, facts) else None
        best: _Ranked | None = None
        local = self.by_host.get(facts.labels.get(HOSTNAME, ""), ())
        for ranked in (*local, *self.others):
            if best is not None and best[0] < ranked[0]:
                continue
            volume = ranked[1]
            if volume.metadata.name not in without and reaches(volume, facts):
                best = ranked
        return None if best is None else best[1]

    def first(self) -> PersistentVolume | None:
        """The volume for the claim if it does not matter which nodes can reach it."""
        if self.set_aside is not None:
            return self.set_aside
        everywhere = dict(self.others)
        for local in self.by_host.values():
            everywhere.update(local)
        return everywhere[min(everywhere)] if everywhere else None


def candidates(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> Candidates:
    """Those of the given volumes that fit a claim."""
    fitting = [volume for volume in volumes if mismatch(claim, volume) is None]
    fitting.sort(key=lambda volume: (capacity_of(volume), volume.metadata.name))
    meant = [volume for volume in fitting if is_set_aside(volume, claim)]
    if meant:
        # People may set several aside. One that already carries the claim's uid is the one that was chosen.
        return Candidates(next((each for each in meant if _is_entered(each)), meant[0]))
    by_host: dict[str, list[_Ranked]] = {}
    others: list[_Ranked] = []
    for rank, volume in enumerate(fitting):
        hosts = _hosts_of(volume)
        if hosts is None:
            others.append((rank, volume))
        for host in hosts or ():
            by_host.setdefault(host, []).append((rank, volume))
    filed = {host: tuple(ranked) for host, ranked in by_host.items()}
    return Candidates(None, filed, tuple(others))


def mismatch(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Mismatch | None:
    """Why a volume cannot be bound to a claim, regardless of nodes; None if it can."""
    ours = is_set_aside(volume, claim)
    if volume.spec.claim_ref is not None and not ours:
        return Mismatch.TAKEN
    if capacity_of(volume) < requested(claim):
        return Mismatch.TOO_SMALL
    if (volume.spec.volume_mode or FILESYSTEM) != (claim.spec.volume_mode or FILESYSTEM):
        return Mismatch.OTHER_MODE
    if volume.metadata.deletion_timestamp is not None:
        return Mismatch.DELETED
    if ours:  # it was set aside for the claim, so the rest is not checked
        return None
    if class_name_of(volume) != class_name_of(claim):
        return Mismatch.OTHER_CLASS
    if not _selects(claim, volume):
        return Mismatch.NOT_SELECTED
    if not set(claim.spec.access_modes) <= set(volume.spec.access_modes):
        return Mismatch.ACCESS
    # A volume without a phase has not been created on a server yet; it will be available there.
    return None if volume.status.phase in ("", AVAILABLE) else Mismatch.NOT_READY


def reaches(volume: PersistentVolume, facts: NodeFacts) -> bool:
    """Whether a volume can be used from a node, by its node affinity."""
    required = _place_of(volume)
    if required is None:
        return True
    try:
        terms = compile_selector(required).terms
    except SelectorError:
        return False
    return any(term.matches(facts.labels, facts.name) for term in terms)


def _is_entered(volume: PersistentVolume) -> bool:
    return volume.spec.claim_ref is not None and bool(volume.spec.claim_ref.uid)


def _place_of(volume: PersistentVolume) -> NodeSelector | None:
    affinity = volume.spec.node_affinity
    return None if affinity is None else affinity.required


def _selects(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    selector = claim.spec.selector
    if selector is None:
        return True
    try:
        return compile_labels(selector).matches(volume.metadata.labels)
    except SelectorError:
        return False


def _hosts_of(volume: PersistentVolume) -> tuple[str, ...] | None:
    """The only hosts that can reach a volume, in the form that local disks use; None if its affinity has another form."""
    place = _place_of(volume)
    if place is None or len(place.node_selector_terms) != 1:
        return None
    for expression in place.node_selector_terms[0].match_expressions:
        if expression.key == HOSTNAME and expression.operator == "In":
            return tuple(dict.fromkeys(expression.values))
    return None
