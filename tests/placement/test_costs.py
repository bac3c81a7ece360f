"""What devices cost is their share of the price of their node."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.resource import DeviceRequestAllocationResult as Result
from drayman.api.resource import ResourceSlice
from drayman.drivers.profiles import parse_profiles
from drayman.inventory.inventory import Inventory
from drayman.inventory.ledger import Ledger
from drayman.placement.costs import DeviceCosts, parts_of
from oracle.build import device, partitioned, piece, shared

GPU, NIC, CPU = "gpu.example.com", "nic.example.com", "cpu.example.com"
PRICE = 80_000_000
Objects = list[dict[str, Any]]


def costs(slices: Objects, price: int | None = PRICE) -> DeviceCosts:
    """Of a node `n` with these slices."""
    inventory = Inventory()
    for each in slices:
        inventory.apply_slice(convert(ResourceSlice, each))
    node = convert(Node, {"metadata": {"name": "n"}})
    return DeviceCosts(lambda _: price, lambda _: inventory.view(node, Ledger()))


def plain(number: int, driver: str = GPU, **scope: Any) -> dict[str, Any]:
    names = [device(f"d{each}") for each in range(number)]
    where = scope or {"nodeName": "n"}
    return piece(names, driver=driver, pool=f"n-{driver}", name=f"n-{driver}", **where)


def result(name: str, driver: str = GPU, **fields: Any) -> Result:
    pool = fields.pop("pool", f"n-{driver}")
    return convert(
        Result, {"request": "r", "driver": driver, "pool": pool, "device": name, **fields}
    )


MIG = partitioned(
    [
        device("whole", spends={"s": {"memory": 80, "slices": 7}}),
        device("half", spends={"s": {"memory": 40, "slices": 3}}),
        device("seventh", spends={"s": {"memory": 10, "slices": 1}}),
    ],
    {"s": {"memory": 80, "slices": 7}},
    driver=GPU,
    pool="mig",
    nodeName="n",
)
SHARED = piece(
    [shared("s0", {"memory": {"value": "80"}, "cores": {"value": "10"}})],
    driver=GPU,
    pool="shared",
    name="shared",
    nodeName="n",
)

CASES: dict[str, tuple[Objects, list[Result], Fraction]] = {
    "two of eight": ([plain(8)], [result("d0"), result("d1")], Fraction(1, 4)),
    "a network card is included in the price of the accelerators": (
        [plain(8), plain(8, NIC)],
        [result("d0"), result("d0", NIC)],
        Fraction(1, 8),
    ),
    "a network card alone costs nothing beside accelerators": (
        [plain(8), plain(8, NIC)],
        [result("d0", NIC)],
        Fraction(0),
    ),
    "where there is nothing else, network cards are what is paid for": (
        [plain(4, NIC)],
        [result("d0", NIC)],
        Fraction(1, 4),
    ),
    "processors come before network cards": (
        [plain(4, NIC), plain(2, CPU)],
        [result("d0", NIC), result("d0", CPU)],
        Fraction(1, 2),
    ),
    "admin access holds nothing": ([plain(8)], [result("d0", adminAccess=True)], Fraction(0)),
    "a partition costs what it takes of its counters": (
        MIG,
        [result("half", pool="mig")],
        Fraction(1, 2),
    ),
    "the counter of which it takes the most counts": (
        MIG,
        [result("seventh", pool="mig")],
        Fraction(1, 7),
    ),
    "the whole costs all": (MIG, [result("whole", pool="mig")], Fraction(1)),
    "a GPU in partitions is one GPU": (
        [*MIG, plain(1)],
        [result("half", pool="mig"), result("d0")],
        Fraction(1, 4) + Fraction(1, 2),
    ),
    "a share costs what it takes of the capacity": (
        [SHARED],
        [result("s0", pool="shared", consumedCapacity={"memory": "20", "cores": "1"})],
        Fraction(1, 4),
    ),
    "a device that several nodes reach costs nothing": (
        [plain(2), plain(2, NIC, allNodes=True)],
        [result("d0", NIC)],
        Fraction(0),
    ),
    "a device that is gone costs nothing": ([plain(2)], [result("d7")], Fraction(0)),
    "nothing costs nothing": ([plain(2)], [], Fraction(0)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_share_of_the_price(name: str) -> None:
    """Of a node that costs 80."""
    slices, results, share = CASES[name]
    assert costs(slices).of("n", results) == PRICE * share


def test_without_a_price_there_is_no_cost() -> None:
    """That is another answer than that it costs nothing."""
    assert costs([plain(8)], None).of("n", [result("d0")]) is None


@pytest.mark.parametrize("profile", ["dgx-h100", "dgx-h100-mig", "gb200-nvl72", "cpu"])
def test_the_wholes_of_a_node_cost_its_price(profile: str) -> None:
    """Whatever else it has."""
    (wanted,) = parse_profiles(f"{profile}=1")
    made = next(iter(wanted.profile.unit(0)))
    inventory = Inventory()
    for each in made.slices:
        inventory.apply_slice(each)
    parts = parts_of(inventory.view(made.node, Ledger()), made.node.metadata.name)
    if not parts:
        assert not made.slices
        return
    largest: dict[str, Fraction] = {}
    for record, part in parts.values():
        names = [used for used, _ in record.counters] or [str(record.id)]
        for name in names:
            largest[name] = max(largest.get(name, Fraction(0)), part)
    assert sum(largest.values()) == 1


@given(
    st.integers(1, 9),
    st.integers(0, 9),
    st.integers(0, 10**12),
    st.lists(st.booleans(), max_size=18),
)
def test_all_holders_together_pay_the_price_of_the_node(
    gpus: int, nics: int, price: int, first: list[bool]
) -> None:
    """However its devices are divided among them, nothing is paid twice."""
    slices = [plain(gpus), plain(nics, NIC)] if nics else [plain(gpus)]
    names = [result(f"d{n}") for n in range(gpus)] + [result(f"d{n}", NIC) for n in range(nics)]
    one = [each for each, mine in zip(names, [*first, *[False] * 18], strict=False) if mine]
    found = costs(slices, price)
    mine, theirs = found.of("n", one), found.of("n", [each for each in names if each not in one])
    assert mine is not None
    assert theirs is not None
    assert mine + theirs == price
