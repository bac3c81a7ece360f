"""What workloads cost in devices: the entry point.

    pricing = DevicePricing(state, read_mappings(configuration))
    price = pricing.price_workload("default", [PodSetRequest("main", 3, template)])

`state` is the cluster as placement knows it (`ClusterState`; `state_of` makes one of objects): its classes, slices, taint rules, nodes,
claims and claim templates are read, and nothing is written. A price is one `Charges` for each pod set, or one `PriceRefusal` for all of
them. What the engine of quota adds to the pod sets' own requests is `charges` for each pod, without the requests named in `replaced`, and
`once` for the set. `price_workload` answers the question of the engine (`quota.demands.Pricing`).

Prices are of this moment. `depends_on` says which objects they were made from, and `PriceDependents` (`waking`) whom a change of these
concerns. Mappings may be replaced at any time (`mappings`). The work that a price takes is limited; a caller with limits of its own
(`state.inventory.allowance`) gets an UnfinishedError. What was worked out is kept for the next attempt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

from msgspec.structs import replace

from drayman.api.core import Pod, PodResourceClaim
from drayman.api.kueue import PodTemplate
from drayman.api.resource import ResourceClaimSpec, ResourceClaimTemplate
from drayman.inventory.allowance import LONG, UnfinishedError
from drayman.placement.state import ClusterState
from drayman.quota.charging.asked import Bill, Origin, Terms
from drayman.quota.charging.extended import asked_names, device_claims
from drayman.quota.charging.fleet import Fleet
from drayman.quota.charging.mappings import DeviceClassMappings
from drayman.quota.charging.outcome import (
    ANY_DRIVER,
    Charges,
    Code,
    Dependencies,
    PriceRefusal,
    RefusedError,
    refuse,
)
from drayman.quota.charging.requests import ClaimPricing
from drayman.quota.charging.rules import Gates, Rules
from drayman.quota.charging.satisfying import may_be_satisfied
from drayman.quota.charging.shared_claims import SharedClaims
from drayman.quota.demands import PodSetRequest

MOST_WORK: Final = 2_000_000
"""Of one price, in the unit of `inventory.allowance`: about a second. Selectors that people write need a small part of that for all
devices of a large cluster, since devices that they cannot tell apart are looked at once."""


class DevicePricing:
    """Prices pod sets in a cluster."""

    def __init__(
        self,
        state: ClusterState,
        mappings: DeviceClassMappings,
        *,
        rules: Rules | None = None,
        gates: Gates | None = None,
        most_work: float = MOST_WORK,
    ) -> None:
        self.state = state
        self.mappings = mappings
        self.rules = rules or Rules()
        self.gates = gates or Gates()
        self._most_work = most_work

    def price(
        self, namespace: str, pod_set: str, template: PodTemplate, pods: int = 1
    ) -> Charges | PriceRefusal:
        """What one pod of a set costs and what the set costs once, looked at alone; `pods` is how many it has.

        Whoever has the whole workload asks `price_workload`, which sees that pod sets share claims and compete for devices.
        """
        found = self.price_workload(namespace, [PodSetRequest(pod_set, pods, template)])
        return found if isinstance(found, PriceRefusal) else found[pod_set]

    def price_workload(
        self,
        namespace: str,
        pod_sets: Sequence[PodSetRequest],
        *,
        workload: str = "",
        flavor: Mapping[str, str] | None = None,
    ) -> Mapping[str, Charges] | PriceRefusal:
        """What pod sets cost, by name.

        With the node labels of a `flavor`, prices are those of devices on its nodes. `workload` is not needed here.
        """
        return self._limited(namespace, pod_sets, flavor, ())

    def price_pod(
        self,
        pod: Pod,
        claims: Sequence[ResourceClaimSpec],
        flavor: Mapping[str, str] | None = None,
    ) -> Charges | PriceRefusal:
        """What the devices of a pod cost that has these claims for itself, regardless of its templates.

        Claims that the pod names are not in it. With the node labels of a `flavor`, prices are those of devices on its nodes.
        """
        template = PodTemplate(spec=replace(pod.spec, resource_claims=()))
        pods = PodSetRequest("pod", 1, template)
        found = self._limited(pod.metadata.namespace, [pods], flavor, claims)
        return found if isinstance(found, PriceRefusal) else found[pods.name]

    def _limited(
        self,
        namespace: str,
        pod_sets: Sequence[PodSetRequest],
        flavor: Mapping[str, str] | None,
        own: Sequence[ResourceClaimSpec],
    ) -> Mapping[str, Charges] | PriceRefusal:
        allowance = self.state.inventory.allowance
        if allowance.left != inf:  # the caller limits the work, and handles what is unfinished
            return self._price_all(namespace, pod_sets, flavor, Bill(), own)
        left, bill = self._most_work, Bill()
        while left > 0:
            with allowance.limited(left):
                bill = Bill()
                try:
                    return self._price_all(namespace, pod_sets, flavor, bill, own)
                except UnfinishedError as error:
                    left, rest = allowance.left - LONG, error.rest
            if rest is None:
                break
            rest()
        path = f"{_spec_path(pod_sets[0])}.resourceClaims"
        text = "the selectors take too long to decide about all devices of the cluster"
        refusal = PriceRefusal.at(Code.UNFINISHED, path, text, retryable=True)
        return replace(refusal, depends_on=bill.looked_at)

    def _price_all(
        self,
        namespace: str,
        pod_sets: Sequence[PodSetRequest],
        flavor: Mapping[str, str] | None,
        bill: Bill,
        own: Sequence[ResourceClaimSpec],
    ) -> Mapping[str, Charges] | PriceRefusal:
        """`own`: claims that the pods of each set have besides those that their templates name."""
        fleet = Fleet(self.state, flavor)
        classes = self.state.inventory.classes
        claims = ClaimPricing(Terms(fleet, classes, self.mappings, self.rules, bill))
        shared = SharedClaims(self.state, self.mappings, claims, bill, fleet)
        priced: dict[str, Charges] = {}
        try:
            for pod_set in pod_sets:
                bill.begin()
                claims.of_pod.clear()
                shared.prices.clear()
                path = f"{_spec_path(pod_set)}.resourceClaims"
                for spec in own:
                    claims.add(spec, Origin("its claim", path, pod_set.count))
                replaced = self._price_set(namespace, pod_set, claims, bill, shared)
                claims.settle()
                if not pod_set.runs_elsewhere:
                    self._check_constraints(claims, _spec_path(pod_set), flavor, bill)
                priced[pod_set.name] = Charges.of_items(
                    bill.items,
                    claims=tuple(shared.prices),
                    replaced=replaced,
                    admin_devices=bill.admin_devices,
                    measured=frozenset(bill.measured),
                    depends_on=bill.depends_on,
                    varies=self.rules.flavors and bool(bill.depends_on.drivers),
                )
        except RefusedError as error:
            return replace(error.refusal, depends_on=bill.looked_at)
        return priced

    def _price_set(
        self,
        namespace: str,
        pod_set: PodSetRequest,
        claims: ClaimPricing,
        bill: Bill,
        shared: SharedClaims,
    ) -> frozenset[str]:
        """Put a pod set on the bill. The requests of its pods that are charged as devices. Raises RefusedError."""
        spec = pod_set.template.spec
        path = _spec_path(pod_set)
        if not self.gates.devices:
            if spec.resource_claims and self.gates.refuses_when_off:
                text = "device quota is switched off (feature gate KueueDRAIntegration)"
                raise refuse(Code.UNSUPPORTED, f"{path}.resourceClaims", text)
            return frozenset()
        pods = pod_set.count if pod_set.min_count is None else pod_set.min_count
        for index, entry in enumerate(spec.resource_claims):
            place = f"{path}.resourceClaims[{index}]"
            if entry.resource_claim_name is not None:
                if not self.rules.claims:
                    text = "claims that pods name are not charged; use a ResourceClaimTemplate"
                    raise refuse(Code.UNSUPPORTED, f"{place}.resourceClaimName", text)
                key = (namespace, entry.resource_claim_name)
                shared.add(key, place, runs_elsewhere=pod_set.runs_elsewhere)
            else:
                template = self._template(namespace, entry, place, bill)
                name = template.metadata.name
                origin = Origin(
                    f"template {name}",
                    f"resourceclaimtemplate/{name} spec.spec",
                    pods,
                    runs_elsewhere=pod_set.runs_elsewhere,
                )
                claims.add(template.spec.spec, origin)
        if not self.gates.extended:
            return frozenset()
        return self._price_extended(pod_set, pods, path, claims, bill)

    def _template(
        self, namespace: str, entry: PodResourceClaim, path: str, bill: Bill
    ) -> ResourceClaimTemplate:
        """The template that pods name. Raises RefusedError."""
        name = entry.resource_claim_template_name or ""
        bill.depends_on |= Dependencies(templates=frozenset(((namespace, name),)))
        template = self.state.find_template(namespace, name)
        if template is None:
            text = f"there is no ResourceClaimTemplate {name} in namespace {namespace}"
            field = f"{path}.resourceClaimTemplateName"
            raise refuse(Code.TEMPLATE_MISSING, field, text, retryable=True)
        return template

    def _price_extended(
        self,
        pod_set: PodSetRequest,
        pods: int,
        path: str,
        claims: ClaimPricing,
        bill: Bill,
    ) -> frozenset[str]:
        spec = pod_set.template.spec
        names = asked_names(spec, self.rules)
        bill.depends_on |= Dependencies(names=names)
        replaced = set()
        for name, claim in device_claims(spec, names, self.state.extended, path):
            replaced.add(name)
            if claim is None:
                continue
            class_name = self.state.extended.class_of(name) or ""
            if not self.rules.extended_sources and any(
                mapping.sources for mapping in self.mappings.of_class(class_name)
            ):
                text = (
                    f"{name} stands for class {class_name}, whose devices are measured; use a claim"
                )
                raise refuse(Code.UNSUPPORTED, path, text)
            origin = Origin(
                f"resource {name}",
                path,
                pods,
                resource=name,
                runs_elsewhere=pod_set.runs_elsewhere,
            )
            claims.add(claim, origin)
        return frozenset(replaced)

    def _check_constraints(
        self, claims: ClaimPricing, path: str, flavor: Mapping[str, str] | None, bill: Bill
    ) -> None:
        """Raise RefusedError if no node could have what a pod's claims ask for together."""
        if self.rules.constraints and not may_be_satisfied(claims.of_pod, self.state, flavor):
            bill.depends_on |= Dependencies(drivers=frozenset((ANY_DRIVER,)))
            text = (
                "no node has devices that meet the constraints of the claims together, even unused"
            )
            raise refuse(Code.UNSATISFIABLE, f"{path}.resourceClaims", text, retryable=True)


def _spec_path(pod_set: PodSetRequest) -> str:
    return f"spec.podSets[{pod_set.name}].template.spec"
