"""Laws of prices, over random claims and devices."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.allocator import Plan, search
from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.integers import INT64_MAX
from drayman.api.resource import ResourceClaim, ResourceClaimStatus
from drayman.inventory.ledger import Ledger
from drayman.placement.state import ClusterState
from drayman.quota.charging.allocated import allocated_amounts, true_up
from drayman.quota.charging.outcome import Charges
from drayman.quota.charging.rules import KUEUE, Rules
from oracle.build import (
    NODE,
    capacity,
    claim,
    device,
    device_class,
    everything,
    exactly,
    first_available,
    partitioned,
    piece,
    shared,
)
from quota.charging.pricing_cases import (
    attribute_is,
    capacity_source,
    cluster,
    counter,
    maps,
    pods,
    price,
    pricing,
)

JsonObject = dict[str, Any]
MIG, SHARE = "mig.example.com", "share.example.com"
MAPPINGS = (
    maps("gpus", "gpu"),
    maps("gpu.memory", "mig", sources=[counter(driver=MIG)]),
    maps("vram", "share", sources=[capacity_source(driver=SHARE)]),
)
CLASSES = (
    device_class("gpu", 'device.driver == "gpu.example.com"'),
    device_class("mig", f'device.driver == "{MIG}"'),
    device_class("share", f'device.driver == "{SHARE}"'),
)
THE_NODE = {"metadata": {"name": NODE}}

models = st.lists(st.sampled_from("ab"), max_size=4)
memories = st.lists(st.sampled_from(["1Gi", "2Gi", "5Gi"]), max_size=3)
sizes = st.lists(st.sampled_from(["10Gi", "20Gi"]), max_size=2)
counts = st.integers(1, 3)
selectors = st.none() | st.sampled_from("ab").map(lambda model: [attribute_is("model", model)])
asked = st.none() | st.sampled_from(["1Gi", "8Gi", "15Gi"]).map(lambda size: {"memory": size})
plain = st.one_of(
    st.builds(lambda count, select: exactly("r", count, "gpu", select=select), counts, selectors),
    st.builds(lambda count: exactly("r", count, "mig"), counts),
    st.builds(lambda count, asks: exactly("r", count, "share", asks=asks), counts, asked),
)
either = st.lists(plain, min_size=1, max_size=2).map(
    lambda given: first_available("r", *({**each, "name": f"s{n}"} for n, each in enumerate(given)))
)
every = st.sampled_from(["gpu", "mig", "share"]).map(lambda cls: everything("r", cls))


def numbered(requests: list[JsonObject]) -> list[JsonObject]:
    return [{**request, "name": f"r{n}"} for n, request in enumerate(requests)]


claims = st.lists(plain | either | every, min_size=1, max_size=3).map(numbered)
counted_claims = st.lists(plain, min_size=1, max_size=3).map(numbered)


@st.composite
def hardware(draw: st.DrawFn) -> list[JsonObject]:
    """A node with GPUs, partitions of one GPU, and devices that can be shared; any of these may be absent."""
    gpus = [device(f"g{n}", attrs={"model": each}) for n, each in enumerate(draw(models))]
    parts = [
        device(f"p{n}", spends={"c": {"memory": each}}) for n, each in enumerate(draw(memories))
    ]
    shares = [
        shared(f"s{n}", {"memory": capacity(each, default="5Gi")})
        for n, each in enumerate(draw(sizes))
    ]
    return [
        piece(gpus),
        *partitioned(parts, {"c": {"memory": "10Gi"}}, driver=MIG, pool="mig", nodeName=NODE),
        piece(shares, driver=SHARE, pool="share"),
    ]


def with_claim(slices: list[JsonObject], requests: list[JsonObject]) -> ClusterState:
    return cluster(*slices, templates={"t": requests}, classes=CLASSES, nodes=[THE_NODE])


@given(hardware(), claims, st.sampled_from([Rules(), KUEUE]))
def test_prices_are_never_negative_and_can_be_counted(
    slices: list[JsonObject], requests: list[JsonObject], rules: Rules
) -> None:
    """Every charge is a number of an int64 that is not below zero, and the bill adds up to the charges."""
    found = price(with_claim(slices, requests), pods("t"), mappings=MAPPINGS, rules=rules)
    if isinstance(found, Charges):
        assert all(0 <= amount <= INT64_MAX for amount in found.charges.values())
        total = dict.fromkeys(found.charges, 0)
        for item in found.items:
            total[item.resource] += item.amount
        assert total == found.charges


@given(hardware(), counted_claims, st.integers(1, INT64_MAX))
def test_prices_grow_with_what_is_asked_for(
    slices: list[JsonObject], requests: list[JsonObject], more: int
) -> None:
    """Whoever asks for more devices never pays less, and what has no price for few has none for more."""
    last = requests[-1]["exactly"]
    larger = {**requests[-1], "exactly": {**last, "count": min(INT64_MAX, last["count"] + more)}}
    few = price(with_claim(slices, requests), pods("t"), mappings=MAPPINGS)
    many = price(with_claim(slices, [*requests[:-1], larger]), pods("t"), mappings=MAPPINGS)
    if isinstance(many, Charges):
        assert isinstance(few, Charges)
        assert few.charges.keys() == many.charges.keys()
        assert all(few.charges[name] <= amount for name, amount in many.charges.items())


@given(hardware(), claims)
def test_what_is_allocated_was_paid_for(
    slices: list[JsonObject], requests: list[JsonObject]
) -> None:
    """A claim that the allocator serves had a price, and its devices cost no more than that; counted ones cost just that."""
    state = with_claim(slices, requests)
    asked = convert(ResourceClaim, claim(*requests))
    view = state.inventory.view(convert(Node, THE_NODE), Ledger())
    plan = search(view, [asked])
    if not isinstance(plan, Plan):
        return
    found = price(state, pods("t"), mappings=MAPPINGS)
    assert isinstance(found, Charges), found.message
    status = ResourceClaimStatus(allocation=plan.claims[0].allocation)
    cost = allocated_amounts(
        [replace(asked, status=status)], state, pricing(state, MAPPINGS).mappings
    )
    assert cost is not None
    assert true_up(found.charges, cost).excess == {}
    if all("exactly" in request for request in requests):
        assert found.charges.get("gpus", 0) == cost.get("gpus", 0)


@given(hardware(), claims, st.integers(1, 5))
def test_prices_are_those_of_one_pod(
    slices: list[JsonObject], requests: list[JsonObject], count: int
) -> None:
    """How many pods there are decides whether there is a price, and not what a pod costs."""
    state = with_claim(slices, requests)
    one = price(state, pods("t"), mappings=MAPPINGS)
    many = price(state, pods("t"), mappings=MAPPINGS, count=count)
    if isinstance(many, Charges):
        assert isinstance(one, Charges)
        assert one.charges == many.charges
