"""What a pod or a claim was given and has since lost: its node, or devices.

Objects can be out of date for a long time. A pod stays bound to a node that does not answer, and a claim keeps devices that are no longer
published. Such a pod does not run and such a claim is useless, whatever the status says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from drayman.api.core import Node, Pod
from drayman.api.resource import DeviceTaint, ResourceClaim
from drayman.api.times import timestamp
from drayman.inventory.identity import DeviceId
from drayman.inventory.taints import eviction_time, selects
from drayman.placement.claims import ClaimsNotReadyError, claims_of, only_node_of
from drayman.placement.fit.readiness import Closed, closed_by
from drayman.placement.lost_claims import lost_claims_of
from drayman.placement.world import World
from drayman.reasons.naming import taint_title
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.wording import and_list, counted

LOST: Final = (Reason.NODE_GONE, Reason.NODE_NOT_READY, Reason.DEVICES_GONE)
"""Reasons for which a pod that has a node must be replaced by another pod."""
IN_TROUBLE: Final = (*LOST, Reason.DEVICES_TAINTED)
"""What is wrong with a pod that has a node and does not run there for long."""
_PENDING: Final = "Pending"


def lost_by_pod(world: World, pod: Pod) -> Headline | None:
    """Why a pod that has a node cannot be said to run there."""
    on = f"The pod is on node {pod.spec.node_name}"
    trouble = node_trouble(world, pod.spec.node_name, on) or _passed_over(world, pod)
    return trouble or _device_trouble(
        world, world.state.claims_used_by(pod), on, "the pod is evicted"
    )


def kept_from_lost_claims(pod: Pod) -> Iterator[str]:
    """A sentence for each claim that was taken from a pod, which still uses its devices."""
    for lost in lost_claims_of(pod):
        devices = and_list([str(DeviceId.of(result)) for result in lost.results])
        yield f"Its claim {lost.name} was {lost.how}, but it keeps {devices} until it has ended."


def _passed_over(world: World, pod: Pod) -> Headline | None:
    """For a pod that names its node: no scheduler has allocated its claims, and without devices it does not start."""
    if pod.status.phase != _PENDING:
        return None
    try:
        return without_devices(pod, claims_of(pod, world.state.find_claim))
    except ClaimsNotReadyError:
        return None


def without_devices(pod: Pod, claims: Sequence[ResourceClaim]) -> Headline | None:
    """For a pod that names its node: which of its claims have no devices, and get none."""
    bare = [each.metadata.name for each in claims if each.status.allocation is None]
    if not bare:
        return None
    verb = "have" if len(bare) > 1 else "has"
    noun = "claims" if len(bare) > 1 else "claim"
    return unallocated(pod, f"{noun} {and_list(bare)} {verb} none")


def unallocated(pod: Pod, lack: str) -> Headline:
    """Why a pod that names its node itself does not start."""
    node = pod.spec.node_name
    text = f"The pod names node {node} itself, so no scheduler looks for devices: {lack}."
    return Headline.of(Reason.CLAIM_UNALLOCATED, text)


def lost_by_claim(world: World, claim: ResourceClaim) -> Headline | None:
    """Why a claim that has devices is useless."""
    allocation = claim.status.allocation
    node = None if allocation is None else only_node_of(allocation.node_selector)
    trouble = node_trouble(world, node, f"The claim has its devices on node {node}")
    return trouble or _device_trouble(
        world, (claim,), "The claim has its devices", "the pods that use it are evicted"
    )


def node_state(world: World, name: str) -> str:
    """What is wrong with a node, as in `node x, which ...`; empty if nothing is known to be."""
    node = world.state.nodes.get(name)
    if node is None:
        return "does not exist"
    return f"is not ready{_said(node.node)}" if Closed.NOT_READY in closed_by(node.node) else ""


def node_trouble(world: World, name: str | None, subject: str) -> Headline | None:
    """What is wrong with the node that a subject is on, or is to be on."""
    state = node_state(world, name) if name else ""
    if not name or not state:
        return None
    reason = Reason.NODE_NOT_READY if name in world.state.nodes else Reason.NODE_GONE
    return Headline.of(reason, f"{subject}, which {state}.")


def _said(node: Node) -> str:
    """The message of a Ready condition that is not True, from the node or a controller."""
    for condition in node.status.conditions:
        if condition.type_ == "Ready" and condition.status != "True" and condition.message:
            return f": {condition.message.rstrip('.')}"
    return ""


def _device_trouble(
    world: World, claims: Sequence[ResourceClaim], subject: str, consequence: str
) -> Headline | None:
    for claim in claims:
        gone = [str(device) for device in _unpublished(world, claim)]
        if gone:
            what = f"{counted(len(gone), 'device')} of claim {claim.metadata.name}"
            verb = "is" if len(gone) == 1 else "are"
            text = f"{subject}, but {what} {verb} not published any more: {and_list(gone)}."
            return Headline.of(Reason.DEVICES_GONE, text)
    evicting = [found for claim in claims for found in _evicting(world, claim)]
    if not evicting:
        return None
    when, device, taint, name = min(evicting, key=lambda found: found[0])
    tolerance = f"claim {name} does not tolerate; {consequence}"
    if when.timestamp() > world.now:
        tolerance = f"claim {name} tolerates until {timestamp(when)}; then {consequence}"
    title = taint_title(taint.key, taint.value, taint.effect)
    text = f"{subject}, but {device} is tainted {title}, which {tolerance}."
    return Headline.of(Reason.DEVICES_TAINTED, text)


def _unpublished(world: World, claim: ResourceClaim) -> list[DeviceId]:
    """The devices of a claim that are not in the newest generation of their pool."""
    found = dict.fromkeys(map(DeviceId.of, claim.status.results))
    return [device for device in found if world.published(device) is None]


def absent_drivers(world: World, pod: Pod) -> dict[str, str]:
    """The drivers of a pod's devices that have nothing on its node any more, each with a claim that has its devices.

    A node deletes the slices of a driver that has been away for a while.
    """
    node = pod.spec.node_name
    there = {item.spec.driver for item in world.objects.slices if item.spec.node_name == node}
    return {
        device.driver: claim.metadata.name
        for claim in world.state.claims_used_by(pod)
        for device in _unpublished(world, claim)
        if device.driver not in there
    }


def _evicting(
    world: World, claim: ResourceClaim
) -> Iterator[tuple[datetime, DeviceId, DeviceTaint, str]]:
    """The taints that evict the users of a claim: from when on, on which device, and the name of the claim."""
    if not world.features.device_taints:
        return
    for result in claim.status.results:
        device = DeviceId.of(result)
        rules = (rule for rule in world.objects.taint_rules if selects(rule, *device))
        published = world.published(device)
        own = () if published is None else published[1].taints
        for taint in (*(rule.spec.taint for rule in rules), *own):
            when = eviction_time(taint, result.tolerations)
            if when is not None:
                yield when, device, taint, claim.metadata.name
