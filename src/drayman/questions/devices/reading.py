"""A cluster's devices at one moment, read with the user's permissions: what `top` and `map` are about.

Nodes and slices must be readable: without them there is nothing to show. Claims say what is held. Where those of other namespaces may not
be listed, devices that the user's own claims do not hold may be free or used, and are shown as unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from drayman.api.core import Node, Pod
from drayman.api.errors import SelectorError
from drayman.api.quantity import Quantity
from drayman.api.resource import Device, DeviceTaintRule, ResourceClaim, ResourceSlice
from drayman.api.resource import DeviceRequestAllocationResult as Result
from drayman.cluster import Client, HttpClient
from drayman.cluster.errors import ForbiddenError, NotFoundError
from drayman.cluster.resources import (
    DEVICE_TAINT_RULES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from drayman.driver_configs.memory_limits import limits_of, reserved_pods
from drayman.inventory import DeviceId
from drayman.placement.occupancy import DeviceStanding, Occupancy, occupancy
from drayman.questions.devices.queue_names import QueueObjects, queue_names, read_queue_objects
from drayman.questions.errors import MayNotListError, QuestionError, RefusedList, no_such_node
from drayman.questions.reading import IN_PAGES, denied, raise_refused

if TYPE_CHECKING:
    from drayman.placement.world import World

T = TypeVar("T")

UNSEEN_HOLDER = "(hidden from you)"


@dataclass(frozen=True, slots=True)
class Share:
    """A claim that holds a device, or a share of it."""

    claim: ResourceClaim
    consumed: Mapping[str, Quantity]

    @property
    def pods(self) -> tuple[str, ...]:
        """The consumers the claim is reserved for, by name: pods, or objects that stand for several pods."""
        return consumers(self.claim)

    @property
    def holder(self) -> str:
        """The holder, as shown to people: the pods, or the claim if no pod uses it."""
        namespace = self.claim.metadata.namespace
        if not self.pods:
            return f"{namespace}/{self.claim.metadata.name} (claim)"
        first, *others = self.pods
        return f"{namespace}/{first}" + (f" +{len(others)}" if others else "")


@dataclass(frozen=True, slots=True)
class Reading:
    """A cluster's devices at one moment."""

    nodes: tuple[Node, ...]
    claims: tuple[ResourceClaim, ...]
    occupancy: Occupancy
    shares: Mapping[DeviceId, tuple[Share, ...]]
    remarks: tuple[str, ...]
    """What could not be read, and what that means for the answer."""
    pods: tuple[Pod, ...] = ()
    """Where they were asked for."""
    queues: Mapping[str, str] = field(default_factory=dict)
    """Where they were asked for: the queue in which each user of a claim has its devices, by its uid (`queue_names`)."""

    def holders(self, device: DeviceId) -> tuple[str, ...]:
        """The holders of the device or of shares of it, each named once."""
        return tuple(dict.fromkeys(share.holder for share in self.shares.get(device, ())))


async def read(
    client: Client,
    namespace: str | None = None,
    *,
    needs_claims: bool = False,
    with_pods: bool = False,
    with_queues: bool = False,
) -> Reading:
    """The cluster as it is now. `namespace` is where to look for claims and pods if they may not be listed everywhere.

    Raises QuestionError and ClusterError.
    """
    lists = (
        asyncio.create_task(_needed(client, NODES)),
        asyncio.create_task(_needed(client, RESOURCE_SLICES)),
        asyncio.create_task(_rules(client)),
        asyncio.create_task(_claims(client, namespace, needed=needs_claims)),
        asyncio.create_task(_pods(client, namespace) if with_pods else _no_pods()),
    )
    await asyncio.gather(*lists, return_exceptions=True)
    await raise_refused(client, (task.exception() for task in lists))
    nodes, slices, (rules, untainted), (claims, unseen), (pods, unmade) = (
        lists[0].result(),
        lists[1].result(),
        lists[2].result(),
        lists[3].result(),
        lists[4].result(),
    )
    objects, unqueued = await read_queue_objects(client) if with_queues else (QueueObjects(), ())
    remarks = (*unseen, *untainted, *unmade, *unqueued)
    found = reading_of(
        nodes, slices, claims, rules, all_claims=not unseen, remarks=remarks, pods=pods
    )
    return replace(found, queues=queue_names(objects, pods, claims))


def reading_of(
    nodes: Iterable[Node],
    slices: Iterable[ResourceSlice],
    claims: Iterable[ResourceClaim],
    rules: Iterable[DeviceTaintRule] = (),
    *,
    all_claims: bool = True,
    remarks: tuple[str, ...] = (),
    pods: Iterable[Pod] = (),
) -> Reading:
    """The reading of these objects. Raises QuestionError."""
    nodes, claims = tuple(nodes), tuple(claims)
    try:
        counted = occupancy(nodes, slices, claims, rules, all_claims=all_claims)
    except SelectorError as error:
        text = f"a ResourceSlice selects nodes in a way that cannot be read: {error}"
        raise QuestionError(text) from error
    return Reading(nodes, claims, counted, _shares(claims), remarks, tuple(pods))


