"""What holds the things a pod needs: by claim and pod, with priority, and since when. Pods of one workload are listed together.

Only what was read is reported. A holder whose claim the user may not see is named as such, and nothing more is said about it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import priority_of
from drayman.api.resource import ResourceClaim
from drayman.explain.answer import Holder
from drayman.explain.survey import Site, Survey
from drayman.inventory.identity import DeviceId
from drayman.inventory.ledger import Held, holder_of
from drayman.inventory.view import NodeView
from drayman.placement.claims import resource_of
from drayman.placement.state import ClusterState
from drayman.placement.world import World
from drayman.reasons.causes import FitTest
from drayman.workloads.makers import maker_of

MOST_HOLDERS: Final = 20
"""Named in one explanation; the others are only counted."""
_NONE: Final[Mapping[str, str]] = {}
_USED_BY_PODS: Final = (FitTest.RESOURCES, FitTest.PORTS)


class Holders:
    """The holders in a cluster, looked up when they are asked for."""

    def __init__(self, world: World, workloads: Mapping[str, str] = _NONE) -> None:
        """`workloads` are those, by namespace and name, for which devices are reserved, by their names in the ledger."""
        self._world = world
        self._workloads = workloads

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
        """The holders of a device or of shares of it, under the names of the ledger."""
        found = self._state.ledger.holders_of(device)
        return found if len(found) < 2 else tuple(dict.fromkeys(found))

    def held_in(self, pool: tuple[str, str]) -> Mapping[DeviceId, Held]:
        """The devices of a pool that are held, with the holdings."""
        return self._state.ledger.held_in(pool)

    def title(self, holder: str) -> str:
        """A short title for a holder: the workload, or the claim and the pods that use it; with the namespace."""
        claim = self._claims.get(holder)
        if claim is None:
            workload = self._workloads.get(holder)
            if workload is not None:
                return f"{workload} (Workload, for which it is reserved)"
            return self._bereft_title(holder) or "an unknown holder"
        kind, _, name = self._whose(claim).partition("/")
        if name:
            return f"{claim.metadata.namespace}/{name} ({kind})"
        pods = [consumer.name for consumer in claim.status.reserved_for]
        by = f" ({', '.join(pods[:2])}{', ...' if len(pods) > 2 else ''})" if pods else ""
        return f"{claim.metadata.namespace}/{claim.metadata.name}{by}"

    def describe(self, holder: str, devices: Iterable[DeviceId]) -> Holder:
        """Everything known about a holder of these devices."""
        names = tuple(str(device) for device in devices)
        claim = self._claims.get(holder)
        if claim is None:
            if holder in self._workloads:
                namespace, _, name = self._workloads[holder].partition("/")
                return Holder(devices=names, namespace=namespace, workload=f"Workload/{name}")
            return self._bereft(holder, names) or Holder(devices=names, namespace="", visible=False)
        consumers = claim.status.reserved_for
        pods = [self._pods[c.uid] for c in consumers if c.uid in self._pods]
        allocation = claim.status.allocation
        return Holder(
            devices=names,
            namespace=claim.metadata.namespace,
            claim=claim.metadata.name,
            pods=tuple(c.name for c in consumers if resource_of(c) == "pods"),
            workload=self._whose(claim),
            priority=max((priority_of(pod) for pod in pods), default=None),
            since=(allocation.allocation_timestamp or "" if allocation else "") or _start(pods),
        )

    def _bereft(self, holder: str, devices: tuple[str, ...]) -> Holder | None:
        """Pods whose claim was taken from them."""
        users = self._state.lost_claim(holder)
        if users is None:
            return None
        pods = [self._pods[uid] for uid in sorted(users.pods) if uid in self._pods]
        return Holder(
            devices=devices,
            namespace=users.claim.namespace,
            claim=users.claim.name,
            pods=tuple(pod.metadata.name for pod in pods),
            priority=max((priority_of(pod) for pod in pods), default=None),
            since=_start(pods),
            lost=users.claim.how,
        )

    def _bereft_title(self, holder: str) -> str:
        found = self._bereft(holder, ())
        if found is None:
            return ""
        pods = ", ".join(f"{found.namespace}/{name}" for name in found.pods)
        return f"{pods}, whose claim {found.claim} was {found.lost}"

    def group(self, holder: str) -> Hashable:
        """Equal for holders that belong to one workload."""
        if holder in self._workloads:
            return self._workloads[holder]
        claim = self._claims.get(holder)
        whose = "" if claim is None else self._whose(claim)
        return (claim.metadata.namespace, whose) if claim is not None and whose else holder

    def _whose(self, claim: ResourceClaim) -> str:
        """The workload that uses a claim, as kind/name; empty if its pods have no owner."""
        consumers = claim.status.reserved_for
        group = next((c.name for c in consumers if resource_of(c) == "podgroups"), "")
        pods = (self._pods[c.uid] for c in consumers if c.uid in self._pods)
        return f"PodGroup/{group}" if group else _workload(pods)

    def on_node(self, site: Site) -> list[Holder]:
        """The pods of a node, the least important first: they hold its processors, memory and ports."""
        found = []
        for uid, needs in site.node.usage.pods.items():
            pod = self._pods.get(uid)
            pods = [] if pod is None else [pod]
            found.append(
                Holder(
                    devices=(),
                    namespace=needs.namespace,
                    pods=(needs.name,),
                    workload=_workload(pods),
                    priority=None if pod is None else priority_of(pod),
                    since=_start(pods),
                )
            )
        return sorted(found, key=lambda holder: (holder.priority or 0, holder.namespace))


def holders(survey: Survey, nearest: Site | None, known: Holders) -> tuple[tuple[Holder, ...], int]:
    """The holders of what the pod needs, on the nearest node first; and how many more there are than are named.

    Nodes that could not serve the pod even if they were empty do not count. Where the nearest node is short of processors, memory or ports,
    the pods there hold them.
    """
    unfit = None if nearest is None else nearest.unfit
    if nearest is not None and unfit is not None and unfit.test in _USED_BY_PODS:
        found = joined(known.on_node(nearest))
        return tuple(found[:MOST_HOLDERS]), max(len(found) - MOST_HOLDERS, 0)
    named: dict[Hashable, dict[str, dict[DeviceId, None]]] = {}
    others: set[Hashable] = set()
    groups: dict[str, Hashable] = {}
    for holder, device in _holdings(_nearest_first(survey, nearest), known):
        group = groups.get(holder)
        if group is None:
            group = groups[holder] = known.group(holder)
        if group in named or len(named) < MOST_HOLDERS:
            named.setdefault(group, {}).setdefault(holder, {})[device] = None
        else:
            others.add(group)
    found = [known.describe(name, held) for each in named.values() for name, held in each.items()]
    return tuple(joined(found)), len(others)


def _holdings(sites: Iterable[Site], known: Holders) -> Iterator[tuple[str, DeviceId]]:
    """The holders of the devices that the pod would take there, or of their counters."""
    pool: tuple[str, str] | None = None
    for site in sites:
        records = site.view.hardware.records
        for position in site.outlook.needed_at:
            device = records[position].id
            if device[:2] != pool:  # rare: devices of a node are usually in one pool
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
    """The holders that used up the counters a device draws from, and through which device."""
    sets = {index for index, _ in view.hardware.consumed_by(device)}
    if not sets:
        return
    for other in known.held_in(device.pool_id):
        if any(index in sets for index, _ in view.hardware.consumed_by(other)):
            yield from ((holder, other) for holder in known.of_device(other))


def _workload(pods: Iterable[Pod]) -> str:
    """The owner of these pods, as kind/name; empty if they have none."""
    return next((str(maker) for pod in pods if (maker := maker_of(pod)) is not None), "")


def joined(found: Iterable[Holder]) -> list[Holder]:
    """One holder for each workload, in the place of its first."""
    groups: dict[Hashable, list[Holder]] = {}
    for number, holder in enumerate(found):
        key = (holder.namespace, holder.workload) if holder.workload else number
        groups.setdefault(key, []).append(holder)
    return [_together(members) for members in groups.values()]


def _together(members: list[Holder]) -> Holder:
    if len(members) == 1:
        return members[0]
    priorities = [each.priority for each in members if each.priority is not None]
    return Holder(
        devices=tuple(dict.fromkeys(device for each in members for device in each.devices)),
        namespace=members[0].namespace,
        pods=tuple(dict.fromkeys(pod for each in members for pod in each.pods)),
        workload=members[0].workload,
        count=len(members),
        priority=max(priorities, default=None),
        since=min((each.since for each in members if each.since), default=""),
    )


def _start(pods: Iterable[Pod]) -> str:
    return min((pod.status.start_time or "" for pod in pods if pod.status.start_time), default="")
