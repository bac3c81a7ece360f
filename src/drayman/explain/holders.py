"""Who has what somebody else needs: by claim and pod, with priority, and since when.

Only what was read is told. A holder whose claim the asker may not see is named as such, and nothing more is said of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from drayman.api.core import Pod
from drayman.api.meta import ObjectMeta
from drayman.api.resource import ResourceClaim
from drayman.explain.answer import Holder
from drayman.explain.node_fit import FitTest
from drayman.explain.survey import Site, Survey
from drayman.inventory.identity import DeviceId
from drayman.inventory.ledger import Held, holder_of
from drayman.inventory.view import NodeView
from drayman.placement.claims import GROUP_API
from drayman.placement.state import ClusterState
from drayman.simulate.world import World

MOST_HOLDERS: Final = 20
"""Named in one explanation; how many more there are is told."""
_USED_BY_PODS: Final = (FitTest.RESOURCES, FitTest.PORTS)


class Holders:
    """The holders in a cluster, looked up when they are asked for."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def _state(self) -> ClusterState:
        return self._world.state

    @cached_property
    def _claims(self) -> dict[str, ResourceClaim]:
        return {holder_of(claim): claim for claim in self._world.objects.claims}

    @cached_property
    def _pods(self) -> dict[str, Pod]:
        return {pod.metadata.uid: pod for pod in self._world.objects.pods}

    def of_device(self, device: DeviceId) -> tuple[str, ...]:
        """Who holds a device or a share of it, under the names of the ledger."""
        found = self._state.ledger.holders_of(device)
        return found if len(found) < 2 else tuple(dict.fromkeys(found))

    def held_in(self, pool: tuple[str, str]) -> Mapping[DeviceId, Held]:
        """The devices of a pool that somebody has, with the holdings."""
        return self._state.ledger.held_in(pool)

    def title(self, holder: str) -> str:
        """A holder in few words: the claim with its namespace, and the pods that use it."""
        claim = self._claims.get(holder)
        if claim is None:
            return "somebody unknown"
        pods = [consumer.name for consumer in claim.status.reserved_for]
        by = f" ({', '.join(pods[:2])}{', ...' if len(pods) > 2 else ''})" if pods else ""
        return f"{claim.metadata.namespace}/{claim.metadata.name}{by}"

    def describe(self, holder: str, devices: Iterable[DeviceId]) -> Holder:
        """All that is known of a holder of these devices."""
        names = tuple(str(device) for device in devices)
        claim = self._claims.get(holder)
        if claim is None:
            return Holder(devices=names, namespace="", visible=False)
        consumers = claim.status.reserved_for
        pods = [self._pods[c.uid] for c in consumers if c.uid in self._pods]
        allocation = claim.status.allocation
        group = next((c.name for c in consumers if c.api_group == GROUP_API), "")
        return Holder(
            devices=names,
            namespace=claim.metadata.namespace,
            claim=claim.metadata.name,
            pods=tuple(c.name for c in consumers if c.resource == "pods"),
            workload=f"PodGroup/{group}" if group else _first_workload(pods),
            priority=max((pod.spec.priority or 0 for pod in pods), default=None),
            since=(allocation.allocation_timestamp or "" if allocation else "") or _start(pods),
        )

    def on_node(self, site: Site) -> list[Holder]:
        """The pods of a node, the least important first: they have its processors, memory and ports."""
        found = []
        for uid, needs in site.node.usage.pods.items():
            pod = self._pods.get(uid)
            pods = [] if pod is None else [pod]
            found.append(
                Holder(
                    devices=(),
                    namespace=needs.namespace,
                    pods=(needs.name,),
                    workload=_first_workload(pods),
                    priority=None if pod is None else pod.spec.priority or 0,
                    since=_start(pods),
                )
            )
        return sorted(found, key=lambda holder: (holder.priority or 0, holder.namespace))


def holders(survey: Survey, nearest: Site | None, known: Holders) -> tuple[tuple[Holder, ...], int]:
    """Who has what the pod needs, on the nearest node first; and how many more there are than are named.

    Nodes that could not serve the pod even if they were empty do not count. Where the nearest node is short of processors, memory
    or ports, it is the pods there that have them.
    """
    unfit = None if nearest is None else nearest.unfit
    if nearest is not None and unfit is not None and unfit.test in _USED_BY_PODS:
        found = known.on_node(nearest)
        return tuple(found[:MOST_HOLDERS]), max(len(found) - MOST_HOLDERS, 0)
    named: dict[str, dict[DeviceId, None]] = {}
    others: set[str] = set()
    for holder, device in _holdings(_nearest_first(survey, nearest), known):
        devices = named.get(holder)
        if devices is not None:
            devices[device] = None
        elif len(named) < MOST_HOLDERS:
            named[holder] = {device: None}
        else:
            others.add(holder)
    return tuple(known.describe(holder, held) for holder, held in named.items()), len(others)


def _holdings(sites: Iterable[Site], known: Holders) -> Iterator[tuple[str, DeviceId]]:
    """Who has which of the devices that the pod would take there, or of their counters."""
    pool: tuple[str, str] | None = None
    for site in sites:
        records = site.view.hardware.records
        for position in site.outlook.needed_at:
            device = records[position].id
            if device[:2] != pool:  # seldom: devices of a node are mostly of one pool
                pool = device[:2]
                in_pool = known.held_in(pool)
            holders = in_pool.get(device)
            if holders:
                for holder, _ in holders:
                    yield holder, device
            else:
                yield from on_its_counters(site.view, device, known)


def _nearest_first(survey: Survey, nearest: Site | None) -> Iterator[Site]:
    if nearest is not None:
        yield nearest
    for outlook in survey.outlooks:
        if outlook.needed and outlook.could_serve:
            yield from (site for site in outlook.fitting if site is not nearest)


def on_its_counters(
    view: NodeView, device: DeviceId, known: Holders
) -> Iterator[tuple[str, DeviceId]]:
    """Who has used up the counters that a device takes from, and by which device."""
    sets = {index for index, _ in view.hardware.consumed_by(device)}
    if not sets:
        return
    for other in known.held_in(device.pool_id):
        if any(index in sets for index, _ in view.hardware.consumed_by(other)):
            yield from ((holder, other) for holder in known.of_device(other))


def _first_workload(pods: Iterable[Pod]) -> str:
    return next((title for pod in pods if (title := workload_of(pod.metadata))), "")


def workload_of(metadata: ObjectMeta) -> str:
    """Who made a pod, as kind/name; empty if nobody did."""
    for owner in metadata.owner_references:
        if owner.controller:
            return f"{owner.kind}/{owner.name}"
    return ""


def _start(pods: Iterable[Pod]) -> str:
    return min((pod.status.start_time or "" for pod in pods if pod.status.start_time), default="")
