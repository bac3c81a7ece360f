"""Limits on the memory of shared devices: added up over programs and claims, and compared with what there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.resource import (
    Device,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimTemplate,
)
from drayman.driver_configs.advice import advice_about
from drayman.driver_configs.memory_limits import (
    ALLOW_OVERCOMMIT,
    overcommits,
    refusal_of_limits,
    reserved_pods,
)

DRIVER = "gpu.nvidia.com"


def gpu(name: str = "gpu-0", memory: str = "40Gi") -> Device:
    said = {"type": {"string": "gpu"}, "uuid": {"string": f"GPU-{name}"}}
    return convert(
        Device,
        {"name": name, "attributes": said, "capacity": {"memory": {"value": memory}}},
    )


DEVICES = {"gpu-0": gpu(), "gpu-1": gpu("gpu-1", "80Gi")}


def find(result: DeviceRequestAllocationResult) -> Device | None:
    return DEVICES.get(result.device)


def mps(limit: str = "10Gi", **more: Any) -> dict[str, Any]:
    """The parameters of a configuration with MPS."""
    settings = {"defaultPinnedDeviceMemoryLimit": limit, **more} if limit else more
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "GpuConfig",
        "sharing": {"strategy": "MPS", "mpsConfig": settings},
    }


def claim(
    name: str = "c",
    *devices: str,
    pods: int = 1,
    config: dict[str, Any] | None = None,
    share: str = "",
    allow: bool = False,
) -> ResourceClaim:
    """A claim with devices that is reserved for pods."""
    results: list[dict[str, Any]] = []
    for device in devices or ("gpu-0",):
        result = {"request": "r", "driver": DRIVER, "pool": "p", "device": device}
        if share:
            result |= {"shareID": f"{name}-{device}", "consumedCapacity": {"memory": share}}
        results.append(result)
    opaque = {"driver": DRIVER, "parameters": mps() if config is None else config}
    entries = [{"source": "FromClaim", "opaque": opaque}]
    users = [{"resource": "pods", "name": f"p{i}", "uid": f"{name}-{i}"} for i in range(pods)]
    return convert(
        ResourceClaim,
        {
            "metadata": {
                "name": name,
                "namespace": "ml",
                "uid": name,
                "annotations": {ALLOW_OVERCOMMIT: "true"} if allow else {},
            },
            "status": {
                "allocation": {"devices": {"results": results, "config": entries}},
                "reservedFor": users,
            },
        },
    )


@dataclass(frozen=True)
class Case:
    """A claim, others with its device, and what its driver says."""

    claim: ResourceClaim
    others: tuple[ResourceClaim, ...] = ()
    want: str = ""


CASES = {
    "what fits exactly": Case(claim(pods=4)),
    "one pod too many": Case(
        claim(pods=5),
        want="the memory limits on device gpu.nvidia.com/p/gpu-0 add up to 50Gi of 40Gi:"
        " 5 programs of claim ml/c with 10Gi",
    ),
    "permitted by the claim": Case(claim(pods=12, allow=True)),
    "no limit": Case(claim(pods=50, config=mps(""))),
    "time slices have no limit": Case(
        claim(
            pods=50,
            config={
                "apiVersion": "resource.nvidia.com/v1beta1",
                "kind": "GpuConfig",
                "sharing": {"strategy": "TimeSlicing"},
            },
        )
    ),
    "a limit for one device by its place": Case(
        claim(
            "c",
            "gpu-1",
            "gpu-0",
            pods=4,
            config=mps("10Gi", defaultPerDevicePinnedMemoryLimit={"1": "11Gi"}),
        ),
        want="gpu-0 add up to 44Gi of 40Gi",
    ),
    "a limit for one device by its UUID": Case(
        claim(config=mps("1Gi", defaultPerDevicePinnedMemoryLimit={"GPU-gpu-0": "41Gi"})),
        want="gpu-0 add up to 41Gi of 40Gi: 1 program of claim ml/c with 41Gi",
    ),
    "another claim for the same device": Case(
        claim(pods=3),
        (claim("other", pods=2),),
        want="50Gi of 40Gi: 3 programs of claim ml/c with 10Gi, 2 programs of claim ml/other with 10Gi",
    ),
    "another claim for another device": Case(claim(pods=3), (claim("other", "gpu-1", pods=7),)),
    "a share that its programs exceed": Case(
        claim(pods=2, share="15Gi"),
        want="the share of device gpu.nvidia.com/p/gpu-0 add up to 20Gi of 15Gi",
    ),
    "shares that their programs keep to": Case(
        claim(pods=2, share="20Gi"), (claim("other", pods=2, share="20Gi"),)
    ),
    "a device whose memory is not known": Case(claim("c", "gpu-9", pods=50)),
}


@pytest.mark.parametrize("name", CASES)
def test_limits_are_added_up(name: str) -> None:
    """Over the programs of a claim and of other claims for the device; the claim may permit more."""
    case = CASES[name]
    found = refusal_of_limits(DRIVER, case.claim, case.others, find, reserved_pods)
    assert bool(found) == bool(case.want)
    assert case.want in found
    assert not found or ALLOW_OVERCOMMIT in found


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 20)), min_size=1, max_size=4))
def test_what_every_claim_is_granted_fits(claims: list[tuple[int, int]]) -> None:
    """Claims that are prepared one after another, each beside those before it, never exceed the device together."""
    prepared: list[ResourceClaim] = []
    total = 0
    for number, (pods, gibibytes) in enumerate(claims):
        wanted = claim(f"c{number}", pods=pods, config=mps(f"{gibibytes}Gi"))
        if not list(overcommits(wanted, prepared, find, reserved_pods)):
            prepared.append(wanted)
            total += pods * gibibytes
    assert total <= 40


def test_a_limit_beyond_the_share_that_is_asked_for_is_reported_in_files() -> None:
    """No hardware is needed to know that: `drayman validate` warns of it."""
    devices = {
        "requests": [
            {
                "name": "gpu",
                "exactly": {
                    "deviceClassName": "c",
                    "capacity": {"requests": {"memory": "8Gi"}},
                },
            }
        ],
        "config": [{"opaque": {"driver": DRIVER, "parameters": mps("10Gi")}}],
    }
    made = convert(ResourceClaimTemplate, {"spec": {"spec": {"devices": devices}}})
    assert list(advice_about(made)) == [
        (
            "spec.spec.devices.config[0].opaque.parameters",
            "each program may use 10Gi of memory, and request gpu asks for a share of 8Gi",
        )
    ]
    permitted = {"metadata": {"annotations": {ALLOW_OVERCOMMIT: "true"}}}
    made = convert(ResourceClaimTemplate, {"spec": {**permitted, "spec": {"devices": devices}}})
    assert list(advice_about(made)) == []
