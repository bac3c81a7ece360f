"""spec/dra.md 6.1 to 6.4: extended resources that devices serve."""

from __future__ import annotations

from typing import Any

from controllers.world import FINALIZER, POD_VALUES
from drayman.api.core import Pod
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import (
    CLASS_VALUES,
    DRIVER,
    EXTENDED,
    NODE_VALUES,
    Stage,
    device,
    devices_of,
    users_of,
    wants,
)

GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"
ONE = {GPU: "1"}


async def _served(stage: Stage, *devices: str) -> None:
    """A node with devices that serve the resource."""
    await stage.device_class(extendedResourceName=GPU)
    await stage.node("node-a", *(devices or ("gpu-0",)))


def _container(name: str, requests: dict[str, str], **fields: Any) -> dict[str, Any]:
    limits = {key: value for key, value in requests.items() if "/" in key}
    resources = {"requests": requests, "limits": limits}
    return {"name": name, "image": "example.com/image:1", "resources": resources, **fields}


def _mappings(pod: Pod | None) -> list[tuple[str, str, str]]:
    assert pod is not None
    status = pod.status.extended_resource_claim_status
    assert status is not None
    return [(m.container_name, m.resource_name, m.request_name) for m in status.request_mappings]


class TestNames:
    """6.1: which class stands behind a resource."""

    async def test_the_name_that_a_class_declares(self, cluster: Cluster) -> None:
        """`extendedResourceName` of a class makes its devices available under that name."""
        async with cluster() as stage:
            await _served(stage)
            await stage.start_pod("p", requests=ONE)
            assert await stage.bound("p") == "node-a"
            assert devices_of(await stage.extended_claim_of("p")) == ["gpu-0"]

    async def test_the_name_that_every_class_has(self, cluster: Cluster) -> None:
        """A class needs no declaration for the name that is made from its own."""
        async with cluster() as stage:
            await stage.device_class("gpu")
            await stage.node("node-a", "gpu-0")
            await stage.start_pod("p", requests={IMPLICIT: "1"})
            assert await stage.bound("p") == "node-a"
            assert devices_of(await stage.extended_claim_of("p")) == ["gpu-0"]

    async def test_a_clash_and_its_end(self, cluster: Cluster) -> None:
        """Of two classes with one name one owns it: the newer, else the first by name. When it goes, the other takes over."""
        async with cluster() as stage:
            selects = 'device.attributes["gpu.example.com"].kind == "{}"'
            for name in ("b", "a"):  # the newer one wins too, should the second turn between them
                await stage.device_class(name, selects.format(name), extendedResourceName=GPU)
            made = [device(f"gpu-{k}", attributes={"kind": {"string": k}}) for k in ("a", "b")]
            await stage.node("node-a", *made)
            await stage.start_pod("first", requests=ONE)
            assert devices_of(await stage.extended_claim_of("first")) == ["gpu-a"]
            await stage.delete(CLASS_VALUES, "a")
            await stage.start_pod("second", requests=ONE)
            assert devices_of(await stage.extended_claim_of("second")) == ["gpu-b"]

    async def test_the_loser_keeps_its_own_name(self, cluster: Cluster) -> None:
        """A class that does not own the common name still serves the one made from its own."""
        async with cluster() as stage:
            await stage.device_class("fpga", 'device.driver == "none"', extendedResourceName=GPU)
            await stage.device_class("gpu", extendedResourceName=GPU)
            await stage.node("node-a", "gpu-0")
            await stage.start_pod("p", requests={IMPLICIT: "1"})
            assert await stage.bound("p") == "node-a"

    async def test_a_resource_without_class(self, cluster: Cluster) -> None:
        """Nobody serves it: the pod waits until a class does."""
        async with cluster() as stage:
            await stage.device_class()
            await stage.node("node-a", "gpu-0")
            await stage.start_pod("p", requests=ONE)
            await stage.refused("p", f"Insufficient {GPU}")
            await stage.patch(CLASS_VALUES, "gpu", {"spec": {"extendedResourceName": GPU}})
            assert await stage.bound("p") == "node-a"


