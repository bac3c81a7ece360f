"""What a pod asks for, in the form in which nodes are searched for it.

Most pods are copies of one another. What all copies have in common is worked out once and kept by `Demands`: the pod's shape, its compiled
question to the allocator, the claim for its extended resources. A `Demand` adds what is specific to this pod: its claims.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msgspec import Struct

from drayman.allocator import HeldDevice, PodAlignment, Question
from drayman.api import codec
from drayman.api.alignment import ALIGN
from drayman.api.core import Node, Pod
from drayman.api.errors import SelectorError
from drayman.api.meta import ObjectMeta, OwnerReference
from drayman.api.nodeselector import matches
from drayman.api.pods import containers_of, entry_claims
from drayman.api.resource import ResourceClaim
from drayman.bounded import Bounded
from drayman.inventory.identity import DeviceId
from drayman.placement.claims import EXTENDED_CLAIM, is_late, only_node_of, readiness
from drayman.placement.extended import ExtendedClaim, extended_claim
from drayman.placement.fit import FITS, Cause, NodeFacts, PodNeeds, Verdict, claim_name
from drayman.placement.gpu_shares import RESOURCE, ShareRequest
from drayman.placement.hints import Hint
from drayman.placement.spending import UNCONCERNED, Spending, spending_of
from drayman.placement.state import ClusterState
from drayman.placement.wake import Wake

_MOST_SHAPES: Final = 1024
UNAVAILABLE: Final = "resourceclaim not available on the node"
HELD_ELSEWHERE: Final = Verdict.refusal(Cause.CLAIM_ELSEWHERE, UNAVAILABLE)
_STALE: Final = Verdict.refusal(Cause.CLAIM_LEFT_BEHIND, "cannot schedule extended resource claim")
_NONE: Final[frozenset[str]] = frozenset()


class DevicesWanted(Struct, frozen=True):
    """The claims that are to be allocated together on a node."""

    claims: tuple[ResourceClaim, ...]
    question: Question
    delegated: frozenset[str]
    """Extended resources that are served by devices there."""
    extended: ExtendedClaim | None = None
    impossible: Verdict | None = None


@dataclass(slots=True, eq=False)
class _Shape:
    """What copies of a pod share."""

    key: Hashable
    wanted: Hashable
    """What they want of devices."""
    meets_others: bool
    """Whether rules about other pods concern them."""
    extended_of: dict[frozenset[str], ExtendedClaim | None] = field(default_factory=dict)
    questions: dict[frozenset[str], Question] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Demand:
    """What one pod asks for."""

    pod: Pod
    needs: PodNeeds
    claims: tuple[ResourceClaim, ...]
    open: tuple[ResourceClaim, ...]
    """The claims that have no devices yet."""
    held: tuple[ResourceClaim, ...]
    """The claims that have devices."""
    extended: Mapping[str, str]
    """Extended resources that have a device class, with the class."""
    share: ShareRequest | None
    """The share of a GPU that the pod's annotations ask for."""
    stale_extended: ResourceClaim | None
    """A claim for extended resources that an earlier attempt left behind."""
    impossible: Verdict | None
    only_node: str | None
    """The one node on which a claim already has its devices."""
    timed_out: frozenset[str]
    """Claims, by uid, whose devices were not made ready in time, or failed."""
    shape: _Shape
    alignment: PodAlignment | None = None
    """What the pod states about the places of its devices."""
    spending: Spending = UNCONCERNED
    """What the pod says about the price of its node."""
    _wanted: dict[frozenset[str], DevicesWanted] = field(default_factory=dict, init=False)

    @property
    def key(self) -> Hashable:
        return self.shape.key

    @property
    def bare_key(self) -> Hashable:
        """Equal for pods that are alike apart from their labels, their volumes and their rules about other pods."""
        return self.needs.bare_key, self.shape.wanted

    @property
    def interest(self) -> Wake:
        """What kind of change may give the pod a node if it finds none now."""
        interest = Wake.NODES | Wake.DEVICES if self.asks_for_devices else Wake.NODES
        return interest | Wake.VOLUMES if self.needs.shape.volumes else interest

    def hint(self, verdicts: Iterable[Verdict]) -> Hint | None:
        """Which other pods may give the pod a node, if nodes have refused it with these verdicts."""
        return Hint.of(self.needs, verdicts) if self.shape.meets_others else None

    @property
    def asks_for_devices(self) -> bool:
        return bool(self.claims or self.extended)

    @property
    def has_alternatives(self) -> bool:
        """Whether a claim without devices lists alternatives in the order of preference."""
        return any(
            request.first_available
            for claim in self.open
            for request in claim.spec.devices.requests
        )

    def delegated_on(self, facts: NodeFacts) -> frozenset[str]:
        """The extended resources that devices serve on a node: those its kubelet does not offer."""
        if not self.extended:
            return _NONE
        offered = facts.shape.extended
        return frozenset(name for name in self.extended if not offered.get(name))

    def on(self, facts: NodeFacts) -> DevicesWanted:
        """What is to be allocated on a node."""
        delegated = self.delegated_on(facts)
        known = self._wanted.get(delegated)
        if known is None:
            known = self._wanted[delegated] = self._with_devices_for(delegated)
        return known

    def _with_devices_for(self, delegated: frozenset[str]) -> DevicesWanted:
        shape = self.shape
        extended = None
        claims = self.open
        if delegated:
            if delegated not in shape.extended_of:
                classes = {name: self.extended[name] for name in delegated if name != RESOURCE}
                share = self.share if RESOURCE in delegated else None
                added = None if share is None else (share.request, share.mapping)
                shape.extended_of[delegated] = extended_claim(self.pod, classes, added)
            extended = shape.extended_of[delegated]
            if extended is not None:
                claims = (*claims, self._claim_for(extended))
        question = shape.questions.get(delegated)
        if question is None:
            question = shape.questions[delegated] = Question(claims, self.alignment)
        impossible = None
        if extended is not None and self.stale_extended is not None:
            impossible = _STALE
        return DevicesWanted(claims, question.asked_for(claims), delegated, extended, impossible)

    def _claim_for(self, extended: ExtendedClaim) -> ResourceClaim:
        """The claim for extended resources before it exists. The ledger knows it by this name."""
        metadata = self.pod.metadata
        owner = OwnerReference(
            api_version="v1", kind="Pod", name=metadata.name, uid=metadata.uid, controller=True
        )
        return ResourceClaim(
            metadata=ObjectMeta(
                name=f"<extended-resources> {metadata.uid}",
                generate_name=f"{metadata.name}-extended-resources-",
                namespace=metadata.namespace,
                annotations={EXTENDED_CLAIM: "true"},
                owner_references=(owner,),
            ),
            spec=extended.spec,
        )

    def unavailable_on(self, node: Node) -> list[ResourceClaim]:
        """The claims whose devices cannot be used from a node."""
        return [claim for claim in self.held if not self._is_available(claim, node)]

    def held_verdict(self, node: Node) -> Verdict:
        if not self.held or not self.unavailable_on(node):
            return FITS
        return HELD_ELSEWHERE

    def _is_available(self, claim: ResourceClaim, node: Node) -> bool:
        if claim.metadata.uid in self.timed_out:
            return False
        allocation = claim.status.allocation
        if allocation is None or allocation.node_selector is None:
            return True
        try:
            return matches(allocation.node_selector, node)
        except SelectorError:
            return False


