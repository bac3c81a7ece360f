"""The claims of a cluster, and which devices each holds: as last shown by the API server, and as decisions will leave them.

A decision counts from the moment it is made (`assume_plan`, `assume_claim`), so that the next one is made on top of it, and is taken back
if it cannot be written (`forget_claim`). The newest version of a claim wins, whatever its source; while a write of ours is under way for a
claim, the ledger keeps what we decided, even if older versions still arrive.

Devices of a claim that is taken from a pod which has a node stay held for the pod (`lost_claims`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct

from drayman.allocator import Plan
from drayman.api.core import Pod
from drayman.api.resource import (
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drayman.bounded import Bounded
from drayman.inventory.identity import DeviceId
from drayman.inventory.ledger import Holding, Ledger, holder_of, holdings_of, whole_devices
from drayman.inventory.undo import UndoLog
from drayman.placement.claims import claims_used_by, extended_for
from drayman.placement.fit import PodNeeds
from drayman.placement.hints import Change
from drayman.placement.lost_claims import How, LostClaim, Users
from drayman.placement.marks import Marks
from drayman.placement.mix import Mix, MixBook
from drayman.placement.pod_starts import PodStarts
from drayman.placement.wake import Wake

ClaimKey = tuple[str, str]
"""Namespace and name."""
_Results = tuple[DeviceRequestAllocationResult, ...]
_REMEMBERED: Final = 10_000
"""Claims that are gone. An answer about one that was forgotten would have to be older than so many others."""


class Released(Struct, frozen=True):
    """What a holder had before it was released."""

    holder: str
    results: _Results
    holdings: tuple[Holding, ...]


class ClaimBook:
    """Claims, their templates, and the devices they hold."""

    def __init__(self, log: UndoLog, marks: Marks, wake: Callable[[Change], None]) -> None:
        self._log = log
        self._wake = wake
        self.marks = marks
        self.ledger = Ledger(log)
        self.has_floating_devices = False
        """Whether there ever were any. If so, devices of several nodes must not be added up."""
        self._claims: dict[ClaimKey, ResourceClaim] = {}
        self._keys: dict[str, ClaimKey] = {}  # by uid
        self._assumed: dict[str, ResourceClaim] = {}  # as our writes will leave them, by uid
        self._holding: dict[str, _Results] = {}  # by holder
        self._provisional: dict[ClaimKey, str] = {}  # holders of claims that are being created
        # By driver and pool, the only node that sees the pool; empty if there are several.
        self._home_of_pool: dict[tuple[str, str], str] = {}
        self._extended_claims: dict[str, ClaimKey] = {}  # by uid of the pod
        self._templates: dict[ClaimKey, ResourceClaimTemplate] = {}
        self._allocated_at: dict[str, int] = {}  # versions, by uid
        self._forgotten: dict[str, frozenset[DeviceId]] = {}  # by uid of the claim that has them
        self._deprived: dict[str, frozenset[str]] = {}  # by uid of a pod, claims no longer reserved
        self._lost: dict[str, Users] = {}  # by holder
        self._gone: Bounded[str, None] = Bounded(_REMEMBERED)  # uids
        self._starts = PodStarts(log)
        self._mixes = MixBook(self._holding, self._holding_claim, self._needs_of, log)

    # What the API server shows.

    def set_claim(self, claim: ResourceClaim) -> bool:
        """Take in a claim. Returns whether this version was new."""
        if not self._log.depth:
            self._gone.pop(claim.metadata.uid, None)  # a replay may begin again with the same uids
        key = (claim.metadata.namespace, claim.metadata.name)
        known = self._claims.get(key)
        if known is not None and known.metadata.uid == claim.metadata.uid:
            if _version(known) >= _version(claim):
                return False
            self._compare(known, claim)
        elif known is not None:
            self.remove_claim(known)
        self._log.put(self._claims, key, claim)
        self._log.put(self._keys, claim.metadata.uid, key)
        owner = extended_for(claim)
        if owner is not None:
            self._log.put(self._extended_claims, owner.uid, key)
        if claim.metadata.uid not in self._assumed:
            self._observe(claim)
        return True

    def learn_claim(self, claim: ResourceClaim) -> bool:
        """Take in a claim as an answer has it, which may come after the news that it is gone. Returns whether this version was new."""
        return claim.metadata.uid not in self._gone and self.set_claim(claim)

    def remove_claim(self, claim: ResourceClaim) -> None:
        if claim.metadata.uid and not self._log.depth:
            self._gone[claim.metadata.uid] = None
        key = (claim.metadata.namespace, claim.metadata.name)
        known = self._claims.get(key)
        if known is not None and known.metadata.uid == claim.metadata.uid:
            if known.status.allocation is not None:
                self._keep(known, "deleted")
                self._note_forgotten(known)
            self._log.pop(self._claims, key)
            self._log.pop(self._keys, claim.metadata.uid)
            self._log.pop(self._allocated_at, claim.metadata.uid)
            self._log.pop(self._forgotten, claim.metadata.uid)
            owner = extended_for(claim)
            if owner is not None and self._extended_claims.get(owner.uid) == key:
                self._log.pop(self._extended_claims, owner.uid)
            self._log.pop(self._assumed, claim.metadata.uid)
            self._free(holder_of(claim))

    def set_template(self, template: ResourceClaimTemplate) -> None:
        key = (template.metadata.namespace, template.metadata.name)
        self._log.put(self._templates, key, template)

    def remove_template(self, template: ResourceClaimTemplate) -> None:
        self._log.pop(self._templates, (template.metadata.namespace, template.metadata.name))

    # Reading.

    def find_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """A claim as it is, or as it will be once our writes are done."""
        claim = self._claims.get((namespace, name))
        if claim is None:
            return None
        return self._assumed.get(claim.metadata.uid, claim)

    def find_template(self, namespace: str, name: str) -> ResourceClaimTemplate | None:
        return self._templates.get((namespace, name))

    def known_claim(self, claim: ResourceClaim) -> ResourceClaim | None:
        """The claim as last shown by the server; None if it is gone."""
        known = self._claims.get((claim.metadata.namespace, claim.metadata.name))
        return None if known is None or known.metadata.uid != claim.metadata.uid else known

    def latest_claim(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as it will be after all decisions so far."""
        return self._assumed.get(claim.metadata.uid, claim)

    def is_under_way(self, claim: ResourceClaim) -> bool:
        """Whether a write of ours for the claim has not been confirmed."""
        return claim.metadata.uid in self._assumed

    def allocated_claims(self) -> Iterator[ResourceClaim]:
        """The claims that have devices, as last shown by the server."""
        return (claim for claim in self._claims.values() if claim.status.allocation is not None)

    def is_floating(self, pool: tuple[str, str]) -> bool:
        """Whether a pool, by driver and name, may be seen from several nodes."""
        return not self._home_of_pool.get(pool)

    def extended_claim_of(self, pod_uid: str) -> ResourceClaim | None:
        """The claim for the extended resources of a pod, if it exists."""
        key = self._extended_claims.get(pod_uid)
        return None if key is None else self.find_claim(*key)

    def claims_used_by(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        """The claims that a pod uses, as they are or will be once our writes are done."""
        return tuple(claims_used_by(pod, self.find_claim))

    def allocated_at(self, claim: ResourceClaim) -> int | None:
        """The version of a claim with which it got its devices; None if it had them when it was first seen."""
        return self._allocated_at.get(claim.metadata.uid)

    def forgotten_of(self, claim: ResourceClaim) -> frozenset[DeviceId]:
        """The devices of a claim that another claim had as well until it released them.

        kube-scheduler keeps allocated devices in a set and removes a device from it when any claim that holds it is deallocated. It may
        give these devices out again although this claim holds them.
        """
        return self._forgotten.get(claim.metadata.uid, frozenset())

    def claims_with(self, device: DeviceId) -> tuple[ResourceClaim, ...]:
        """The claims that have a device as a whole, as last shown by the server. Admin access does not count."""
        holders = self.ledger.holders_of(device)
        if not holders:
            return ()
        return tuple(
            claim
            for claim in self.allocated_claims()
            if holder_of(claim) in holders and device in whole_devices(claim)
        )

    def claims_beside(self, claim: ResourceClaim) -> tuple[ResourceClaim, ...]:
        """The other claims that have a device of an allocated claim, or a share of one, as decisions will leave them."""
        holders = {
            holder
            for result in claim.status.results
            for holder in self.ledger.holders_of(DeviceId.of(result))
        } - {holder_of(claim)}
        if not holders:
            return ()
        latest = map(self.latest_claim, self._claims.values())
        return tuple(each for each in latest if holder_of(each) in holders)

    def lost_claim(self, holder: str) -> Users | None:
        """The lost claim that stands behind a holder, if one does."""
        return self._lost.get(holder)

    def lost_claims(self) -> Iterator[Users]:
        """Claims that were taken from pods on nodes."""
        return iter(self._lost.values())

    def _holding_claim(self, holder: str) -> ResourceClaim | None:
        """The claim that holds devices under this name, if one does."""
        key = self._keys.get(holder)
        return None if key is None else self.find_claim(*key)

    @property
    def mix(self) -> Mix:
        """The pods that the cluster serves, by what they ask for."""
        return self._mixes.mix

    def _needs_of(self, uid: str) -> PodNeeds | None:
        """What a pod on a node needs."""
        return None

    # Deciding.

    def assume_plan(self, plan: Plan) -> None:
        """Count the devices of a plan as taken. Raises LedgerConflictError."""
        self.ledger.commit(plan)
        for item in plan.claims:
            self._note_holding(holder_of(item.claim), item.allocation.devices.results)

    def assume_claim(self, claim: ResourceClaim) -> None:
        """A write is about to change the claim to this."""
        self._log.put(self._assumed, claim.metadata.uid, claim)

    def confirm_claim(self, claim: ResourceClaim) -> None:
        """The write succeeded; this is the claim as the server stored it."""
        self._log.pop(self._assumed, claim.metadata.uid)
        if not self.learn_claim(claim):
            self._observe_known(claim)

    def forget_claim(self, claim: ResourceClaim) -> None:
        """The write failed: the claim is again as last shown by the server."""
        if self._log.pop(self._assumed, claim.metadata.uid) is not None:
            self._observe_known(claim)

    def assume_made(self, key: ClaimKey, holder: str) -> None:
        """A claim of this name is about to be created; until it exists, its devices are held under a provisional name."""
        self._log.put(self._provisional, key, holder)

    def adopt(self, holder: str, claim: ResourceClaim) -> None:
        """What was taken under a provisional name belongs to this claim, which now exists."""
        self._log.pop(self._provisional, (claim.metadata.namespace, claim.metadata.name))
        # The server may have shown the claim before it answered, and that it is gone.
        if holder_of(claim) in self._holding or claim.metadata.uid in self._gone:
            self._free(holder)
        else:
            self._hand_over(holder, claim)

    def forget_made(self, key: ClaimKey, holder: str) -> None:
        """Give back what was taken for a claim that is not created after all."""
        self._log.pop(self._provisional, key)
        self._free(holder)

    # Devices held by others. Wakes no pods.

    def hold(self, holder: str, allocation: AllocationResult) -> None:
        """A holder has these devices. Others may have them too."""
        self.ledger.observe(holder, holdings_of(allocation))
        self._note_holding(holder, allocation.devices.results)

    def release(self, holder: str) -> Released | None:
        """Free the devices of a holder. Returns what it had; None if that was nothing."""
        holdings = self.ledger.holdings(holder)
        self.ledger.forget(holder)
        results = self._log.pop(self._holding, holder)
        if results is None:
            return None
        self._mixes.claim_changed()
        for pool in _pools_of(results):
            node = self._home_of_pool.get(pool, "")
            if node:
                self.marks.node(node)
            else:
                self.marks.free_floating()
        return Released(holder, results, holdings)

    def hold_again(self, released: Released) -> None:
        """The inverse of `release`."""
        self.ledger.observe(released.holder, released.holdings)
        self._note_holding(released.holder, released.results)

    # Claims that are taken from pods.

    def users_of(self, claim: ResourceClaim) -> frozenset[str]:
        """The pods on nodes, by uid, for which a claim is reserved."""
        return frozenset()

    def _compare(self, known: ResourceClaim, claim: ResourceClaim) -> None:
        """See what a new version of a claim means for its devices."""
        before, after = known.status, claim.status
        if before.reserved_for != after.reserved_for and before.allocation is not None:
            kept = {consumer.uid for consumer in after.reserved_for}
            for pod in self.users_of(known) - self.users_of(claim) - kept:
                had = self._deprived.get(pod, frozenset())
                self._log.put(self._deprived, pod, had | {claim.metadata.uid})
        if before.results != after.results:
            if before.allocation is not None:
                self._keep(known, "deallocated")
                self._note_forgotten(known)
            self._log.pop(self._forgotten, claim.metadata.uid)
            if after.allocation is None:
                self._log.pop(self._allocated_at, claim.metadata.uid)
            else:
                self._log.put(self._allocated_at, claim.metadata.uid, _version(claim))
                self._give_back(claim)

    def _note_forgotten(self, claim: ResourceClaim) -> None:
        """A claim is about to lose its devices. Claims that have one of them too remember that."""
        for device in whole_devices(claim):
            if len(self.ledger.holders_of(device)) < 2:
                continue  # nearly always
            for other in self.claims_with(device):
                if other.metadata.uid != claim.metadata.uid:
                    both = self.forgotten_of(other) | {device}
                    self._log.put(self._forgotten, other.metadata.uid, both)

    def _keep(self, claim: ResourceClaim, how: How) -> None:
        """A claim is about to lose its devices. If pods on nodes use it, they keep them."""
        uid = claim.metadata.uid
        deprived = [pod for pod, claims in self._deprived.items() if uid in claims]
        users = self.users_of(claim).union(deprived)
        for pod in deprived:
            left = self._deprived[pod] - {uid}
            if left:
                self._log.put(self._deprived, pod, left)
            else:
                self._log.pop(self._deprived, pod)
        if users and claim.status.results:
            self.keep_for(users, LostClaim.of(claim, how))

    def _give_back(self, claim: ResourceClaim) -> None:
        """A claim has devices again. If they are those that were taken from it, nothing is lost.

        Nor has a pod lost anything that got its node with them: pods and claims are two watches, and the pod may be shown on its node
        while the claim is still shown with what an earlier attempt to start the pod had given it.
        """
        holder = LostClaim.of(claim, "deallocated").holder
        users = self._lost.get(holder)
        if users is None:
            return
        if users.claim.results == claim.status.results:
            self._log.pop(self._lost, holder)
            self.release(holder)
            return
        version = _version(claim)
        for uid in self.users_of(claim) & users.pods:
            if self._starts.is_after(uid, version):
                self._lose_nothing(uid, holder)

    def keep_for(self, pods: Iterable[str], lost: LostClaim) -> None:
        """Pods on nodes, by uid, still use the devices of a claim that is lost."""
        known = self._lost.get(lost.holder)
        users = frozenset(pods)
        if known is not None:
            lost, users = known.claim.joined_with(lost), known.pods | users
            if (lost, users) == (known.claim, known.pods):
                return
        self._log.put(self._lost, lost.holder, Users(lost, users))
        if known is None or known.claim != lost:
            self.hold(lost.holder, lost.allocation)

    def _pod_ended(self, uid: str) -> None:
        """A pod no longer uses anything."""
        self._log.pop(self._deprived, uid)
        for holder, users in tuple(self._lost.items()):
            if uid in users.pods:
                self._lose_nothing(uid, holder)

    def _lose_nothing(self, uid: str, holder: str) -> None:
        """A pod does not use what a lost claim had, or no longer."""
        users = self._lost[holder]
        if len(users.pods) > 1:
            self._log.put(self._lost, holder, Users(users.claim, users.pods - {uid}))
        else:
            self._log.pop(self._lost, holder)
            self._free(holder)

    # Internals.

    def _home_of(self, slice_: ResourceSlice) -> str:
        """The only node that sees the pool of a slice that has changed; empty if there are several."""
        pool = (slice_.spec.driver, slice_.spec.pool.name)
        node = slice_.spec.node_name or ""
        home = self._home_of_pool.get(pool)
        if home is None or (home and home != node):
            # Seen from several nodes: any change in it concerns all of them.
            home = node if home is None else ""
            self._log.put(self._home_of_pool, pool, home)
        if not home and not self.has_floating_devices:
            self._log.note(self._had_no_floating_devices)
            self.has_floating_devices = True
        return home

    def _had_no_floating_devices(self) -> None:
        self.has_floating_devices = False

    def _observe_known(self, claim: ResourceClaim) -> None:
        known = self.known_claim(claim)
        if known is not None:
            self._observe(known)
        else:
            self._free(holder_of(claim))

    def _observe(self, claim: ResourceClaim) -> None:
        holder, allocation = holder_of(claim), claim.status.allocation
        if allocation is None:
            self._free(holder)
            return
        held = self._holding.get(holder)
        if held is not None:
            if held == allocation.devices.results:
                return  # the echo of our own write, most of the time
            self._free(holder)
        elif self._is_made_by_us(claim, allocation):
            return
        self.hold(holder, allocation)

    def _is_made_by_us(self, claim: ResourceClaim, allocation: AllocationResult) -> bool:
        """Whether the server shows a claim that we are creating. That takes and frees nothing, so no pod is woken."""
        if not self._provisional:
            return False
        key = (claim.metadata.namespace, claim.metadata.name)
        holder = self._provisional.get(key, "")
        if self._holding.get(holder) != allocation.devices.results:
            return False
        self._log.pop(self._provisional, key)
        self._hand_over(holder, claim)
        return True

    def _hand_over(self, holder: str, claim: ResourceClaim) -> None:
        held = self._log.pop(self._holding, holder)
        if held is not None:
            self.ledger.forget(holder)
            self._log.put(self._holding, holder_of(claim), held)
            self.ledger.observe_claim(claim)

    def _note_holding(self, holder: str, results: _Results) -> None:
        self._log.put(self._holding, holder, results)
        self._mixes.claim_changed()
        for pool in _pools_of(results):
            node = self._home_of_pool.get(pool, "")
            if node:
                self.marks.node(node)
            else:
                self.marks.take_floating()

    def _free(self, holder: str) -> None:
        if self.release(holder) is not None:
            self._wake(Wake.DEVICES)


def _pools_of(results: _Results) -> Iterable[tuple[str, str]]:
    """The pools that an allocation takes from, each once."""
    if len(results) == 1:  # nearly always
        return ((results[0].driver, results[0].pool),)
    return {(result.driver, result.pool): None for result in results}


def _version(claim: ResourceClaim) -> int:
    return int(claim.metadata.resource_version or 0)