class TestClaim:
    """6.2 and 6.4: the claim that the scheduler makes."""

    async def test_its_form(self, cluster: Cluster) -> None:
        """Named after the pod, owned by it, marked, protected, allocated and reserved."""
        async with cluster() as stage:
            await _served(stage)
            pod = await stage.start_pod("p", requests=ONE)
            claim = await stage.extended_claim_of("p")
            assert claim.metadata.name.startswith("p-extended-resources-")
            assert len(claim.metadata.name) == len("p-extended-resources-") + 5
            assert claim.metadata.annotations == {EXTENDED: "true"}
            assert claim.metadata.finalizers == (FINALIZER,)
            (owner,) = claim.metadata.owner_references
            assert (owner.api_version, owner.kind, owner.name) == ("v1", "Pod", "p")
            assert (owner.uid, owner.controller) == (pod.metadata.uid, True)
            assert users_of(claim) == ["p"]
            assert claim.status.allocation is not None
            assert claim.status.allocation.allocation_timestamp

    async def test_a_long_name_is_cut(self, cluster: Cluster) -> None:
        """The base is cut so that the name with its five random letters has 63."""
        async with cluster() as stage:
            await _served(stage)
            name = "p" * 60
            await stage.start_pod(name, requests=ONE)
            claim = await stage.extended_claim_of(name)
            assert len(claim.metadata.name) == 63
            assert claim.metadata.name.startswith("p" * 58)

    async def test_no_claim_for_nothing(self, cluster: Cluster) -> None:
        """A pod that asks for none of the resource needs no claim."""
        async with cluster() as stage:
            await _served(stage)
            await stage.start_pod("p", requests={GPU: "0"})
            await stage.bound("p")
            assert not await stage.claims()

    async def test_it_is_given_back_with_the_pod(self, cluster: Cluster) -> None:
        """After the pod is done the claim is gone and its device serves the next."""
        async with cluster() as stage:
            await _served(stage)
            await stage.start_pod("p", requests=ONE)
            claim = await stage.extended_claim_of("p")
            await stage.start_pod("q", requests=ONE)
            await stage.refused("q", "in use")
            await stage.finish("p")
            await stage.until_gone(claim.metadata.name)
            assert await stage.bound("q") == "node-a"

    async def test_a_pod_that_is_refused_leaves_no_claim(self, cluster: Cluster) -> None:
        """The claim is made with the binding, not before."""
        async with cluster() as stage:
            await _served(stage)
            await stage.start_pod("p", requests={GPU: "2"})
            await stage.refused("p", "CountTooHigh (never)", "wants 2 devices")
            assert not await stage.claims()

    async def test_beside_claims_of_the_pod(self, cluster: Cluster) -> None:
        """Own claims and the one for extended resources are allocated together, from different devices."""
        async with cluster() as stage:
            await _served(stage, "gpu-0", "gpu-1")
            await stage.make_claim("c")
            await stage.start_pod("p", "c", requests=ONE)
            made = await stage.extended_claim_of("p")
            own = await stage.allocated("c")
            assert sorted(devices_of(made) + devices_of(own)) == ["gpu-0", "gpu-1"]

    async def test_devices_are_not_given_twice(self, cluster: Cluster) -> None:
        """What a claim holds is not there for extended resources, and the other way round."""
        async with cluster() as stage:
            await _served(stage)
            await stage.start_pod("p", requests=ONE)
            await stage.bound("p")
            await stage.make_claim("c")
            await stage.start_pod("q", "c")
            await stage.refused("q", "in use")


class TestNodes:
    """6.3: who serves the resource on a node."""

    async def test_a_device_plugin_serves_it_itself(self, cluster: Cluster) -> None:
        """Where the kubelet offers the resource, no claim is made and the node's amount counts."""
        async with cluster() as stage:
            await stage.device_class(extendedResourceName=GPU)
            await stage.node("node-a", allocatable={GPU: "1"})
            await stage.start_pod("p", requests=ONE)
            assert await stage.bound("p") == "node-a"
            assert not await stage.claims()
            await stage.start_pod("q", requests=ONE)
            await stage.refused("q", f"Insufficient {GPU}")

    async def test_a_node_is_one_or_the_other(self, cluster: Cluster) -> None:
        """Devices do not make up for what a device plugin has too little of."""
        async with cluster() as stage:
            await stage.device_class(extendedResourceName=GPU)
            await stage.node("node-a", "gpu-0", "gpu-1", allocatable={GPU: "1"})
            await stage.start_pod("p", requests={GPU: "2"})
            await stage.refused("p", f"Insufficient {GPU}")

    async def test_nothing_offered_is_not_offered(self, cluster: Cluster) -> None:
        """A kubelet that offers none of the resource leaves it to devices."""
        async with cluster() as stage:
            await stage.device_class(extendedResourceName=GPU)
            await stage.node("node-a", "gpu-0", allocatable={GPU: "0"})
            await stage.start_pod("p", requests=ONE)
            assert await stage.bound("p") == "node-a"
            assert devices_of(await stage.extended_claim_of("p")) == ["gpu-0"]

    async def test_a_node_that_stops_offering(self, cluster: Cluster) -> None:
        """When its device plugin goes, devices take over for pods that wait."""
        async with cluster() as stage:
            await stage.device_class(extendedResourceName=GPU)
            await stage.node("node-a", "gpu-0", "gpu-1", allocatable={GPU: "1"})
            await stage.start_pod("p", requests={GPU: "2"})
            await stage.refused("p", f"Insufficient {GPU}")
            await stage.patch(
                NODE_VALUES, "node-a", {"status": {"allocatable": {GPU: "0"}}}, "status"
            )
            assert await stage.bound("p") == "node-a"