class Demands:
    """Makes demands, and keeps what is the same for pods that are alike."""

    def __init__(self, state: ClusterState, binding_timeout_s: float) -> None:
        self._state = state
        self._binding_timeout_s = binding_timeout_s
        self._shapes: Bounded[Hashable, _Shape] = Bounded(_MOST_SHAPES)

    def of(self, pod: Pod, claims: tuple[ResourceClaim, ...], now: float) -> Demand:
        """What a pod with these claims asks for. Raises ClaimsNotReadyError if it asks for a share of a GPU that no class offers."""
        needs = PodNeeds.of(pod)
        held = tuple(claim for claim in claims if claim.status.allocation is not None)
        opened = tuple(claim for claim in claims if claim.status.allocation is None)
        extended = self._state.extended.resources_of(pod) if needs.shape.extended else {}
        timed_out = (
            frozenset(claim.metadata.uid for claim in held if self._is_lost(claim, now))
            if held
            else _NONE
        )
        only_node = None
        for claim in held:
            if claim.status.allocation is not None:
                only_node = only_node or only_node_of(claim.status.allocation.node_selector)
        share = self._state.gpu_shares.request(pod)
        if share is not None:
            extended = {**extended, RESOURCE: share.device_class}
        stale = self._state.extended_claim_of(pod.metadata.uid) if extended else None
        stated = pod.metadata.annotations.get(ALIGN)
        alignment = None if stated is None else _alignment(pod, stated, claims)
        spending = UNCONCERNED
        if self._state.has_offers:
            spending = spending_of(pod, wants_devices=bool(claims or extended))
        return Demand(
            pod,
            needs,
            claims,
            opened,
            held,
            extended,
            share,
            stale,
            self._missing_class(opened),
            only_node,
            timed_out,
            self._shape(
                pod, needs, opened, held, timed_out, extended, share, stale, alignment, spending
            ),
            alignment,
            spending,
        )

    def _is_lost(self, claim: ResourceClaim, now: float) -> bool:
        """Whether the devices of a claim failed to become ready."""
        state = readiness(claim)
        if state.failure:
            return True
        return not state.is_ready and is_late(claim, now, self._binding_timeout_s)

    def _missing_class(self, claims: tuple[ResourceClaim, ...]) -> Verdict | None:
        missing = missing_class(claims, self._state.inventory.classes)
        return None if missing is None else Verdict.refusal(Cause.CLASS_MISSING, str(missing))

    def _shape(
        self,
        pod: Pod,
        needs: PodNeeds,
        opened: tuple[ResourceClaim, ...],
        held: tuple[ResourceClaim, ...],
        timed_out: frozenset[str],
        extended: Mapping[str, str],
        share: ShareRequest | None,
        stale: ResourceClaim | None,
        alignment: PodAlignment | None,
        spending: Spending,
    ) -> _Shape:
        # Where pods affect each other, labels and namespace distinguish them too.
        is_concerned = self._state.neighbourhood.concerns(needs)
        wanted = (
            tuple(codec.encode(claim.spec) for claim in opened),
            tuple(claim.metadata.annotations.get(ALIGN) for claim in opened),
            alignment,
            tuple(claim.metadata.uid for claim in held),
            timed_out,
            tuple(sorted(extended.items())),
            _container_requests(pod) if extended else (),
            None if share is None else codec.encode(share.request),
            None if share is None else share.mapping.container_name,
            # What blocks this pod does not block its copies.
            "" if stale is None else stale.metadata.uid,
        )
        key = (
            needs.neighbour_key if is_concerned else needs.key,
            wanted,
            _volume_claims(needs) if needs.shape.volumes else (),
            None if spending is UNCONCERNED else spending,
        )
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = _Shape(key, wanted, is_concerned)
        return shape


