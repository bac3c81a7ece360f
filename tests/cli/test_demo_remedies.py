"""What would help a refused claim, each tried with a real search."""

from __future__ import annotations

from msgspec.structs import replace

from drayman.allocator import Kind, Plan, Policy, Reason, Refusal, Rejection, search
from drayman.api.codec import convert
from drayman.api.resource import ResourceClaim
from drayman.api.struct import Json
from drayman.cli.demo.remedies import freeing_helps, remedies
from drayman.cli.demo.scene import Scene, build
from drayman.cli.demo.words import KINDS, funnel
from drayman.drivers.profiles import dgx_h100
from drayman.inventory import DeviceId

GPU = {"deviceClassName": "gpu.nvidia.com"}
NIC = {"deviceClassName": "rdma"}
ROOT = {"matchAttribute": "resource.kubernetes.io/pcieRoot"}


def claim_for(name: str, requests: list[dict[str, Json]], *constraints: Json) -> ResourceClaim:
    """A claim as the API server would store it."""
    for request in requests:
        request["exactly"] = {"allocationMode": "ExactCount", "count": 1, **request["exactly"]}
    devices = {"requests": requests, "constraints": list(constraints)}
    metadata = {"name": name, "namespace": "demo"}
    return convert(ResourceClaim, {"metadata": metadata, "spec": {"devices": devices}})


def claims() -> tuple[ResourceClaim, ResourceClaim, ResourceClaim]:
    """A GPU with its NIC, four large GPUs, and what no node can give."""
    large = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('75Gi')) >= 0"
    four = {**GPU, "count": 4, "selectors": [{"cel": {"expression": large}}]}
    return (
        claim_for(
            "gpu-with-nic", [{"name": "gpu", "exactly": GPU}, {"name": "nic", "exactly": NIC}], ROOT
        ),
        claim_for("four-gpus", [{"name": "gpus", "exactly": four}]),
        claim_for(
            "two-pairs-on-one-root",
            [
                {"name": "gpus", "exactly": {**GPU, "count": 2}},
                {"name": "nics", "exactly": {**NIC, "count": 2}},
            ],
            ROOT,
        ),
    )


def empty() -> Scene:
    return build(dgx_h100("dgx-h100-1"))


def busy() -> tuple[Scene, ResourceClaim, ResourceClaim]:
    """The demo's node after its first two claims, and those claims."""
    scene = empty()
    first, second, _ = claims()
    for claim in (first, second):
        outcome = search(scene.view(), [claim], policy=Policy.BEST)
        assert isinstance(outcome, Plan)
        scene.ledger.commit(outcome)
    return scene, first, second


def asking_again(claim: ResourceClaim, count: int) -> ResourceClaim:
    """The same claim under another name, for another number of devices."""
    (request,) = claim.spec.devices.requests
    assert request.exactly is not None
    changed = replace(request, exactly=replace(request.exactly, count=count))
    devices = replace(claim.spec.devices, requests=(changed,))
    return replace(
        claim,
        metadata=replace(claim.metadata, name="again"),
        spec=replace(claim.spec, devices=devices),
    )


def test_a_busy_node_names_who_would_have_to_leave() -> None:
    """Three GPUs are free and four wanted: either of the two holders would make room."""
    scene, _, four_gpus = busy()
    wanted = asking_again(four_gpus, 4)
    refusal = search(scene.view(), [wanted], policy=Policy.BEST)
    assert isinstance(refusal, Refusal)
    assert refusal.kind is Kind.NOT_NOW
    assert [remedy.change for remedy in freeing_helps(scene, wanted)] == [
        "once demo/gpu-with-nic gives back its devices",
        "once demo/four-gpus gives back its devices",
    ]


def test_two_holders_may_both_have_to_leave() -> None:
    """Eight GPUs fit on the empty node only."""
    scene, _, four_gpus = busy()
    wanted = asking_again(four_gpus, 8)
    (remedy,) = freeing_helps(scene, wanted)
    assert remedy.change == "once every other claim has gone"
    assert len(remedy.devices) == 8


def test_what_never_fits_is_not_helped_by_freeing() -> None:
    """Nine GPUs are more than the node has; asking for one helps."""
    scene, _, four_gpus = busy()
    wanted = asking_again(four_gpus, 9)
    assert freeing_helps(scene, wanted) == []
    assert [remedy.change for remedy in remedies(scene, wanted)] == [
        "ask for one device of each instead"
    ]


def test_trying_remedies_changes_nothing() -> None:
    """The ledger is what it was."""
    scene, _, four_gpus = busy()
    before = list(scene.ledger.holders())
    remedies(scene, asking_again(four_gpus, 9))
    freeing_helps(scene, asking_again(four_gpus, 4))
    assert list(scene.ledger.holders()) == before


def test_every_reason_and_kind_has_words() -> None:
    """Whatever the search records can be told."""
    device = DeviceId("d", "p", "x")
    for reason in Reason:
        title, line = funnel([Rejection("ns/c", "r", reason, (device,), 2, 3)])
        assert title == "r: 3 wanted, 3 devices on the node"
        assert line.strip()
    assert KINDS.keys() == set(Kind)
