"""Prices where no Configuration is known: as the status of workloads has them.

Which mappings a control loop charges devices by is not always to be read: its Configuration may be a file that only the loop sees. What a
workload asked for when it was last tried, or holds, is in its status, with the price of its devices. That is used for workloads that
could not be priced otherwise, and for others whose pods are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.custom_groups import spec_of
from drayman.api.errors import ApiError
from drayman.api.kueue import PodTemplate, pod_template_of, status_of
from drayman.api.kueue_workload import Workload, WorkloadSpec, WorkloadStatus
from drayman.api.quantity import Quantity
from drayman.placement.fit.requests import requests_of
from drayman.quota.amounts import amount_of
from drayman.quota.demands import Charged, PodSetRequest, Pricing, Unpriced

_Key = tuple[str, str, bytes]


class ToldPrices:
    """Prices as another pricing has them, or else as workloads say."""

    def __init__(self, otherwise: Pricing, workloads: Iterable[Workload]) -> None:
        self._otherwise = otherwise
        self._told: dict[_Key, Charged] = {}
        for workload in workloads:
            try:
                self._told.update(_told_by(workload))
            except ApiError:
                continue  # whoever tells the engine of it says so

    def price_workload(
        self,
        namespace: str,
        pod_sets: Sequence[PodSetRequest],
        *,
        workload: str = "",
        flavor: Mapping[str, str] | None = None,
    ) -> Mapping[str, Charged] | Unpriced:
        """What one pod of each set costs. All of them are told, or none."""
        found = self._otherwise.price_workload(
            namespace, pod_sets, workload=workload, flavor=flavor
        )
        if not isinstance(found, Unpriced):
            return found
        told: dict[str, Charged] = {}
        for each in pod_sets:
            price = self._told.get(_key(namespace, each.name, each.template))
            if price is None:
                return found
            told[each.name] = price
        return told


def _key(namespace: str, pod_set: str, template: PodTemplate) -> _Key:
    return namespace, pod_set, codec.encode(template.spec)


def _told_by(workload: Workload) -> Iterator[tuple[_Key, Charged]]:
    """What the status of a workload says of one pod of each set. Raises DecodeError."""
    spec, status = spec_of(WorkloadSpec, workload), status_of(WorkloadStatus, workload)
    totals: dict[str, tuple[Mapping[str, Quantity], int | None]] = {
        each.name: (each.resources, None) for each in status.resource_requests
    }
    if status.admission is not None:
        for assigned in status.admission.pod_set_assignments:
            totals[assigned.name] = (assigned.resource_usage, assigned.count)
    for pod_set in spec.pod_sets:
        if pod_set.name not in totals:
            continue
        resources, count = totals[pod_set.name]
        pods = max(1, pod_set.count if count is None else count)
        template = pod_template_of(pod_set.template)
        own = requests_of(Pod(spec=template.spec)).amounts
        charges = {
            name: -(-amount_of(name, total) // pods)
            for name, total in resources.items()
            if name not in own
        }
        replaced = frozenset(name for name in own if name not in resources)
        yield _key(workload.metadata.namespace, pod_set.name, template), Charged(charges, replaced)
