"""Interfaces for pods on a node whose pods share its network: what the node will refuse is told before the pod is there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.explain.overview import explain_all
from drayman.explain.pod import explain_pod
from drayman.node.agent.launching import edits_for
from drayman.node.agent.machine import Machine
from drayman.placement.world import Objects, World
from drayman.plugins.errors import CdiError
from drayman.reasons.reason import Reason
from drayman.simulate.copying import Wanted
from drayman.simulate.expanding import Workload
from drayman.simulate.planning import plan
from explain.scenarios.scene import Scene
from oracle.build import claim, device, exactly
from oracle.nodes import JsonObject

ETH1 = device("net1", attrs={"dra.net/ifName": "eth1"})
RDMA = device("rdma0", attrs={"dra.net/rdmaDevice": "mlx5_0"})
REFUSED = (
    "node node-a: network interface eth1 cannot be moved: containers of this node share its network"
)
RUNTIMES = {
    "of Drayman": ("drayman://1", (REFUSED,)),
    "simulated": ("simulated://1", ()),
    "of a kubelet": ("containerd://2.1", ()),
}


def scene(runtime: str = "drayman://1", interface: JsonObject = ETH1) -> Scene:
    """A node with one device of `dra.net`."""
    made = Scene().device_class("net", "device.driver == 'dra.net'")
    made.node("node-a", [interface], driver="dra.net")
    made.objects["nodes"][0]["status"]["nodeInfo"] = {"containerRuntimeVersion": runtime}
    return made


def wants(**request: object) -> JsonObject:
    return claim(exactly("net", cls="net", **request))


def planned_and_explained(world: World) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a plan and an explanation say about the only pod, which waits and fits."""
    (pod,) = world.objects.pods
    found = explain_pod(world, pod)
    assert found.headline.reason is Reason.FITS
    before = world.with_objects(replace(world.objects, pods=()))
    report = plan(before, Wanted((Workload(pod),), Objects()))
    assert report.fits
    return report.pods[0].refused_devices, found.refused_devices


@pytest.mark.parametrize("kind", RUNTIMES)
def test_only_nodes_of_drayman_share_their_network(kind: str) -> None:
    """Plan and explanation say the same."""
    runtime, said = RUNTIMES[kind]
    world = scene(runtime).waits("p", {"c": wants()}).world()
    assert planned_and_explained(world) == (said, said)


def test_the_status_that_the_agent_writes_is_known(tmp_path: Path) -> None:
    """The node that is told about is one that an agent has registered."""
    status = Machine.here(tmp_path).status(0, "2027-01-15T08:00:00Z")
    assert status["nodeInfo"]["containerRuntimeVersion"] == "drayman://1"
    read = convert(Node, {"metadata": {"name": "n"}, "status": status})
    assert read.status.node_info.container_runtime_version == "drayman://1"


def test_who_may_only_look_leaves_the_interface_where_it_is() -> None:
    """With admin access nothing is moved."""
    admin = {
        "kubernetes.io/metadata.name": "default",
        "resource.kubernetes.io/admin-access": "true",
    }
    made = scene().add("namespaces", {"metadata": {"name": "default", "labels": admin}})
    world = made.waits("p", {"c": wants(adminAccess=True)}).world()
    assert planned_and_explained(world) == ((), ())


def test_a_device_without_an_interface_is_given_to_containers() -> None:
    """Files of RDMA devices need no network of their own."""
    world = scene(interface=RDMA).waits("p", {"c": wants()}).world()
    assert planned_and_explained(world) == ((), ())


def test_a_pod_that_has_such_an_interface_says_what_keeps_it() -> None:
    """Its status has nothing but that a container is being created."""
    made = scene()
    made.holds("p", "node-a", "net1", driver="dra.net", cls="net")
    made.objects["pods"][0]["status"] = {"phase": "Pending"}
    world = made.world()
    found = explain_pod(world, world.objects.pods[0])
    assert found.headline.reason is Reason.NOT_STARTED
    assert found.refused_devices == (REFUSED,)
    (listed,) = explain_all(world).parts
    assert listed.refused_devices == (REFUSED,)


def test_the_node_refuses_it_in_the_same_words(tmp_path: Path) -> None:
    """What is told beforehand is what the event of the pod will say."""
    moved = {"netDevices": [{"hostInterfaceName": "eth1", "name": "eth1"}]}
    spec = {
        "cdiVersion": "1.1.0",
        "kind": "dra.net/claim",
        "devices": [{"name": "net1", "containerEdits": moved}],
    }
    (tmp_path / "claim.json").write_text(json.dumps(spec))
    with pytest.raises(CdiError) as error:
        edits_for(["dra.net/claim=net1"], [tmp_path])
    assert f"node node-a: {error.value}" == REFUSED
