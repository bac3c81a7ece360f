"""What claims cost once they have their devices."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.resource import ResourceClaim
from drayman.quota.charging.allocated import TrueUp, allocated_amounts, true_up
from oracle.build import capacity, device, exactly, first_available, partitioned, piece, shared
from oracle.selectors import GPU
from quota.charging.pricing_cases import GI, cluster, pricing

JsonObject = dict[str, Any]
STATE = cluster(
    *partitioned(
        [
            device("small", spends={"c": {"memory": "5Gi"}}),
            device("large", spends={"c": {"memory": "20Gi"}}),
        ],
        {"c": {"memory": "40Gi"}},
        pool="mig",
    ),
    piece(
        [
            shared("s", {"memory": capacity("80Gi")}),
            device("x", capacity={"memory": capacity("90Gi")}),
        ]
    ),
)


def allocated(request: JsonObject, *results: JsonObject) -> ResourceClaim:
    given = [{"driver": GPU, "pool": "node-1", **result} for result in results]
    return convert(
        ResourceClaim,
        {
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"devices": {"requests": [request]}},
            "status": {"allocation": {"devices": {"results": given}}},
        },
    )


EITHER = first_available("r", exactly("big", 4), exactly("few", 1, "nic"))
CASES: dict[str, tuple[ResourceClaim, dict[str, int] | None]] = {
    "each device of a class that is counted": (
        allocated(
            exactly("r", 2), {"request": "r", "device": "s"}, {"request": "r", "device": "x"}
        ),
        {"gpus": 2},
    ),
    "the alternative that was chosen": (
        allocated(EITHER, {"request": "r/few", "device": "s"}),
        {"nics": 1},
    ),
    "the partition that was chosen": (
        allocated(exactly("r", cls="mig"), {"request": "r", "pool": "mig", "device": "small"}),
        {"gpu.memory": 5 * GI},
    ),
    "the share that was taken": (
        allocated(
            exactly("r", cls="share"),
            {"request": "r", "device": "s", "consumedCapacity": {"memory": "8Gi"}, "shareID": "x"},
        ),
        {"vram": 8 * GI},
    ),
    "all of a device that cannot be shared": (
        allocated(exactly("r", cls="share"), {"request": "r", "device": "x"}),
        {"vram": 90 * GI},
    ),
    "nothing for admin access": (
        allocated(exactly("r", admin=True), {"request": "r", "device": "s", "adminAccess": True}),
        {},
    ),
    "unknown for a device that is gone": (
        allocated(exactly("r", cls="mig"), {"request": "r", "pool": "mig", "device": "gone"}),
        None,
    ),
    "unknown for a device that nothing measures": (
        allocated(exactly("r", cls="mig"), {"request": "r", "device": "s"}),
        None,
    ),
    "nothing where there is no allocation": (allocated(exactly("r")), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_devices_cost(name: str) -> None:
    """What was allocated is charged, whatever it might have been."""
    claim, amounts = CASES[name]
    assert allocated_amounts([claim], STATE, pricing(STATE).mappings) == amounts


def test_extended_resources_without_a_mapping_are_charged_as_themselves() -> None:
    """The claim that was made for them names only the class."""
    claim = allocated(
        exactly("container-0-request-0", cls="own"),
        {"request": "container-0-request-0", "device": "s"},
    )
    mappings = pricing(STATE).mappings
    assert allocated_amounts([claim], STATE, mappings, {"own": "example.com/gpu"}) == {
        "example.com/gpu": 1
    }


def test_a_class_that_has_lost_its_mapping_has_no_price() -> None:
    """Nothing is given back because nobody knows any more what devices cost."""
    claim = allocated(exactly("r", cls="own"), {"request": "r", "device": "s"})
    assert allocated_amounts([claim], STATE, pricing(STATE).mappings) is None


def test_truing_up_gives_back_and_takes_nothing_unasked() -> None:
    """Less than was reserved is given back; more is said and has to be admitted, and nothing is given back for it."""
    assert true_up({"gpus": 4, "nics": 1}, {"gpus": 1, "nics": 1}) == TrueUp(
        actual={"gpus": 1, "nics": 1}, released={"gpus": 3}, excess={}
    )
    assert true_up({"gpus": 4, "nics": 1}, {"gpus": 1, "vram": 3, "nics": 1}) == TrueUp(
        actual={"gpus": 1, "vram": 3, "nics": 1}, released={}, excess={"vram": 3}
    )
