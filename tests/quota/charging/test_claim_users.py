"""Claims that several workloads use: somebody pays, and never more than the claim costs."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.resource import DeviceClass, ResourceClaimSpec
from drayman.quota.amounts import plus
from drayman.quota.charging.sharing import share_of
from drayman.quota.claims.prices import ClaimPrice, ObjectKey, Share, portions
from drayman.quota.claims.records import CLAIMS, text_of, uses_of
from drayman.quota.claims.users import ClaimUse, ClaimUsers
from oracle.build import device_class, exactly

CLAIM = ("default", "c")
WHOLE = ClaimPrice(CLAIM, {"gpus": 2})
SLICED = ClaimPrice(CLAIM, {"vram": 80, "gpus": 1}, Share("TimeSlicing"))
QUARTERS = ClaimPrice(CLAIM, {"vram": 80, "gpus": 1}, Share("MPS", Fraction(1, 4)))


def _record(part: str, copies: int = 1) -> str:
    use = {"name": "c", "podSet": "p", "turn": 1, "sharing": "MPS", "part": part}
    return json.dumps({"claims": [use] * copies})


def entering(users: ClaimUsers, workload: str, *prices: ClaimPrice) -> None:
    users.enter(workload, [users.joining(price, "main", {}) for price in prices])


def test_the_first_user_pays_and_the_next_one_follows() -> None:
    """A claim that is not shared out costs its first user all of it; when that one ends, the second pays."""
    users = ClaimUsers()
    entering(users, "a", WHOLE)
    assert users.charged("a") == {CLAIM: {"gpus": 2}}
    assert users.asked_of(WHOLE) == {"gpus": 0}
    entering(users, "b", WHOLE)
    assert (users.charged("a"), users.charged("b")) == ({CLAIM: {"gpus": 2}}, {CLAIM: {}})
    assert users.leave("a") == {"b"}
    assert users.charged("b") == {CLAIM: {"gpus": 2}}
    users.leave("b")
    assert users.users(CLAIM) == ()
    assert users.asked_of(WHOLE) == {"gpus": 2}


def test_time_slices_cost_equal_parts() -> None:
    """Every user takes over its part; what cannot be divided stays with the first."""
    users = ClaimUsers()
    entering(users, "a", SLICED)
    assert users.asked_of(SLICED) == {"vram": 40, "gpus": 0}
    entering(users, "b", SLICED)
    assert users.charged("a") == {CLAIM: {"vram": 40, "gpus": 1}}
    assert users.charged("b") == {CLAIM: {"vram": 40}}
    users.leave("a")
    assert users.charged("b") == {CLAIM: {"vram": 80, "gpus": 1}}


def test_mps_costs_the_percentage_that_is_configured() -> None:
    """The first user pays what the others do not use."""
    assert portions(QUARTERS, 3) == [{"vram": 40, "gpus": 1}, {"vram": 20}, {"vram": 20}]
    assert portions(QUARTERS, 7)[0] == {"gpus": 1}


def test_a_price_falls_for_all_users_and_never_rises() -> None:
    """What is read again of somebody who has not written the lower price yet does not bring the old one back."""
    users = ClaimUsers()
    use = users.joining(ClaimPrice(CLAIM, {"gpus": 4, "nics": 1}), "main", {})
    users.enter("a", [use])
    assert users.lower(CLAIM, {"gpus": 1, "vram": 9}) == {"a"}
    assert users.charged("a") == {CLAIM: {"gpus": 1}}
    assert users.lower(CLAIM, {"gpus": 3}) == set()
    users.enter("a", [use])
    assert users.charged("a") == {CLAIM: {"gpus": 1}}
    users.leave("a")
    entering(users, "a", WHOLE)
    assert users.charged("a") == {CLAIM: {"gpus": 2}}, "priced afresh"


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


Events = list[tuple[str, list[ClaimPrice]]]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.lists(PRICES, max_size=2))), st.randoms())
def test_charges_add_up_to_prices_and_follow_from_what_is_written(
    events: Events, chance: Any
) -> None:
    """After any admissions and ends; and a book that is told of the users in another order, as they wrote it down, charges the same."""
    users, written = ClaimUsers(), dict[str, tuple[ClaimUse, ...]]()
    for workload, prices in events:
        if workload in written:
            users.leave(workload)
            del written[workload]
        else:
            uses = [users.joining(p, "main", {}) for p in {p.claim: p for p in prices}.values()]
            users.enter(workload, uses)
            annotations = {CLAIMS: text_of(uses)}
            written[workload] = uses_of("default", annotations)
        for claim in (("default", "c"), ("default", "d")):
            assert_adds_up(users, claim)
    told = list(written)
    chance.shuffle(told)
    other = ClaimUsers()
    for workload in told:
        other.enter(workload, written[workload])
    assert {w: other.charged(w) for w in told} == {w: users.charged(w) for w in told}


def assert_adds_up(users: ClaimUsers, claim: ObjectKey) -> None:
    total: dict[str, int] = {}
    for user in users.users(claim):
        total = plus(total, users.charged(user)[claim])
    assert total == (users.price(claim).amounts if users.users(claim) else {})


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"claims": [{"name": "c"}]}',
        _record("1/0"),
        _record("-1/2"),
        _record("3/2"),
        _record("1e-2000000000"),
        _record("1/" + "9" * 5000),
        _record("1/4", copies=2),
    ],
)
def test_a_record_that_makes_no_sense_counts_as_none(text: str) -> None:
    """Then all that the status has is the workload's own, and it is charged for that."""
    assert uses_of("default", {CLAIMS: text}) == ()


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
