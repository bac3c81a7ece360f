"""What claims cost that pods name, rather than get for themselves: once, however many pods of the workload share them.

Within a workload the first pod set that names a claim is charged for it; among workloads the engine knows who pays (`quota/claims`). A
claim that has its devices costs what these cost; otherwise it costs what its requests may come to.
"""

from __future__ import annotations

from drayman.api.resource import ResourceClaim
from drayman.inventory.identity import DeviceId
from drayman.placement.state import ClusterState
from drayman.quota.amounts import Amounts, plus
from drayman.quota.charging.allocated import allocated_amounts
from drayman.quota.charging.asked import Bill, Origin
from drayman.quota.charging.fleet import Fleet
from drayman.quota.charging.mappings import DeviceClassMappings
from drayman.quota.charging.outcome import Code, Dependencies, Item, refuse
from drayman.quota.charging.requests import ClaimPricing
from drayman.quota.charging.sharing import share_of
from drayman.quota.claims.prices import ClaimPrice, ObjectKey


class SharedClaims:
    """The claims that the pods of one workload name."""

    def __init__(
        self,
        state: ClusterState,
        mappings: DeviceClassMappings,
        pricing: ClaimPricing,
        bill: Bill,
        fleet: Fleet,
    ) -> None:
        self._state = state
        self._mappings = mappings
        self._pricing = pricing
        self._bill = bill
        self._fleet = fleet
        self._seen: set[ObjectKey] = set()
        self.prices: list[ClaimPrice] = []
        """What each costs all of its users, until somebody clears the list."""

    def add(self, key: ObjectKey, path: str, *, runs_elsewhere: bool = False) -> None:
        """Put a claim on the bill, unless it is there already. Raises RefusedError."""
        self._bill.depends_on |= Dependencies(claims=frozenset((key,)))
        if key in self._seen:
            return
        self._seen.add(key)
        claim = self._state.find_claim(*key)
        if claim is None:
            text = f"there is no ResourceClaim {key[1]} in namespace {key[0]}"
            raise refuse(Code.CLAIM_MISSING, f"{path}.resourceClaimName", text, retryable=True)
        self._check_devices(claim, path)
        items = self._items(claim, runs_elsewhere=runs_elsewhere)
        total: Amounts = {}
        for item in items:
            if item.resource:
                total = plus(total, {item.resource: item.amount})
        share = share_of(claim.spec, self._state.inventory.classes)
        self.prices.append(ClaimPrice(key, total, share))
        self._bill.items += items

    def _items(self, claim: ResourceClaim, *, runs_elsewhere: bool) -> list[Item]:
        """What the claim costs all of its users."""
        name, bill = claim.metadata.name, self._bill
        if claim.status.allocation is not None and self._is_mapped(claim):
            drivers = frozenset(result.driver for result in claim.status.results)
            bill.depends_on |= Dependencies(drivers=drivers)
            amounts = allocated_amounts([claim], self._state, self._mappings)
            if amounts is not None:
                devices = len(claim.status.results)
                return [
                    Item(
                        source=f"claim {name}",
                        request="",
                        device_class="",
                        resource=resource,
                        devices=devices,
                        amount=amount,
                        why="what its devices cost",
                        is_shared=True,
                    )
                    for resource, amount in amounts.items()
                ]
        before, bill.items = bill.items, []
        path = f"resourceclaim/{name} spec"
        origin = Origin(f"claim {name}", path, is_shared=True, runs_elsewhere=runs_elsewhere)
        self._pricing.add(claim.spec, origin)
        found, bill.items = bill.items, before
        return found

    def _check_devices(self, claim: ResourceClaim, path: str) -> None:
        """Raise RefusedError if the claim has devices that no node of the flavor can use."""
        elsewhere = [
            result
            for result in claim.status.results
            if self._fleet.is_elsewhere(DeviceId.of(result))
        ]
        if elsewhere:
            drivers = frozenset(result.driver for result in elsewhere)
            self._bill.depends_on |= Dependencies(drivers=drivers)
            text = f"the claim has {DeviceId.of(elsewhere[0])}, which no node here can use"
            raise refuse(Code.DEVICE_SHORTAGE, f"{path}.resourceClaimName", text, retryable=True)

    def _is_mapped(self, claim: ResourceClaim) -> bool:
        """Whether all devices of the claim are charged under some name. If not, its requests say which are not."""
        return all(
            self._mappings.of_class(spec.device_class_name)
            for request in claim.spec.devices.requests
            for _, spec in request.alternatives()
        )
