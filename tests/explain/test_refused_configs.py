"""A configuration that its driver will refuse is told before the pod has its devices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drayman.api.codec import convert
from drayman.api.resource import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from drayman.driver_configs.advice import advice_about
from drayman.explain.overview import explain_all
from drayman.reasons.reason import Reason
from drayman.simulate.planning import plan
from explain.town import Town
from oracle.build import claim as asked
from oracle.build import exactly
from simulate.cluster import alone, asks, cluster, wanted
from simulate.cluster import claim as planned_claim

HEAD = {"apiVersion": "gpu.resource.example.com/v1alpha1", "kind": "GpuConfig"}
WRONG = {"driver": "gpu.example.com", "parameters": HEAD | {"sharing": {"strategy": "MPSS"}}}
RIGHT = {"driver": "gpu.example.com", "parameters": HEAD}
FOREIGN = {"driver": "gpu.acme.com", "parameters": {"anything": 1}}
REFUSED = (
    "driver gpu.example.com refuses spec.devices.config[0].opaque.parameters: "
    "sharing.strategy: 'MPSS' is none of TimeSlicing, SpacePartitioning"
)
CASES = {
    "refused": (WRONG, (f"claim c0: {REFUSED}",)),
    "accepted": (RIGHT, ()),
    "of a driver that is not known": (FOREIGN, ()),
}


@pytest.mark.parametrize("name", CASES)
def test_an_explanation_says_what_a_driver_will_refuse(name: str) -> None:
    """The pod fits all the same: Kubernetes does not look at configurations."""
    opaque, told = CASES[name]
    made = asked(exactly("r", 1), config=[{"opaque": opaque}])
    found = Town().node("node-a", 2).wants(made).explain()
    assert found.headline.reason is Reason.FITS
    assert found.refused_configs == told


def test_what_a_template_says_is_told_with_its_own_field() -> None:
    """As `drayman validate` names it."""
    devices = asks(1)["devices"] | {"config": [{"opaque": WRONG}]}
    metadata = {"name": "t", "namespace": "default", "uid": "t"}
    body = {"metadata": metadata, "spec": {"spec": {"devices": devices}}}
    made = convert(ResourceClaimTemplate, body)
    ((path, _),) = advice_about(made)
    (told,) = (
        plan(cluster({"a": 2}, templates=(made,)), wanted(alone("p", "t"))).pods[0].refused_configs
    )
    assert told.startswith(f"template t: driver gpu.example.com refuses {path}: ")
    assert path == "spec.spec.devices.config[0].opaque.parameters"


def test_what_a_class_says_counts_for_the_claims_that_name_it() -> None:
    """Its owner is another, so the class is named."""
    town = Town().node("node-a", 2).wants(asked(exactly("r", 1)))
    for each in town.classes:
        each["spec"] = {**each["spec"], "config": [{"opaque": WRONG}]}
    (told,) = town.explain().refused_configs
    assert told.startswith("class gpu: driver gpu.example.com refuses spec.config[0].opaque")


def test_an_overview_says_it_of_pods_that_have_their_devices() -> None:
    """The node only says that containers are being created. Of pods that wait for devices, their own explanation says it."""
    town = Town().node("node-a", 2).holds("stuck", "node-a", "d0")
    town.claims[-1]["spec"]["devices"]["config"] = [{"opaque": WRONG}]
    creating = {"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}
    town.pods[-1]["status"] = {"phase": "Pending", "containerStatuses": [creating]}
    (part,) = explain_all(town.world()).parts
    assert part.headline.reason is Reason.NOT_STARTED
    assert part.refused_configs == (f"claim stuck-claim: {REFUSED}",)


def test_a_plan_says_it_of_every_pod() -> None:
    """With where the pod would go, which is where it would not start."""
    devices = asks(1)["devices"] | {"config": [{"opaque": WRONG}]}
    wrong = planned_claim("c", spec={"devices": devices})
    report = plan(cluster({"a": 2}), wanted(alone("p", claim="c"), alone("q"), claims=(wrong,)))
    told = {pod.name: pod.refused_configs for pod in report.pods}
    assert told == {"p": (f"claim c: {REFUSED}",), "q": ()}
    assert report.fits


def mps_claim(limit: str) -> ResourceClaim:
    """A claim for a GPU of which each program may use so much."""
    head = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}
    sharing = {"strategy": "MPS", "mpsConfig": {"defaultPinnedDeviceMemoryLimit": limit}}
    opaque = {"driver": "gpu.nvidia.com", "parameters": {**head, "sharing": sharing}}
    devices = asks(1)["devices"] | {"config": [{"opaque": opaque}]}
    return planned_claim("c", spec={"devices": devices})


@pytest.mark.parametrize(("limit", "fits"), [("10Gi", True), ("11Gi", False)])
def test_a_plan_adds_up_the_limits_of_pods_that_share_a_claim(limit: str, fits: bool) -> None:
    """Before any of them exists: four programs of the claim share one GPU of 40 GiB."""
    world = cluster({"a": 0})
    device = {
        "name": "gpu-0",
        "attributes": {"type": {"string": "gpu"}},
        "capacity": {"memory": {"value": "40Gi"}},
    }
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "pool": pool, "nodeName": "a", "devices": [device]}
    made = convert(ResourceSlice, {"metadata": {"name": "s"}, "spec": spec})
    world = world.with_objects(replace(world.objects, slices=(made,)))
    pods = [alone(f"p{number}", claim="c") for number in range(4)]
    report = plan(world, wanted(*pods, claims=(mps_claim(limit),)))
    told = {text for pod in report.pods for text in pod.refused_configs}
    want = (
        "claim c: driver gpu.nvidia.com refuses it: the memory limits on device gpu.nvidia.com/a/gpu-0"
        " add up to 44Gi of 40Gi: 4 programs of claim default/c with 11Gi"
    )
    assert told == (set() if fits else {want})