class TestRequests:
    """6.3: the requests of the claim and which container they serve."""

    async def test_one_request_for_each_container(self, cluster: Cluster) -> None:
        """Named by the place of the container and that of the resource among all it asks for."""
        async with cluster() as stage:
            await _served(stage, "gpu-0", "gpu-1", "gpu-2")
            containers = [_container("a", ONE), _container("b", {"cpu": "1", GPU: "2"})]
            await stage.start_pod("p", containers=containers)
            claim = await stage.extended_claim_of("p")
            asked = {r.name: r.exactly.count for r in claim.spec.devices.requests if r.exactly}
            assert asked == {"container-0-request-0": 1, "container-1-request-1": 2}
            assert _mappings(await stage.get_pod("p")) == [
                ("a", GPU, "container-0-request-0"),
                ("b", GPU, "container-1-request-1"),
            ]

    async def test_init_containers_borrow(self, cluster: Cluster) -> None:
        """An init container uses the devices of the containers after it, and asks only for what is missing."""
        async with cluster() as stage:
            await _served(stage, "gpu-0", "gpu-1")
            init = [_container("i", {GPU: "2"})]
            await stage.start_pod("p", containers=[_container("main", ONE)], initContainers=init)
            claim = await stage.extended_claim_of("p")
            asked = {r.name: r.exactly.count for r in claim.spec.devices.requests if r.exactly}
            assert asked == {"container-0-request-0": 1, "container-1-request-0": 1}
            assert sorted(_mappings(await stage.get_pod("p"))) == [
                ("i", GPU, "container-0-request-0"),
                ("i", GPU, "container-1-request-0"),
                ("main", GPU, "container-1-request-0"),
            ]

    async def test_requests_are_sorted_as_text(self, cluster: Cluster) -> None:
        """The tenth container comes before the second."""
        async with cluster() as stage:
            await _served(stage, *(f"gpu-{n}" for n in range(11)))
            await stage.start_pod("p", containers=[_container(f"c{n}", ONE) for n in range(11)])
            names = [r.name for r in (await stage.extended_claim_of("p")).spec.devices.requests]
            assert names == sorted(names)

    async def test_more_than_a_claim_can_have(self, cluster: Cluster) -> None:
        """More than 32 devices cannot be had this way, however many there are."""
        async with cluster() as stage:
            await _served(stage, *(f"gpu-{n}" for n in range(40)))
            await stage.start_pod("p", requests={GPU: "33"})
            await stage.refused("p", "33")

    async def test_a_fraction_is_no_device(self, cluster: Cluster) -> None:
        """Half a device, which only the implicit name allows, is none."""
        async with cluster() as stage:
            await stage.device_class("gpu")
            await stage.node("node-a", "gpu-0")
            await stage.start_pod("p", requests={IMPLICIT: "500m"})
            await stage.bound("p")
            assert not await stage.claims()


async def test_taints_keep_extended_resources_away(cluster: Cluster) -> None:
    """6.3: the claim tolerates nothing, so a tainted device is none."""
    async with cluster() as stage:
        await _served(stage)
        await stage.rule("rule", "NoSchedule", driver=DRIVER)
        await stage.start_pod("p", requests=ONE)
        await stage.refused("p", "DevicesTainted (held)", "tainted")


async def test_a_pod_that_goes_takes_its_claim_along(cluster: Cluster) -> None:
    """6.4: removed at once or later, a pod leaves no claim behind."""
    async with cluster() as stage:
        await _served(stage)
        await stage.start_pod("p", requests=ONE)
        await stage.bound("p")
        await stage.remove(POD_VALUES, "p")
        await stage.until_claims(lambda claims: not claims)
        await stage.make_claim("c", wants())
        await stage.start_pod("q", "c")
        assert await stage.bound("q") == "node-a"
