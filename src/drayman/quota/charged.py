"""Whether pods are charged: the one rule by which a pod may be placed, and may stay where it is, on account of a Workload.

A pod that waits in a queue, itself or as a part of something that does, is charged through one Workload: its own, that of its group, or
that of the owner that waits as a whole (`workloads/queued/entering.py` says which owners count). The Workload covers it if it is admitted,
has a pod set for it with a place left, and was admitted with what the pod costs now, in flavors that the pod keeps to. What made the pod,
which gates it had and who removed them does not matter here: the scheduler places nothing that is not covered, and the control loop of
queues ends what runs and is not.

Places of a pod set go to the pods that are on nodes and then to the oldest. Those that are being deleted count until their time is over.
A pod keeps the place with which it was placed, regardless of later labels and owners: it is not covered by that any more, but no other pod
gets the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.kueue import ResourceFlavorSpec
from drayman.api.kueue_workload import (
    PodSetAssignment,
    WorkloadSpec,
    WorkloadStatus,
)
from drayman.api.meta import ObjectMeta, controller_of
from drayman.api.pods import used_claims
from drayman.api.resource import ResourceClaim
from drayman.api.struct import Json
from drayman.api.times import seconds_of
from drayman.bounded import Bounded
from drayman.placement.fit.requests import requests_of
from drayman.quota.amounts import Amounts, amount_of, plus, quantity_of
from drayman.quota.charging.allocated import allocated_amounts
from drayman.quota.charging.extended import asked_names
from drayman.quota.charging.outcome import Code, PriceRefusal
from drayman.quota.charging.pricing import DevicePricing
from drayman.quota.charging.rules import Rules
from drayman.quota.claims.records import uses_of
from drayman.quota.claims.users import ClaimUse
from drayman.quota.demands import Charged
from drayman.quota.fitting.belonging import pod_set_of
from drayman.quota.requests import counted, with_defaults
from drayman.quota.settings import IGNORE_UNDECLARED, ResourceSettings
from drayman.reasons.wording import counted as number_of
from drayman.workloads.queued import life
from drayman.workloads.queued.entering import (
    DEEPEST,
    Finder,
    Intake,
    charged_owner,
    kind_of_owner,
)
from drayman.workloads.queued.entering import controller_of as owner_of
from drayman.workloads.queued.groups import is_group_workload
from drayman.workloads.queued.kinds import BY_KIND, PODS
from drayman.workloads.queued.names import QUEUE, queue_of
from drayman.workloads.queued.pods import group_of, is_managed, is_over
from drayman.workloads.queued.slices import slices_of

_WITHOUT_A_PLACE: Final = frozenset(
    {Code.DEVICE_SHORTAGE, Code.UNSATISFIABLE, Code.CLASS_MISSING, Code.POLICY_REJECTS}
)
"""Why there is no price for devices that a pod cannot get either: placement has the better reason."""


_MOST_SETS: Final = 1 << 10


class Covering(Protocol):
    """A Workload, decoded."""

    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def spec(self) -> WorkloadSpec: ...
    @property
    def status(self) -> WorkloadStatus: ...


class Roster(Protocol):
    """What is known of owners, Workloads and pods, and the configuration of the queues."""

    @property
    def intake(self) -> Intake: ...
    @property
    def resources(self) -> ResourceSettings: ...
    def namespace_labels(self, name: str) -> Mapping[str, str]: ...
    def finder(self, namespace: str) -> Finder:
        """Finds objects that wait as a whole."""
        ...

    def owned_by(self, uid: str) -> Sequence[Covering]:
        """The Workloads of an object."""
        ...

    def named(self, namespace: str, name: str) -> Covering | None:
        """The Workload of this name."""
        ...

    def pods_of(self, workload: Covering) -> Iterable[Pod]:
        """The pods that were made for the owners of a Workload, directly or through others, and those of its group."""
        ...

    def most_pods_of(self, workload: Covering) -> int:
        """No fewer than those of them that have not ended."""
        ...

    def set_of(self, pod: Pod, names: Sequence[str]) -> str:
        """The pod set, of these, in which a pod has its place or looks for one."""
        ...

    def revision(self, namespace: str) -> int:
        """Another number whenever a pod of the namespace, or what makes its pods, has changed."""
        ...

    def flavors(self) -> Mapping[str, ResourceFlavorSpec]: ...


class Payer(Struct, frozen=True, eq=False):
    """Through what a pod is charged."""

    title: str
    """The object, as in `Job train`."""
    workload: Covering | None
    """None: it has none that is admitted."""


class Lack(Struct, frozen=True):
    """Why a pod is not charged."""

    message: str
    workload: str = ""
    """The Workload that has a place for the pod, and was admitted with less than the pod costs."""
    until: float | None = None
    """When a pod that is being deleted leaves its place, at the latest; None if none does."""


class _Seated(Struct, frozen=True):
    """The pods that have the places of a pod set."""

    uids: frozenset[str]
    until: float | None
    """When one of them, which is being deleted, leaves its place, at the latest."""
    version: tuple[str, int]


class ChargeCheck:
    """Answers for the pods of one cluster."""

    def __init__(
        self,
        roster: Roster,
        pricing: Callable[[], DevicePricing],
        is_placed: Callable[[Pod], bool],
    ) -> None:
        """`is_placed` says of a pod whether it counts on a node."""
        self._roster = roster
        self._pricing = pricing
        self._is_placed = is_placed
        self._seats: Bounded[tuple[str, str], _Seated] = Bounded(_MOST_SETS)

    # Through what a pod is charged.

    def payer(self, pod: Pod) -> Payer | None:
        """Through what a pod is charged; None if it need not be."""
        intake = self._roster.intake
        metadata, managed = pod.metadata, is_managed(pod)
        owner = controller_of(metadata)
        of_kind = (
            owner is not None and (owner.api_version.rpartition("/")[0], owner.kind) in BY_KIND
        )
        named = bool(metadata.labels.get(QUEUE) or metadata.annotations.get(QUEUE))
        if not (managed or of_kind or named or intake.without_queue):
            return None
        namespace = metadata.namespace
        if not intake.namespaces.matches(self._roster.namespace_labels(namespace)):
            return None
        if of_kind and not managed and self._is_below_queue(pod):
            found = charged_owner(codec.to_dict(pod), intake, self._roster.finder(namespace))
            if found is not None:
                above = found.obj["metadata"]
                owned = self._roster.owned_by(above["uid"])
                return Payer(f"{found.kind.kind} {above['name']}", _current(owned))
        if PODS not in intake.frameworks or not (managed or named or intake.without_queue):
            return None
        return Payer(f"pod {metadata.name}", self._own(pod))

    def _is_below_queue(self, pod: Pod) -> bool:
        """Whether an owner of a pod is in a queue, however it came to be its owner: most pods of Jobs are not worth a closer look."""
        find = self._roster.finder(pod.metadata.namespace)
        above: Mapping[str, Json] = {
            "metadata": {"ownerReferences": codec.to_dict(pod.metadata).get("ownerReferences")}
        }
        for _ in range(DEEPEST):
            owner = owner_of(above)
            kind = None if owner is None else kind_of_owner(owner)
            found = None if owner is None or kind is None else find(kind, str(owner.get("name")))
            if found is None:
                return False
            if self._roster.intake.without_queue or queue_of(found):
                return True
            above = found
        return False

    def _own(self, pod: Pod) -> Covering | None:
        """The admitted Workload of a pod that waits alone or with its group."""
        group = group_of(pod)
        if group:
            found = self._roster.named(pod.metadata.namespace, group)
            if found is None or not is_group_workload(found.metadata.annotations):
                return None
            return _current([found])
        return _current(self._roster.owned_by(pod.metadata.uid))

    # Whether it covers the pod.

    def lack(self, pod: Pod, claims: Sequence[ResourceClaim], now: float) -> Lack | None:
        """Why a pod with these claims may not be placed: what charges it does not cover it. None if it may."""
        payer = self.payer(pod)
        if payer is None:
            return None
        found = self._place(pod, payer, now)
        if isinstance(found, Lack):
            return found
        workload, assigned = found
        problem = self._other_flavor(pod, assigned)
        return problem or self._beyond(pod, claims, workload, assigned)

    def standing(self, pod: Pod, now: float) -> Lack | Covering | None:
        """What charges a pod that is on a node, or why nothing does; None if nothing need. What it costs is in `excess`."""
        payer = self.payer(pod)
        if payer is None:
            return None
        found = self._place(pod, payer, now)
        return found if isinstance(found, Lack) else found[0]

    def excess(self, workload: Covering, pods: Iterable[Pod]) -> Amounts:
        """What the pods of a Workload that are on nodes cost more than it was admitted with."""
        admission, metadata = workload.status.admission, workload.metadata
        if admission is None:
            return {}
        uses = uses_of(metadata.namespace, metadata.annotations)
        names = [each.name for each in admission.pod_set_assignments]
        total: dict[str, Amounts] = {}
        named: dict[str, ResourceClaim] = {}
        for pod in pods:
            cost = self._cost(pod)
            if cost is not None:
                of_set = pod_set_of(pod, names)
                total[of_set] = plus(total.get(of_set, {}), cost)
            named |= {claim.metadata.name: claim for claim in self._named(pod)}
        excess: Amounts = {}
        for each in admission.pod_set_assignments:
            excess = plus(excess, self._above(total.get(each.name, {}), _charged(each, uses)))
        for claim in named.values():
            excess = plus(excess, self._above(self._of_named(claim), _paid_for(claim, uses)))
        return excess

    def _place(
        self, pod: Pod, payer: Payer, now: float
    ) -> tuple[Covering, PodSetAssignment] | Lack:
        """The pod set in which a pod has a place."""
        workload = payer.workload
        if workload is None or workload.status.admission is None:
            return Lack(f"{payer.title} has no Workload that is admitted.")
        assignments = {e.name: e for e in workload.status.admission.pod_set_assignments}
        name = pod_set_of(pod, list(assignments))
        assigned = assignments.get(name)
        title = f"Workload {workload.metadata.name}"
        if assigned is None:
            return Lack(f"{title} has no pod set {name}.")
        left = self._places(workload, assigned)
        if self._roster.most_pods_of(workload) > left:
            seated = self._seated(workload, name, list(assignments), left, now)
            if pod.metadata.uid not in seated.uids:
                return Lack(
                    f"{title} is admitted with {number_of(left, 'pod')} of set {name}, which others"
                    " are.",
                    until=seated.until,
                )
        return workload, assigned

    @staticmethod
    def _places(workload: Covering, assigned: PodSetAssignment) -> int:
        done = {each.name: each.count for each in workload.status.reclaimable_pods}
        return max(0, (assigned.count or 0) - done.get(assigned.name, 0))

    def _seated(
        self, workload: Covering, name: str, names: Sequence[str], left: int, now: float
    ) -> _Seated:
        """The pods that have the places of a set: those on nodes, and then the oldest. What is placed meanwhile is among them."""
        metadata = workload.metadata
        key = (metadata.uid, name)
        version = (metadata.resource_version, self._roster.revision(metadata.namespace))
        known = self._seats.get(key)
        if known is not None and known.version == version and now < (known.until or now + 1):
            return known
        pods = [
            each
            for each in self._roster.pods_of(workload)
            if not is_over(each, now)
            and self._roster.set_of(each, names) == name
            and (self._is_placed(each) or not each.spec.scheduling_gates)
        ]
        pods = sorted(pods, key=self._turn)[:left]
        ends = [seconds_of(each.metadata.deletion_timestamp) for each in pods]
        until = min((end for end in ends if end is not None), default=None)
        found = _Seated(frozenset(each.metadata.uid for each in pods), until, version)
        self._seats[key] = found
        return found

    def _turn(self, pod: Pod) -> tuple[bool, str, str, str]:
        metadata = pod.metadata
        placed = self._is_placed(pod)
        return not placed, metadata.creation_timestamp or "", metadata.name, metadata.uid

    def _other_flavor(self, pod: Pod, assigned: PodSetAssignment) -> Lack | None:
        """The nodes of a flavor are those that its price is for."""
        flavors = self._roster.flavors()
        for name in dict.fromkeys(assigned.flavors.values()):
            spec = flavors.get(name)
            for label, value in {} if spec is None else spec.node_labels.items():
                if pod.spec.node_selector.get(label) != value:
                    return Lack(
                        f"its Workload is admitted with flavor {name}, and the pod does not select {label}={value}."
                    )
        return None

    # What it costs.

    def _beyond(
        self,
        pod: Pod,
        claims: Sequence[ResourceClaim],
        workload: Covering,
        assigned: PodSetAssignment,
    ) -> Lack | None:
        """What a pod costs more than its share of what its Workload was admitted with."""
        metadata = workload.metadata
        uses = uses_of(metadata.namespace, metadata.annotations)
        named = {entry.resource_claim_name for entry in pod.spec.resource_claims}
        own = [claim for claim in claims if claim.metadata.name not in named]
        cost = self._price(pod, own, assigned)
        if isinstance(cost, PriceRefusal):
            return (
                None if cost.code in _WITHOUT_A_PLACE else Lack(f"it has no price: {cost.message}")
            )
        excess = self._above(cost, _share(assigned, uses))
        for claim in claims:
            if claim.metadata.name in named:
                excess = plus(excess, self._above(self._of_named(claim), _paid_for(claim, uses)))
        if not excess:
            return None
        text = ", ".join(f"{name} {quantity_of(name, excess[name])}" for name in sorted(excess))
        return Lack(
            f"it costs {text} more than its share of what Workload {metadata.name} is admitted with.",
            metadata.name,
        )

    def _price(
        self, pod: Pod, own: Sequence[ResourceClaim], assigned: PodSetAssignment
    ) -> Amounts | PriceRefusal:
        """What a pod counts of quota with these claims of its own: the most that they may cost on nodes of its flavors."""
        if not own and not asked_names(pod.spec, Rules()):
            return self._counted(pod, Charged({}))
        specs = [claim.spec for claim in own]
        priced = self._pricing().price_pod(pod, specs)
        if isinstance(priced, PriceRefusal):
            return priced
        found = dict(self._counted(pod, priced))
        flavors = self._roster.flavors() if priced.varies else {}
        for name in dict.fromkeys(assigned.flavors.values()):
            spec = flavors.get(name)
            if spec is None or not spec.node_labels:
                continue
            there = self._pricing().price_pod(pod, specs, spec.node_labels)
            if isinstance(there, PriceRefusal):
                return there
            cost = self._counted(pod, there)
            found |= {r: cost.get(r, 0) for r, flavor in assigned.flavors.items() if flavor == name}
        return found

    def _counted(self, pod: Pod, priced: Charged) -> Amounts:
        spec = with_defaults(pod.spec, ())
        # The overhead of its runtime class is the server's, and was not known when the Workload was made.
        asked = requests_of(Pod(spec=replace(spec, overhead={}))).amounts
        return counted(asked, priced, self._roster.resources)

    def _of_named(self, claim: ResourceClaim) -> Amounts:
        pricing = self._pricing()
        if claim.status.allocation is not None:
            cost = allocated_amounts([claim], pricing.state, pricing.mappings)
            if cost is not None:
                return cost
        found = pricing.price_pod(Pod(metadata=claim.metadata), [claim.spec])
        return {} if isinstance(found, PriceRefusal) else found.charges

    def _named(self, pod: Pod) -> list[ResourceClaim]:
        """The claims that a pod names and uses."""
        names = {entry.resource_claim_name for entry in pod.spec.resource_claims}
        used = self._pricing().state.claims_used_by(pod) if names - {None} else ()
        return [claim for claim in used if claim.metadata.name in names]

    def _cost(self, pod: Pod) -> Amounts | None:
        """What a pod that is on a node counts of quota with the devices that it has, without the claims that it names. None if that is not
        known."""
        pricing = self._pricing()
        state = pricing.state
        named = {entry.resource_claim_name for entry in pod.spec.resource_claims}
        claims = [
            claim
            for name in used_claims(pod)
            if name not in named
            and (claim := state.find_claim(pod.metadata.namespace, name)) is not None
        ]
        behind = {
            class_name: name
            for name in asked_names(pod.spec, Rules())
            if (class_name := state.extended.class_of(name)) is not None
        }
        devices = allocated_amounts(claims, state, pricing.mappings, behind)
        if devices is None:
            return None
        return self._counted(pod, Charged(devices, frozenset(behind.values())))

    def _above(self, cost: Amounts, charged: Amounts) -> Amounts:
        """What is not covered. What a queue has no quota for may not be counted."""
        ignores = self._roster.resources.quota_check_strategy == IGNORE_UNDECLARED
        return {
            name: amount - charged.get(name, 0)
            for name, amount in cost.items()
            if amount > charged.get(name, 0) and (name in charged or not ignores)
        }


def _paid_for(claim: ResourceClaim, uses: Iterable[ClaimUse]) -> Amounts:
    for use in uses:
        if use.claim == (claim.metadata.namespace, claim.metadata.name):
            return use.price.amounts
    return {}


def _share(assigned: PodSetAssignment, uses: Iterable[ClaimUse]) -> Amounts:
    """What one pod of a set was admitted with."""
    count = assigned.count or 1
    return {name: amount // count for name, amount in _charged(assigned, uses).items()}


def _charged(assigned: PodSetAssignment, uses: Iterable[ClaimUse]) -> Amounts:
    """What the pods of a set were admitted with, without what is paid for claims that they name."""
    paid: Amounts = {}
    for use in uses:
        if use.pod_set == assigned.name:
            paid = plus(paid, use.paid)
    return {
        name: max(0, amount_of(name, quantity) - paid.get(name, 0))
        for name, quantity in assigned.resource_usage.items()
    }


def _current(owned: Iterable[Covering]) -> Covering | None:
    """Of the Workloads of an object, the one that it may run with."""
    admitted = [
        each
        for each in owned
        if life.may_run(each.status, each.spec) and not life.is_finished(each.status)
    ]
    if len(admitted) < 2:
        return admitted[0] if admitted else None
    return slices_of(admitted).current
