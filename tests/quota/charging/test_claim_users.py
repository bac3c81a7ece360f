"""Claims that several workloads use: somebody pays, and never more than the claim costs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.resource import DeviceClass, ResourceClaimSpec
from drayman.quota.amounts import plus
from drayman.quota.charging.claim_users import Adjustment, ClaimUsers, portions
from drayman.quota.charging.outcome import ClaimPrice
from drayman.quota.charging.sharing import Share, share_of
from drayman.quota.demands import PodSetRequest
from oracle.build import device_class, exactly
from quota.charging.pricing_cases import cluster, pods, pricing

CLAIM = ("default", "c")
WHOLE = ClaimPrice(CLAIM, {"gpus": 2})
SLICED = ClaimPrice(CLAIM, {"vram": 80, "gpus": 1}, Share("TimeSlicing"))
QUARTERS = ClaimPrice(CLAIM, {"vram": 80, "gpus": 1}, Share("MPS", Fraction(1, 4)))


def test_the_first_user_pays_and_the_next_one_follows() -> None:
    """A claim that is not shared out costs its first user all of it; when that one ends, the second pays."""
    users = ClaimUsers()
    assert users.enter("a", [WHOLE]) == (Adjustment("a", {}, {"gpus": 2}),)
    assert users.asked_of("b", WHOLE) == {}
    assert users.enter("b", [WHOLE]) == ()
    assert users.leave("a") == (
        Adjustment("a", {"gpus": 2}, {}),
        Adjustment("b", {}, {"gpus": 2}),
    )
    assert users.leave("b") == (Adjustment("b", {"gpus": 2}, {}),)
    assert users.users(CLAIM) == ()


def test_time_slices_cost_equal_parts() -> None:
    """Every user takes over its part; what cannot be divided stays with the first."""
    users = ClaimUsers()
    users.enter("a", [SLICED])
    assert users.asked_of("b", SLICED) == {"vram": 40}
    assert users.enter("b", [SLICED]) == (
        Adjustment("a", {"vram": 80, "gpus": 1}, {"vram": 40, "gpus": 1}),
        Adjustment("b", {}, {"vram": 40}),
    )
    assert users.leave("a")[-1] == Adjustment("b", {"vram": 40}, {"vram": 80, "gpus": 1})


def test_mps_costs_the_percentage_that_is_configured() -> None:
    """The first user pays what the others do not use."""
    assert portions(QUARTERS, 3) == [{"vram": 40, "gpus": 1}, {"vram": 20}, {"vram": 20}]
    assert portions(QUARTERS, 7)[0] == {"gpus": 1}


def test_entering_twice_changes_nothing() -> None:
    """Nor does leaving what was never entered."""
    users = ClaimUsers()
    users.enter("a", [WHOLE])
    assert users.enter("a", [WHOLE]) == ()
    assert users.leave("b") == ()


PRICES = st.builds(
    ClaimPrice,
    st.sampled_from([("default", "c"), ("default", "d")]),
    st.dictionaries(st.sampled_from(["gpus", "vram"]), st.integers(1, 2**63 - 1), min_size=1),
    st.sampled_from([None, Share("TimeSlicing"), Share("MPS", Fraction(30, 100))]),
)


@given(PRICES, st.integers(1, 12))
def test_portions_add_up_to_the_price(price: ClaimPrice, users: int) -> None:
    """Whatever the users pay together is what the claim costs, and none pays less than nothing."""
    paid = portions(price, users)
    assert len(paid) == users
    assert all(amount > 0 for each in paid for amount in each.values())
    total: dict[str, int] = {}
    for each in paid:
        total = plus(total, each)
    assert total == price.amounts


@given(st.lists(st.tuples(st.sampled_from("abc"), st.lists(PRICES, max_size=2), st.booleans())))
def test_adjustments_tell_the_whole_story(events: list[tuple[str, list[ClaimPrice], bool]]) -> None:
    """Somebody who only follows the adjustments knows what each workload is charged, and nothing is left when all have ended."""
    users, known = ClaimUsers(), dict[str, Any]()
    for workload, prices, enters in events:
        for each in users.enter(workload, prices) if enters else users.leave(workload):
            assert known.get(each.workload, {}) == each.before
            known[each.workload] = each.after
        assert {w: users.charged(w) for w in known} == known
    for workload in "abc":
        for each in users.leave(workload):
            known[each.workload] = each.after
    assert not any(known.values())


def test_a_workload_is_asked_for_what_others_do_not_pay() -> None:
    """Its price says so, and who pays the rest."""
    users = ClaimUsers()
    claim = {
        "metadata": {"name": "c", "namespace": "default", "uid": "c"},
        "spec": {"devices": {"requests": [exactly(count=2)]}},
    }
    asked = pricing(cluster(claims=[claim]), users=users)
    sets = [PodSetRequest("main", 2, pods(claims=["c"]))]
    first = asked.price_workload("default", sets, workload="default/a")
    assert isinstance(first, dict)
    assert first["main"].once == {"gpus": 2}
    users.enter("default/a", first["main"].claims)
    second = asked.price_workload("default", sets, workload="default/b")
    assert isinstance(second, dict)
    assert not any(second["main"].once.values())
    assert "default/a pays the rest" in second["main"].items[0].why
    again = asked.price_workload("default", sets, workload="default/a")
    assert isinstance(again, dict)
    assert again["main"].once == {"gpus": 2}


def config(driver: str = "gpu.nvidia.com", **sharing: Any) -> dict[str, Any]:
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}
    return {"opaque": {"driver": driver, "parameters": {**parameters, "sharing": sharing}}}


SLICES = config(strategy="TimeSlicing", timeSlicingConfig={"interval": "Long"})
MPS = config(strategy="MPS", mpsConfig={"defaultActiveThreadPercentage": 25})
CONFIGS: dict[str, tuple[list[Any], list[Any], Share | None]] = {
    "nothing": ([], [], None),
    "time-slicing": ([], [SLICES], Share("TimeSlicing")),
    "MPS with a percentage": ([], [MPS], Share("MPS", Fraction(1, 4))),
    "MPS without one": ([], [config(strategy="MPS")], Share("MPS")),
    "all of it": (
        [],
        [config(strategy="MPS", mpsConfig={"defaultActiveThreadPercentage": 100})],
        Share("MPS"),
    ),
    "the class says so": ([SLICES], [], Share("TimeSlicing")),
    "the claim overrides the class": ([SLICES], [MPS], Share("MPS", Fraction(1, 4))),
    "the claim takes it back": ([SLICES], [config()], None),
    "for another request": ([], [{**SLICES, "requests": ["other"]}], None),
    "for this request": ([], [{**SLICES, "requests": ["req"]}], Share("TimeSlicing")),
    "of another driver": ([], [config("gpu.example.com", strategy="TimeSlicing")], None),
    "that makes no sense": ([], [{"opaque": {"driver": "gpu.nvidia.com", "parameters": 3}}], None),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_configuration_says_how_devices_are_shared(name: str) -> None:
    """NVIDIA's driver configures time-slicing and MPS in the claim or its class; the last word counts."""
    of_class, of_claim, share = CONFIGS[name]
    classes = {"gpu": convert(DeviceClass, device_class("gpu", config=of_class))}
    spec = convert(ResourceClaimSpec, {"devices": {"requests": [exactly()], "config": of_claim}})
    assert share_of(spec, classes) == share
