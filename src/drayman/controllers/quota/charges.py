"""Has Workloads say what they are charged, when that is not what was reserved.

Two things change a charge. Devices that were allocated may cost less than those that were reserved (`quota/charging/truing`), and whoever
pays for a claim that several Workloads use may have ended (`quota/claim_charges`). The engine knows the second by itself and charges it at
once; of the first it is told by the object. What is written is `status.admission`, with the annotation of claims in the same transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.kueue_workload import Admission, WorkloadStatus
from drayman.api.resource import ResourceClaim
from drayman.cluster.informer import Notice
from drayman.cluster.resources import PODS
from drayman.controllers.quota.admitting import Admitting
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.loop import Key
from drayman.controllers.quota.shared import Shared
from drayman.controllers.quota.view import DELETED
from drayman.quota.amounts import Amounts, plus, quantity_of
from drayman.quota.charging.allocated import true_up
from drayman.quota.charging.truing import Truing
from drayman.quota.claims.records import CLAIMS, text_of
from drayman.quota.claims.users import ClaimUse
from drayman.quota.demands import PodSetDemand, Unpriced
from drayman.quota.entries import Entry, Holding
from drayman.quota.fitting.belonging import (
    handles_of,
    handles_of_pod,
    may_belong,
    pod_set_of,
    pods_of,
)
from drayman.quota.settings import IGNORE_UNDECLARED
from drayman.workloads.queued import life

_HANDLES: Final = "quota:workloads"
_GATHER_S: Final = 0.2
"""Pods of a workload get their nodes one after the other."""


class _Charge(Struct, frozen=True):
    """What a Workload should say."""

    status: WorkloadStatus
    uses: tuple[ClaimUse, ...]
    released: Amounts
    """What devices cost less than was reserved."""


class Charges:
    """Compares what Workloads say with what they are charged, and with what was allocated."""

    def __init__(self, shared: Shared, admitting: Admitting, look: Callable[[Key], None]) -> None:
        """`look` has a Workload be looked at."""
        self._shared = shared
        self._admitting = admitting
        self._look = look
        self._pods = shared.informers.informer(PODS, indexers={_HANDLES: _handles}).cache
        self._due: set[Key] = set()
        admitting.view.listen(self._changed)

    async def attend(self, known: Known) -> bool:
        """Write what a Workload is charged, if it says something else. Whether it did."""
        charge = self._charge(known)
        if charge is None:
            return False
        text = text_of(charge.uses)
        if charge.status == known.status and text == _noted(known):
            return False
        written = await self._shared.book.write_noted(known, charge.status, {CLAIMS: text})
        self._report(known, written, charge)
        self._admitting.look_at([known.key])
        return True

    # What is charged.

    def _charge(self, known: Known) -> _Charge | None:
        """What a Workload should say; None as long as that is not known, or nothing about devices."""
        status, entry = known.status, self._admitting.state.entries.get("/".join(known.key))
        if entry is None or not self._admitting.is_complete or life.is_evicted(status):
            return None
        holding, demands = entry.holding, entry.facts.demands
        if holding is None or entry.assumed or holding.admission != status.admission:
            return None  # The engine is told of it in a moment, and this is asked again.
        if isinstance(demands, Unpriced):
            demands = ()
        if not holding.claims and not any(demand.devices for demand in demands):
            return None
        excess = self._lower_claims(entry, holding)
        found = self._admitting.state.claims.as_charged(entry)
        assert found is not None
        return self._trued(known, found, demands, excess)

    def _trued(
        self,
        known: Known,
        charged: tuple[Admission, tuple[ClaimUse, ...]],
        demands: tuple[PodSetDemand, ...],
        excess: Amounts,
    ) -> _Charge:
        """With what the devices of its pods turned out to cost. `excess` is what claims cost more than is charged."""
        admission, uses = charged
        paid: dict[str, Amounts] = {}
        for use in uses:
            paid[use.pod_set] = plus(paid.get(use.pod_set, {}), use.paid)
        names = [each.name for each in admission.pod_set_assignments]
        found = self._truing().of_workload(admission, demands, self._pods_of(known, names), paid)
        status = replace(known.status, admission=found.admission)
        excess = plus(found.excess, excess)
        if excess or found.is_known or uses:
            text = _sums(excess)
            status = life.drifted(status, text, self._shared.clock(), known.generation)
        return _Charge(status, uses, found.released)

    def _lower_claims(self, entry: Entry, holding: Holding) -> Amounts:
        """Have the engine know what claims cost that have their devices. What they cost more than is charged, if this is who pays."""
        claims, excess = self._admitting.state.claims, dict[str, int]()
        for use in holding.claims:
            found = self._admitting.view.state.find_claim(*use.claim)
            cost = None if found is None else self._truing().of_claim(found)
            if cost is None:
                continue
            if true_up(claims.users.price(use.claim).amounts, cost).released:
                claims.lower(use.claim, cost)
                self._admitting.charges_changed()
            if claims.users.payer(use.claim) == entry.key:
                excess = plus(excess, true_up(claims.users.price(use.claim).amounts, cost).excess)
        return excess

    def _truing(self) -> Truing:
        strategy = self._shared.configuration.quota.resources.quota_check_strategy
        return Truing(
            self._admitting.view.state,
            self._admitting.devices.mappings,
            ignores_undeclared=strategy == IGNORE_UNDECLARED,
        )

    def _pods_of(self, known: Known, names: list[str]) -> Mapping[str, list[Pod]]:
        """The pods of a Workload, by their set."""
        found = pods_of(
            handles_of(known.workload), lambda handle: self._pods.by_index(_HANDLES, handle)
        )
        sets: dict[str, list[Pod]] = {}
        for pod in found.values():
            sets.setdefault(pod_set_of(pod, names), []).append(pod)
        return sets

    # Whom a change concerns.

    def _changed(self, type_: type, notice: Notice[Any]) -> None:
        if notice.type == DELETED:
            return
        if type_ is Pod:
            if notice.object.spec.node_name and _claims_of(notice.object) != _claims_of(notice.old):
                self._look_at_owners(notice.object)
        elif type_ is ResourceClaim:
            old = None if notice.old is None else notice.old.status.allocation
            if notice.object.status.allocation not in (None, old):
                self._look_at_users(notice.object)

    def _look_at_users(self, claim: ResourceClaim) -> None:
        namespace = claim.metadata.namespace
        for user in self._admitting.state.claims.users.users((namespace, claim.metadata.name)):
            self._look_soon((namespace, user.partition("/")[2]))
        for consumer in claim.status.reserved_for:
            pod = self._pods.get(consumer.name, namespace)
            if pod is not None:
                self._look_at_owners(pod)

    def _look_at_owners(self, pod: Pod) -> None:
        for handle in _handles(pod):
            namespace, found, name = handle.partition("/")
            if found:
                self._look_soon((namespace, name))
            for known in self._shared.book.of_owner(handle):
                self._look_soon(known.key)

    def _look_soon(self, key: Key) -> None:
        if key not in self._due:
            self._due.add(key)
            asyncio.get_running_loop().call_later(_GATHER_S, self._look_now, key)

    def _look_now(self, key: Key) -> None:
        self._due.discard(key)
        self._look(key)

    def _report(self, before: Known, after: Known, charge: _Charge) -> None:
        book, released = self._shared.book, charge.released
        if released:
            note = f"Devices cost less than was reserved for them: {_sums(released)} given back"
            book.record(after, "Normal", "QuotaGivenBack", note)
        elif after.status.admission != before.status.admission:
            paid: Amounts = {}
            for use in charge.uses:
                paid = plus(paid, use.paid)
            note = f"It pays {_sums(paid) or 'nothing'} from now on for claims that pods name"
            book.record(after, "Normal", "ClaimsCharged", note)
        if life.has_drifted(after.status) and not life.has_drifted(before.status):
            found = after.status.condition(life.DRIFT)
            book.record(after, "Warning", life.DRIFT, "" if found is None else found.message)


def _handles(pod: Pod) -> list[str]:
    return handles_of_pod(pod) if may_belong(pod) else []


def _claims_of(pod: Pod | None) -> object:
    """Where a pod is, and by which names its claims are known."""
    if pod is None:
        return None
    status = pod.status
    return (
        pod.spec.node_name,
        status.resource_claim_statuses,
        status.extended_resource_claim_status,
    )


def _noted(known: Known) -> str:
    return known.workload.metadata.annotations.get(CLAIMS, "")


def _sums(amounts: Amounts) -> str:
    return ", ".join(f"{name} {quantity_of(name, amounts[name])}" for name in sorted(amounts))
