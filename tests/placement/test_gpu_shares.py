"""Shares of GPUs by KAI's annotations: what they ask for, what serves them, and what is wrong with them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.resource import DeviceClass, ResourceSlice
from drayman.inventory.features import Features
from drayman.placement.claims import ClaimLack, ClaimsNotReadyError
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.placements import Placement
from drayman.placement.gpu_shares import RESOURCE
from drayman.placement.state import ClusterState

DRIVER = "gpu.example.com"


def shared(name: str, memory: str = "80Gi", compute: str = "100") -> dict[str, Any]:
    """A device of which each claim gets the memory and the compute that it requests, and all of it by default."""
    return {
        "name": name,
        "allowMultipleAllocations": True,
        "capacity": {
            key: {
                "value": whole,
                "requestPolicy": {
                    "default": whole,
                    "validRange": {"min": step, "max": whole, "step": step},
                },
            }
            for key, whole, step in (("memory", memory, "1Gi"), ("compute", compute, "1"))
        },
    }


def cluster(*devices: dict[str, Any]) -> ClusterState:
    """A node with devices, and a class for them."""
    state = ClusterState(Features(), lambda _: None)
    allocatable = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    state.set_node(
        convert(Node, {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}})
    )
    state.set_class(convert(DeviceClass, {"metadata": {"name": DRIVER}, "spec": {}}))
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": "n", "devices": list(devices)}
    state.set_slice(convert(ResourceSlice, {"metadata": {"name": "s"}, "spec": spec}))
    return state


def pod(name: str = "p", requests: dict[str, str] | None = None, **annotations: str) -> Pod:
    """A pod with annotations, as the API server leaves it; underscores stand for hyphens."""
    given = {key.replace("_", "-"): value for key, value in annotations.items()}
    asked = {RESOURCE: "1"} if requests is None else requests
    container = {"name": "main", "resources": {"requests": asked, "limits": asked}}
    return convert(
        Pod,
        {
            "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": given},
            "spec": {"containers": [container]},
        },
    )


def consumed(found: object) -> list[tuple[str, dict[str, str]]]:
    """What the claim that is made for a pod has of which device."""
    assert isinstance(found, Placement)
    (made,) = found.made
    return [
        (
            each.device,
            {name: str(amount) for name, amount in sorted(each.consumed_capacity.items())},
        )
        for each in made.claim.status.results
    ]


def test_two_halves_share_one_device() -> None:
    """Each gets half of every capacity that is shared; a third half goes to the next device."""
    decider = Decider(cluster(shared("gpu-0"), shared("gpu-1")))
    round_ = decider.round(0.0)
    half = {"compute": "50", "memory": "40Gi"}
    found = [consumed(round_.decide(pod(f"p{n}", gpu_fraction="0.5"))) for n in range(3)]
    devices = [device for ((device, taken),) in found if taken == half]
    assert devices[0] == devices[1] != devices[2]


def test_memory_is_given_in_mebibytes() -> None:
    """With the same part of what else is shared, so that other claims fit beside it."""
    round_ = Decider(cluster(shared("gpu-0"))).round(0.0)
    found = consumed(round_.decide(pod(gpu_memory="20480")))
    assert found == [("gpu-0", {"compute": "25", "memory": "20Gi"})]


def test_a_fraction_is_one_of_the_device_whatever_its_size() -> None:
    """Where devices differ, half of the smallest is tried first."""
    round_ = Decider(cluster(shared("large"), shared("small", "40Gi"))).round(0.0)
    found = [consumed(round_.decide(pod(f"p{n}", gpu_fraction="0.5")))[0] for n in range(4)]
    assert [(device, taken["memory"]) for device, taken in found] == [
        ("small", "20Gi"),
        ("small", "20Gi"),
        ("large", "40Gi"),
        ("large", "40Gi"),
    ]


def test_the_status_says_which_container_gets_the_share() -> None:
    """By the resource that the API server has added to its requests, so that a kubelet gives it the device."""
    found = Decider(cluster(shared("gpu-0"))).round(0.0).decide(pod(gpu_fraction="0.5"))
    assert isinstance(found, Placement)
    assert found.extended_status is not None
    (mapping,) = found.extended_status.request_mappings
    assert (mapping.container_name, mapping.resource_name) == ("main", RESOURCE)
    assert mapping.request_name == "gpu-share"


REFUSED = {
    "too large": ({"gpu_fraction": "1.5"}, "annotation gpu-fraction must be a number above 0"),
    "a whole": ({"gpu_fraction": "1"}, "annotation gpu-fraction must be a number above 0"),
    "nothing": ({"gpu_fraction": "0"}, "annotation gpu-fraction must be a number above 0"),
    "no number": ({"gpu_fraction": "half"}, "annotation gpu-fraction must be a number above 0"),
    "an exponent": ({"gpu_fraction": "1e-1"}, "annotation gpu-fraction must be a number above 0"),
    "memory with a unit": ({"gpu_memory": "4Gi"}, "annotation gpu-memory must be a whole number"),
    "no memory": ({"gpu_memory": "0"}, "annotation gpu-memory must be a whole number of MiB"),
    "both": ({"gpu_fraction": "0.5", "gpu_memory": "4096"}, "annotation gpu-memory cannot be"),
    "several devices": (
        {"gpu_fraction": "0.5", "gpu_fraction_num_devices": "2"},
        "annotation gpu-fraction-num-devices is '2'; only shares of one device are supported",
    ),
    "a container that is not there": (
        {"gpu_fraction": "0.5", "gpu_fraction_container_name": "other"},
        "annotation gpu-fraction-container-name names container 'other'",
    ),
    "a container without a share": (
        {"gpu_fraction_container_name": "main"},
        "annotation gpu-fraction-container-name means nothing without gpu-fraction or gpu-memory",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_kai_refuses_is_reported_with_the_annotation(name: str) -> None:
    """The pod waits, and says which annotation is wrong."""
    annotations, problem = REFUSED[name]
    round_ = Decider(cluster(shared("gpu-0"))).round(0.0)
    with pytest.raises(ClaimsNotReadyError) as raised:
        round_.claims(pod(**annotations))
    assert str(raised.value).startswith(problem)
    assert raised.value.lack is ClaimLack.SHARE_INVALID


def test_whole_gpus_and_a_share_are_not_for_one_pod() -> None:
    """As KAI has it."""
    both = pod(requests={RESOURCE: "1", "nvidia.com/gpu": "1"}, gpu_fraction="0.5")
    with pytest.raises(ClaimsNotReadyError, match=r"container main requests nvidia.com/gpu"):
        Decider(cluster(shared("gpu-0"))).round(0.0).claims(both)


def test_a_container_has_to_request_the_share() -> None:
    """On a cluster whose server does not add it to new pods, the reason names it: kubelets give devices only on request."""
    draft = pod(requests={}, gpu_fraction="0.5")
    assert consumed(Decider(cluster(shared("gpu-0"))).round(0.0).decide(draft))
    created = replace(draft.metadata, creation_timestamp="2026-01-01T00:00:00Z")
    bare = replace(draft, metadata=created)
    with pytest.raises(
        ClaimsNotReadyError, match=r"needs kai.scheduler/gpu-share: 1 in the limits"
    ):
        Decider(cluster(shared("gpu-0"))).round(0.0).claims(bare)


def test_without_shared_devices_the_pod_waits_with_that_reason() -> None:
    """A class whose devices go to one claim each offers no shares; nor does one that is too small."""
    whole = {"name": "gpu-0", "capacity": {"memory": {"value": "80Gi"}}}
    cases = ((whole, "no device class that counts as GPUs"), (shared("s", "1Gi"), "has 1Gi"))
    for device, problem in cases:
        with pytest.raises(ClaimsNotReadyError, match=problem) as raised:
            Decider(cluster(device)).round(0.0).claims(pod(gpu_memory="4096"))
        assert raised.value.lack is ClaimLack.SHARE
        assert "gpu-memory" in str(raised.value)


def test_a_share_is_charged_as_a_fraction() -> None:
    """Memory as a part of the smallest device that has enough; what is refused costs nothing."""
    state = cluster(shared("large"), shared("small", "40Gi"))
    charges = {
        "0.25": state.gpu_shares.charge(pod(gpu_fraction="0.25")),
        "20 GiB": state.gpu_shares.charge(pod(gpu_memory="20480")),
        "60 GiB": state.gpu_shares.charge(pod(gpu_memory="61440")),
        "wrong": state.gpu_shares.charge(pod(gpu_fraction="2")),
        "none": state.gpu_shares.charge(pod()),
    }
    assert charges == {
        "0.25": (Fraction(1, 4), True),
        "20 GiB": (Fraction(1, 2), True),
        "60 GiB": (Fraction(3, 4), True),
        "wrong": (0, True),
        "none": (0, True),
    }


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_shares_never_exceed_their_devices(tenths: list[int]) -> None:
    """However many pods ask: what is placed fits, and a pod that does not fit is refused."""
    round_ = Decider(cluster(shared("gpu-0"), shared("gpu-1"))).round(0.0)
    taken = {"gpu-0": 0, "gpu-1": 0}
    for number, tenth in enumerate(tenths):
        found = round_.decide(pod(f"p{number}", gpu_fraction=f"0.{tenth}"))
        if isinstance(found, Placement):
            ((device, _),) = consumed(found)
            taken[device] += tenth
        else:
            assert all(amount + tenth > 10 for amount in taken.values())
    assert all(amount <= 10 for amount in taken.values())