class MissingClass(NamedTuple):
    """A request for devices of a class that does not exist."""

    claim: int
    """Its position among the claims."""
    request: str
    device_class: str

    def __str__(self) -> str:
        return f"request {self.request}: device class {self.device_class} does not exist"


def missing_class(claims: Sequence[ResourceClaim], classes: Container[str]) -> MissingClass | None:
    """The first request of these claims, or alternative of one, whose class does not exist: it keeps the pod from all nodes."""
    for position, claim in enumerate(claims):
        for request in claim.spec.devices.requests:
            for name, spec in request.alternatives():
                if spec.device_class_name not in classes:
                    return MissingClass(position, name, spec.device_class_name)
    return None


def _alignment(pod: Pod, stated: str, claims: Sequence[ResourceClaim]) -> PodAlignment:
    """What the annotation of a pod is about: the entries of its claims that have no devices yet, and the others."""
    # An entry with an empty name needs no claim; the others have one each, in order.
    served = [entry.name for entry, name in entry_claims(pod) if name != ""]
    entries, others = [], {entry.name for entry in pod.spec.resource_claims}
    held: list[HeldDevice] = []
    for entry, claim in zip(served, claims, strict=False):
        if claim.status.allocation is None:
            entries.append(entry)
            others.discard(entry)
        else:
            held += [
                HeldDevice(entry, result.request, DeviceId.of(result))
                for result in claim.status.results
                if not result.admin_access
            ]
    return PodAlignment(stated, tuple(entries), frozenset(others), tuple(held))


def _volume_claims(needs: PodNeeds) -> Hashable:
    """The claims whose volumes decide where the pod can go: claims of the same name in two namespaces are different."""
    return needs.namespace, tuple(claim_name(needs, ref) for ref in needs.shape.volumes)


def _container_requests(pod: Pod) -> Hashable:
    """What the claim for extended resources is made from."""
    return tuple(
        (container.name, container.restart_policy, codec.encode(container.resources))
        for container in containers_of(pod)
    )
