"""Making nodes known: Node objects, their leases, their slices, and what their drivers install once per cluster.

What is there already is kept, so that a restart changes nothing: a device that was tainted or removed stays so. Only the status of a node
is written again, because its node answers again. Slices of an earlier node of the same name are not kept: they are garbage that has not
been collected yet, and would be gone a moment later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from drayman.api.codec import to_dict
from drayman.api.core import Node
from drayman.api.meta import OwnerReference
from drayman.api.resource import DeviceClass, ResourceSlice
from drayman.api.struct import Json
from drayman.api.times import timestamp
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import strategic_merge_patch
from drayman.cluster.resources import (
    DEVICE_CLASSES,
    LEASES,
    NODES,
    RESOURCE_SLICES,
    generic,
)
from drayman.cluster.together import Bundle, write_together
from drayman.cluster.writes import DeleteWrite, PatchWrite
from drayman.node.reporting import SIMULATED, VERSION, lease_of
from drayman.node.simulated.model import SimulatedNode, is_failed
from drayman.node.simulated.pod_status import node_address
from drayman.node.simulated.publication import WRITE_OPTIONS, Publication, Report

DEFINITIONS: Final = generic(
    "apiextensions.k8s.io/v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
_NODE_VALUES: Final = NODES.as_values()


async def register(
    client: Client,
    nodes: Sequence[SimulatedNode],
    classes: Sequence[DeviceClass],
    definitions: Sequence[dict[str, Json]],
    report: Report | None = None,
) -> Mapping[str, str]:
    """Register everything that is not yet known. Returns the version of what was written last, by resource. Raises ClusterError."""
    known = {node.metadata.name: node for node in (await client.list_all(NODES)).items}
    published = await _clear_up(client, known)
    slices = _unpublished(nodes, published)
    silent = {name for name, node in known.items() if is_failed(node)}
    written = sum(2 - (each.node.metadata.name in silent) for each in nodes)
    count = len(definitions) + len(classes) + written + len(slices)
    publication = Publication(count, report)
    changes = [publication.create(DEFINITIONS, dict(item)) for item in definitions]
    changes += [publication.create(DEVICE_CLASSES, item) for item in classes]
    now = datetime.now(UTC)
    for each in nodes:
        name = each.node.metadata.name
        if name not in known:
            changes.append(publication.create(_NODE_VALUES, _node_value(each.node, now)))
        elif name not in silent:
            changes.append(publication.patch(ready_write(name, timestamp(now))))
        changes.append(publication.create(LEASES, lease_of(name, now)))
    await write_together(client, changes)
    # Slices are owned by their nodes, whose uids are known once they are there.
    uids = {n.metadata.name: n.metadata.uid for n in (await client.list_all(NODES)).items}
    owned = (_owned(item, name, uids) for name, item in slices)
    await write_together(client, [publication.create(RESOURCE_SLICES, item) for item in owned])
    return publication.versions


async def is_defined(client: Client, name: str) -> bool:
    """Whether a kind is there, from these nodes' drivers or from elsewhere."""
    try:
        await client.get(DEFINITIONS, name)
    except NotFoundError:
        return False
    return True


async def _clear_up(client: Client, known: Mapping[str, Node]) -> set[tuple[str, str]]:
    """Remove slices whose node is gone; returns the drivers and pools that still have slices."""
    uids = {node.metadata.uid for node in known.values()}
    slices = (await client.list_all(RESOURCE_SLICES)).items
    garbage = [item for item in slices if _is_of_gone_node(item, uids)]
    removals = [
        DeleteWrite(
            RESOURCE_SLICES, item.metadata.name, options=DeleteOptions(uid=item.metadata.uid)
        )
        for item in garbage
    ]
    await write_together(client, [Bundle((removal,), _unless_gone) for removal in removals])
    gone = {item.metadata.uid for item in garbage}
    return {
        (item.spec.driver, item.spec.pool.name) for item in slices if item.metadata.uid not in gone
    }


def _is_of_gone_node(item: ResourceSlice, uids: Set[str]) -> bool:
    return any(
        owner.kind == "Node" and owner.uid not in uids for owner in item.metadata.owner_references
    )


def _unless_gone(error: ClusterError) -> None:
    if not isinstance(error, NotFoundError | ConflictError):
        raise error


def _unpublished(
    nodes: Sequence[SimulatedNode], published: Set[tuple[str, str]]
) -> list[tuple[str, ResourceSlice]]:
    """The slices of pools that have none yet, with the names of their nodes."""
    return [
        (each.node.metadata.name, item)
        for each in nodes
        for item in each.slices
        if (item.spec.driver, item.spec.pool.name) not in published
    ]


def _owned(item: ResourceSlice, node_name: str, uids: dict[str, str]) -> ResourceSlice:
    owner = OwnerReference(
        api_version="v1", kind="Node", name=node_name, uid=uids[node_name], controller=True
    )
    return replace(item, metadata=replace(item.metadata, owner_references=(owner,)))


def _node_value(node: Node, now: datetime) -> dict[str, Json]:
    value = to_dict(node)
    meta = value["metadata"]
    meta["labels"] = {**meta.get("labels", {}), SIMULATED: "true"}
    value["status"] = {**value["status"], **ready_status(node.metadata.name, timestamp(now))}
    value["status"]["addresses"] = [
        {"type": "InternalIP", "address": node_address(node.metadata.name)},
        {"type": "Hostname", "address": node.metadata.name},
    ]
    labels = node.metadata.labels
    value["status"]["nodeInfo"] = {
        "architecture": labels.get("kubernetes.io/arch", "amd64"),
        "operatingSystem": "linux",
        "osImage": "Drayman simulated node",
        "kernelVersion": "6.8.0",
        "kubeletVersion": VERSION,
        "kubeProxyVersion": VERSION,
        "containerRuntimeVersion": "simulated://1",
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
    }
    return value


def ready_write(name: str, now: str) -> PatchWrite[Node]:
    """Says that a node is ready."""
    patch = strategic_merge_patch({"status": ready_status(name, now)})
    return PatchWrite(NODES, name, patch, None, "status", WRITE_OPTIONS)


def ready_status(name: str, now: str) -> dict[str, Json]:
    conditions = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ]
    return {
        "conditions": [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": f"simulated node {name}",
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for kind, status, reason in conditions
        ]
    }
