"""What pod sets ask of quota: containers added up, defaults, exclusions, transformations and the price of devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.kueue_workload import PodSet, ReclaimablePods
from drayman.api.limit_ranges import LimitRange
from drayman.quota.amounts import MOST, amount_of, plus, quantity_of, times
from drayman.quota.demands import Charged, PodSetDemand, PodSetRequest, Unpriced
from drayman.quota.requests import demands_of
from drayman.quota.settings import ResourceSettings


def container(**requests: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {k: str(v) for k, v in requests.items()}}}


def demand(spec: dict[str, Any], settings: Any = None, **options: Any) -> PodSetDemand:
    """What one pod set asks for."""
    template = {"spec": spec, "metadata": {"annotations": options.get("annotations", {})}}
    pod_set = convert(PodSet, {"count": 2, "template": template})
    found = demands_of(
        "default",
        "default/w",
        [pod_set],
        options.get("reclaimable", ()),
        options.get("limit_ranges", ()),
        convert(ResourceSettings, settings or {}),
        options.get("pricing"),
    )
    assert not isinstance(found, Unpriced)
    return found[0]


def test_containers_that_run_together_add_up() -> None:
    """Init containers run one after the other, beside the sidecars that were started before them."""
    spec = {
        "initContainers": [
            {**container(cpu=1), "restartPolicy": "Always"},
            container(cpu=3),
        ],
        "containers": [container(cpu=1, memory=5), container(cpu="500m")],
        "overhead": {"cpu": "100m"},
    }
    assert demand(spec).per_pod == {"cpu": 4100, "memory": 5}


def test_limits_are_requests_where_none_are_given() -> None:
    """They come before what a LimitRange would default to, as they do for the pods."""
    limited = {"name": "c", "resources": {"limits": {"cpu": "2"}}}
    item = {"type": "Container", "defaultRequest": {"cpu": "1", "memory": "5"}}
    ranges = [convert(LimitRange, {"spec": {"limits": [item]}})]
    assert demand({"containers": [limited]}).per_pod == {"cpu": 2000}
    found = demand({"containers": [limited, container()]}, limit_ranges=ranges)
    assert found.per_pod == {"cpu": 3000, "memory": 10}


def test_a_share_of_a_gpu_is_charged_though_the_template_does_not_request_it() -> None:
    """By the resource that the API server adds to the pods: a ClusterQueue has to cover it. No node has to offer it."""
    for requests in ({"cpu": 1}, {"cpu": 1, "kai.scheduler/gpu-share": 1}):
        found = demand({"containers": [container(**requests)]}, annotations={"gpu-fraction": "0.5"})
        assert found.per_pod == {"cpu": 1000, "kai.scheduler/gpu-share": 1}
        assert found.of_nodes == {"cpu": 1000}


def test_prefixes_are_excluded() -> None:
    """What is excluded is not counted; what pods ask of nodes stays as it is."""
    settings = {"excludeResourcePrefixes": ["example.com/"]}
    found = demand({"containers": [container(**{"example.com/x": 1, "cpu": 1})]}, settings)
    assert found.per_pod == {"cpu": 1000}
    assert found.of_nodes == {"example.com/x": 1, "cpu": 1000}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"strategy": "Replace"}, {"memory": 20 * 2**30, "credits": 8, "size": 10}),
        ({}, {"gpu": 4, "memory": 20 * 2**30, "credits": 8, "size": 10}),
        ({"multiplyBy": "size"}, {"gpu": 4, "memory": 200 * 2**30, "credits": 80, "size": 10}),
        ({"multiplyBy": "none"}, {"gpu": 4, "memory": 20 * 2**30, "credits": 8, "size": 10}),
    ],
    ids=["in its place", "beside it", "times another", "times one that is not asked for"],
)
def test_transformations(rule: dict[str, Any], expected: dict[str, int]) -> None:
    """Other resources are charged for one that is asked for."""
    rule = {"input": "gpu", "outputs": {"memory": "5Gi", "credits": "2"}, **rule}
    found = demand({"containers": [container(gpu=4, size=10)]}, {"transformations": [rule]})
    assert found.per_pod == expected


class Priced:
    """Devices at a fixed price, in place of the name `example.com/gpu`."""

    def __init__(self, price: Charged | Unpriced) -> None:
        self._price = price

    def price_workload(
        self, namespace: str, pod_sets: Sequence[PodSetRequest], *, workload: str = ""
    ) -> Mapping[str, Charged] | Unpriced:
        price = self._price
        return price if isinstance(price, Unpriced) else {each.name: price for each in pod_sets}


def test_devices_are_charged_in_place_of_the_names_that_stand_for_them() -> None:
    """What was asked for under that name is not counted twice."""
    pricing = Priced(Charged({"gpus": 3}, frozenset({"example.com/gpu"})))
    asked = container(**{"example.com/gpu": 2, "cpu": 1})
    found = demand({"containers": [asked]}, pricing=pricing)
    assert found.per_pod == {"cpu": 1000, "gpus": 3}


def test_without_a_price_there_is_no_demand() -> None:
    """The first set that has none says why."""
    unpriced = Unpriced("no such template", retryable=True)
    pod_set = convert(PodSet, {"template": {"spec": {}}})
    settings = ResourceSettings()
    assert (
        demands_of("default", "default/w", [pod_set], (), (), settings, Priced(unpriced))
        is unpriced
    )


def test_reclaimable_pods_are_not_asked_for_again() -> None:
    """After an eviction only the rest is."""
    done = [ReclaimablePods(name="main", count=1)]
    assert demand({"containers": [container(cpu=1)]}, reclaimable=done).count == 1


def test_amounts_saturate() -> None:
    """What is too large for Kubernetes is as large as can be, and does not become negative."""
    assert times({"memory": 2**62}, 4) == {"memory": MOST}
    assert plus({"memory": MOST}, {"memory": 1}) == {"memory": MOST}


@pytest.mark.parametrize(("resource", "text"), [("cpu", "1500m"), ("memory", "3Gi"), ("x", "7")])
def test_amounts_and_quantities_are_the_same_numbers(resource: str, text: str) -> None:
    """An amount prints as the quantity that it was read from."""
    from drayman.api.quantity import Quantity

    amount = amount_of(resource, Quantity.parse(text))
    assert str(quantity_of(resource, amount)) == text


@pytest.mark.parametrize(
    ("resources", "item", "problem"),
    [
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, {}, "more than the limit of 1"),
        ({"requests": {"cpu": "2"}}, {"max": {"cpu": "1"}}, "more than the 1 of a LimitRange"),
        ({"limits": {"cpu": "2"}}, {"max": {"cpu": "1"}}, "more than the 1 of a LimitRange"),
        ({"requests": {"cpu": "1"}}, {"min": {"cpu": "2"}}, "less than the 2 of a LimitRange"),
        ({"requests": {"cpu": "1"}}, {"min": {"cpu": "1"}, "max": {"cpu": "1"}}, ""),
    ],
)
def test_pods_that_would_be_refused_get_no_quota(
    resources: dict[str, Any], item: dict[str, Any], problem: str
) -> None:
    """The field and the limit are named."""
    ranges = [convert(LimitRange, {"spec": {"limits": [{"type": "Container", **item}]}})]
    spec = {"containers": [{"name": "c", "resources": resources}]}
    pod_set = convert(PodSet, {"template": {"spec": spec}})
    found = demands_of("default", "default/w", [pod_set], (), ranges, ResourceSettings(), None)
    if problem:
        assert isinstance(found, Unpriced)
        assert problem in found.message
        assert found.message.startswith("spec.podSets[main].template.spec.containers[c]")
    else:
        assert not isinstance(found, Unpriced)
