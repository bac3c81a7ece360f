"""What a plan says about the cost of what is planned."""

from __future__ import annotations

from collections.abc import Mapping

from drayman.api.codec import to_dict
from drayman.placement.price_table import read_price_table
from drayman.placement.prices import PRICE, PriceTable
from drayman.placement.world import World
from drayman.simulate.copying import Wanted
from drayman.simulate.plan_report import PlanReport
from drayman.simulate.planning import plan
from simulate.cluster import alone, claim, cluster, held, node, wanted, workload

TYPE = {"node.kubernetes.io/instance-type": "big"}
TABLE = read_price_table("prices.yaml", b"currency: EUR\ninstanceTypes: {big: 12}")


def priced(nodes: Mapping[str, dict[str, str]], devices: int = 4, **objects: object) -> World:
    made = tuple(node(name, labels=labels) for name, labels in nodes.items())
    return cluster(dict.fromkeys(nodes, devices), nodes=made, **objects)


def report(world: World, asked: Wanted, prices: PriceTable = TABLE, **options: int) -> PlanReport:
    return plan(world.with_prices(prices), asked, **options)


def test_pods_cost_their_share_of_their_nodes() -> None:
    """Altogether, by workload and by pod; what waits costs nothing."""
    job = workload("Job", "train", "two", parallelism=2, completions=2)
    found = report(priced({"a": TYPE}), wanted(job, alone("p", "one")))
    assert [pod.cost_per_hour for pod in found.pods] == [6.0, 6.0, None]
    assert [each.cost_per_hour for each in found.workloads] == [12.0, None]
    assert found.cost is not None
    assert to_dict(found.cost) == {"perHour": 12.0, "currency": "EUR"}


def test_thirds_add_up() -> None:
    """Amounts are rounded to a millionth, and sums are those of the pods."""
    pods = [alone(name, "one") for name in "pqr"]
    found = report(priced({"a": {PRICE: "10"}}, 3), wanted(*pods))
    assert [pod.cost_per_hour for pod in found.pods] == [3.333333] * 3
    assert found.cost is not None
    assert found.cost.per_hour == 9.999999


def test_pods_on_nodes_without_a_price_are_counted() -> None:
    """The cost is said not to include them."""
    found = report(priced({"a": TYPE, "b": {}}, 1), wanted(alone("p", "one"), alone("q", "one")))
    assert found.cost is not None
    assert (found.cost.per_hour, found.cost.unpriced_pods) == (12.0, 1)


def test_without_prices_or_devices_there_is_no_cost() -> None:
    """Then the plan is as it was before there were any."""
    without = report(priced({"a": {}}), wanted(alone("p", "one")))
    assert without.cost is None
    assert "costPerHour" not in to_dict(without)["pods"][0]
    assert report(priced({"a": TYPE}), wanted(alone("p"))).cost is None


def test_what_pods_share_is_paid_once() -> None:
    """By the first of them; and what a claim has already is not part of the plan."""
    shared = wanted(alone("p", claim="c"), alone("q", claim="c"), claims=(claim("c"),))
    found = report(priced({"a": TYPE}), shared)
    assert [pod.cost_per_hour for pod in found.pods] == [3.0, 0.0]
    had = held("old", "a", "gpu-3")
    found = report(priced({"a": TYPE}, claims=(had,)), wanted(alone("p", claim="old")))
    assert [pod.cost_per_hour for pod in found.pods] == [0.0]


def test_labels_that_make_no_sense_are_named() -> None:
    """They cost nothing, but the plan says so."""
    found = report(priced({"a": {PRICE: "1.2.3"}}), wanted(alone("p", "one")), TABLE)
    assert found.fits
    assert found.price_faults == (
        "node a: label drayman.dev/price-per-hour: '1.2.3' is not a price such as \"32.77\", and is ignored",
    )
