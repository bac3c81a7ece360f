"""What pod sets are charged once their pods have devices."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.kueue_workload import Admission
from drayman.api.quantity import Quantity
from drayman.quota.charging.truing import Trued, Truing
from drayman.quota.demands import PodSetDemand
from oracle.build import device, exactly, first_available, piece
from oracle.selectors import GPU
from quota.charging.pricing_cases import cluster, pricing

EITHER = first_available("r", exactly("many", 4), exactly("few", 1))
Made = tuple[dict[str, Any], Pod]


def pod(number: int, devices: int | None, **more: Any) -> Made:
    """A claim that has so many devices, or None, and the pod that it was made for."""
    name, uid = f"p{number}", f"uid-{number}"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
    request = "r/few" if devices == 1 else "r/many"
    results = [
        {"driver": GPU, "pool": "node-1", "device": f"d{number * 4 + n}", "request": request}
        for n in range(devices or 0)
    ]
    allocation = {"devices": {"results": results}}
    status: dict[str, Any] = {"reservedFor": [{"resource": "pods", "name": name, "uid": uid}]}
    if devices is not None:
        status["allocation"] = allocation
    metadata = {"name": name, "namespace": "default", "uid": f"c{number}"}
    claim = {
        "metadata": {**metadata, "ownerReferences": [owner]},
        "spec": {"devices": {"requests": [EITHER]}},
        "status": status,
    }
    entry = {"name": "e", "resourceClaimTemplateName": "t"}
    body = {
        "metadata": {"name": name, "namespace": "default", "uid": uid},
        "spec": {"nodeName": "node-1", "resourceClaims": [entry], **more},
        "status": {"resourceClaimStatuses": [{"name": "e", "resourceClaimName": name}]},
    }
    return claim, convert(Pod, body)


def trued(made: list[Made], usage: int, *, count: int = 2, plain: int = 0, paid: int = 0) -> Trued:
    """Of a set whose pods ask for four or one each, beside what they ask for without devices."""
    slices = piece([device(f"d{n}") for n in range(40)])
    state = cluster(slices, claims=[claim for claim, _ in made])
    per_pod = {"gpus": 4 + plain}
    demand = PodSetDemand(
        "main", count, None, per_pod, (), {}, {}, None, (), None, devices={"gpus": 4}
    )
    assigned = {"name": "main", "count": count, "flavors": {"gpus": "f"}}
    assigned["resourceUsage"] = {"gpus": str(usage)}
    admission = convert(Admission, {"clusterQueue": "q", "podSetAssignments": [assigned]})
    truing, pods = Truing(state, pricing(state).mappings), {"main": [each for _, each in made]}
    return truing.of_workload(admission, [demand], pods, {"main": {"gpus": paid}})


def charged(found: Trued) -> Quantity:
    return found.admission.pod_set_assignments[0].resource_usage["gpus"]


CASES: dict[str, tuple[list[int | None], int, dict[str, int], int, int]] = {
    "all got less": ([1, 1], 8, {}, 2, 0),
    "one got less": ([1, 4], 8, {}, 5, 0),
    "all got the most there is": ([4, 4], 8, {}, 8, 0),
    "one has no devices yet": ([1, None], 8, {}, 8, 0),
    "one is not there yet": ([1], 8, {}, 8, 0),
    "one too many, while another one leaves": ([1, 1, 1], 8, {}, 8, 0),
    "more than is charged by now": ([4, 1], 2, {}, 2, 3),
    "what is no device stays": ([1, 1], 14, {"plain": 3}, 8, 0),
    "claims that pods name stay": ([1, 1], 13, {"paid": 5}, 7, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_a_set_is_charged(name: str) -> None:
    """When all of its pods have their devices, what these cost, and never more than before."""
    devices, usage, more, expected, excess = CASES[name]
    found = trued([pod(n, each) for n, each in enumerate(devices)], usage, **more)
    assert charged(found).amount == expected
    assert found.excess.get("gpus", 0) == excess


def test_pods_that_have_no_node_do_not_count() -> None:
    """Their claims may have devices that are taken back."""
    found = trued([pod(0, 1), pod(1, 1, nodeName="")], 8)
    assert (charged(found).amount, found.is_known) == (8, False)


@given(st.lists(st.sampled_from([1, 4]), min_size=1, max_size=6), st.integers(0, 30))
def test_charges_never_rise_and_looking_again_changes_nothing(
    devices: list[int], usage: int
) -> None:
    """What is given back is what the charge falls by."""
    pods = [pod(n, each) for n, each in enumerate(devices)]
    found = trued(pods, usage, count=len(devices))
    assert charged(found).amount == min(usage, sum(devices))
    assert usage - charged(found).amount == found.released.get("gpus", 0)
    again = trued(pods, int(charged(found).amount), count=len(devices))
    assert (charged(again), again.released) == (charged(found), {})