def reading_of_world(world: World) -> Reading:
    """The reading of a cluster that was saved, or read for another question. Raises QuestionError."""
    objects = world.objects
    remarks = (f"not seen: {', '.join(world.unseen)}",) if world.unseen else ()
    sees_claims = not any(each.startswith(RESOURCE_CLAIMS.qualified) for each in world.unseen)
    found = reading_of(
        objects.nodes,
        objects.slices,
        objects.claims,
        objects.taint_rules,
        all_claims=sees_claims,
        remarks=remarks,
        pods=objects.pods,
    )
    queued = QueueObjects(
        objects.queued_workloads, objects.kai_queues, objects.kai_pod_groups, objects.jobs
    )
    return replace(found, queues=queue_names(queued, objects.pods, objects.claims))


def node_of(reading: Reading, name: str) -> Node:
    """The node of that name. Raises NoSuchObjectError."""
    nodes = {node.metadata.name: node for node in reading.nodes}
    if name not in nodes:
        raise no_such_node(name, nodes)
    return nodes[name]


def refuse_unknown_node(reading: Reading, name: str | None) -> None:
    """Raises NoSuchObjectError for a node that neither exists nor is named by a pool."""
    known = {node.metadata.name for node in reading.nodes}
    known.update(node for pool in reading.occupancy.pools for node in pool.nodes)
    if name is not None and name not in known:
        raise no_such_node(name, known)


def consumers(claim: ResourceClaim) -> tuple[str, ...]:
    """The consumers a claim is reserved for: pods by name, others with their kind as a prefix."""
    return tuple(
        consumer.name if consumer.resource == "pods" else f"{consumer.resource}/{consumer.name}"
        for consumer in claim.status.reserved_for
    )


async def _needed(client: Client, resource: Resource[T]) -> tuple[T, ...]:
    try:
        return (await client.list_all(resource, options=IN_PAGES)).items
    except ForbiddenError as error:
        raise denied(resource, None, error) from error


async def _rules(client: Client) -> tuple[tuple[DeviceTaintRule, ...], tuple[str, ...]]:
    try:
        return (await client.list_all(DEVICE_TAINT_RULES)).items, ()
    except NotFoundError:  # not served before 1.36, and then there are none
        return (), ()
    except ForbiddenError:
        remark = "you may not list devicetaintrules: devices that they taint are not shown as tainted"  # fmt: skip
        return (), (remark,)


async def _claims(
    client: Client, namespace: str | None, *, needed: bool
) -> tuple[tuple[ResourceClaim, ...], tuple[str, ...]]:
    try:
        return (await client.list_all(RESOURCE_CLAIMS, options=IN_PAGES)).items, ()
    except ForbiddenError:
        own = namespace or (client.default_namespace if isinstance(client, HttpClient) else "default")  # fmt: skip
    try:
        found = (await client.list_all(RESOURCE_CLAIMS, own, options=IN_PAGES)).items
    except ForbiddenError as error:
        if needed:
            refused = RefusedList(RESOURCE_CLAIMS.qualified, own, str(error))
            raise MayNotListError((refused,), any_namespace=True) from error
        remark = "you may not list resourceclaims: who has which device is not shown, and no device is known to be free"
        return (), (remark,)
    remark = f"you may list resourceclaims in namespace {own} only: devices that it does not have are shown as unknown"
    return found, (remark,)


async def _pods(client: Client, namespace: str | None) -> tuple[tuple[Pod, ...], tuple[str, ...]]:
    own = namespace or (client.default_namespace if isinstance(client, HttpClient) else "default")
    for scope in (None, own):
        try:
            found = (await client.list_all(PODS, scope, options=IN_PAGES)).items
        except ForbiddenError:
            continue
        if scope is None:
            return found, ()
        remark = (
            f"you may list pods in namespace {own} only: what made those of others is not shown"
        )
        return found, (remark,)
    return (), ("you may not list pods: what made them is not shown",)


async def _no_pods() -> tuple[tuple[Pod, ...], tuple[str, ...]]:
    return (), ()


def allocated(claims: Iterable[ResourceClaim]) -> Iterator[tuple[DeviceId, ResourceClaim, Result]]:
    """Every device that is allocated, the claim that has it, and the entry of the claim that says so."""
    for claim in claims:
        for result in claim.status.results:
            yield DeviceId.of(result), claim, result


def memory_limits(share: Share, standing: DeviceStanding) -> tuple[str, ...]:
    """How much of a device's memory the programs of a claim may use, in words."""
    record = standing.record

    def find(result: Result) -> Device | None:
        return record.device if DeviceId.of(result) == record.id else None

    found = limits_of(share.claim, find, reserved_pods)
    return tuple(
        f"limit {each.amount}" + (f" x {each.programs}" if each.programs > 1 else "")
        for each in found
    )


def _shares(claims: tuple[ResourceClaim, ...]) -> dict[DeviceId, tuple[Share, ...]]:
    """The holders of each device. Admin access takes nothing."""
    found: dict[DeviceId, tuple[Share, ...]] = {}
    for device, claim, result in allocated(claims):
        if not result.admin_access:
            share = Share(claim, result.consumed_capacity)
            found[device] = (*found.get(device, ()), share)
    return found
