"""The defects of Kueue's accounting (spec/quota.md 2.11): each is shown to be absent here."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.resource import DeviceClass, ResourceClaimTemplate, ResourceSlice
from drayman.quota.charging.outcome import Code
from drayman.quota.charging.rules import KUEUE, Rules
from drayman.quota.charging.waking import Changed, PriceDependents
from drayman.quota.demands import PodSetRequest
from oracle.build import capacity, device, device_class, exactly, partitioned, piece, shared
from oracle.selectors import GPU
from quota.charging.pricing_cases import (
    GI,
    attribute_is,
    capacity_source,
    charged,
    cluster,
    counter,
    extended,
    maps,
    pods,
    price,
    pricing,
    refused,
)

JsonObject = dict[str, Any]
NAME = "example.com/gpu"
EITHER = pytest.mark.parametrize("rules", [Rules(), KUEUE], ids=["ours", "kueue"])
D1 = 'device.attributes["gpu.example.com"].name == "d1"'


def named(*names: str) -> JsonObject:
    return piece([device(name, attrs={"name": name}) for name in names])


@EITHER
def test_1_sidecars_hold_their_devices_beside_the_others(rules: Rules) -> None:
    """A sidecar and a container with a device each are two devices, since both run at the same time."""
    state = cluster(classes=[extended("gpu", NAME)])
    pod = pods(sidecars=[{NAME: "1"}], containers=[{NAME: "1"}])
    assert charged(price(state, pod, mappings=(), rules=rules)) == {NAME: 1 + 1}


def test_2_implicit_names_are_devices_of_their_class() -> None:
    """They are charged as the class is, and their requests are not counted as ordinary ones; Kueue leaves them alone."""
    name = "deviceclass.resource.kubernetes.io/gpu"
    pod, state = pods(containers=[{name: "2"}]), cluster()
    found = price(state, pod)
    assert charged(found) == {"gpus": 2}
    assert found.replaced == {name}
    assert charged(price(state, pod, rules=KUEUE)) == {}
    unmapped = price(state, pod, mappings=())
    assert charged(unmapped) == {name: 2}


@EITHER
def test_3_selectors_see_whether_devices_can_be_shared(rules: Rules) -> None:
    """A selector that asks for it matches the devices that allow it, and no others."""
    state = cluster(
        piece(
            [
                shared("s", {"memory": capacity("80Gi")}),
                device("d", capacity={"memory": capacity("90Gi")}),
            ]
        ),
        templates={"t": [exactly(cls="share", select=["device.allowMultipleAllocations"])]},
    )
    assert charged(price(state, pods("t"), rules=rules)) == {"vram": 80 * GI}


def test_4_the_first_source_that_is_for_a_device_measures_it() -> None:
    """A pool of two models has a source for each: a request for one model is priced, and no device is charged twice."""
    parts = [
        device("a", attrs={"model": "a"}, spends={"s": {"memory": "10Gi", "room": "3Gi"}}),
        device("b", attrs={"model": "b"}, spends={"s": {"memory": "99Gi", "room": "7Gi"}}),
    ]
    sources = [counter("memory", select=attribute_is("model", "a")), counter("room", select="true")]
    mappings = [maps("gpu.memory", "mig", sources=sources)]
    templates = {
        "only-a": [exactly(cls="mig", select=[attribute_is("model", "a")])],
        "only-b": [exactly(cls="mig", select=[attribute_is("model", "b")])],
        "any": [exactly(cls="mig")],
    }
    state = cluster(
        *partitioned(parts, {"s": {"memory": "200Gi", "room": "20Gi"}}), templates=templates
    )
    costs = {name: charged(price(state, pods(name), mappings=mappings)) for name in templates}
    assert costs == {
        "only-a": {"gpu.memory": 10 * GI},
        "only-b": {"gpu.memory": 7 * GI},
        "any": {"gpu.memory": 10 * GI},
    }
    by_kueue = charged(price(state, pods("any"), mappings=mappings, rules=KUEUE))
    assert by_kueue == {"gpu.memory": 17 * GI}


def test_5_all_pods_and_claims_of_a_workload_need_devices() -> None:
    """Eight pods of a device each do not pass with one device, nor do two pod sets, nor two claims of a pod."""
    state = cluster(named("d1"), templates={"t": [exactly(select=["true"])]})
    found = refused(price(state, pods("t"), count=8))
    assert (found.code, found.retryable) == (Code.DEVICE_SHORTAGE, True)
    assert "for each of 8 pods" in found.message
    assert refused(price(state, pods("t", "t"))).code is Code.DEVICE_SHORTAGE
    asked = pricing(state)
    sets = [PodSetRequest(name, 1, pods("t")) for name in ("a", "b")]
    assert refused(asked.price_workload("default", sets)).code is Code.DEVICE_SHORTAGE
    assert charged(price(state, pods("t"))) == {"gpus": 1}
    assert charged(price(state, pods("t", "t"), rules=KUEUE)) == {"gpus": 2}


def test_5_the_first_request_that_gets_nothing_is_named() -> None:
    """Requests before it have their devices, and those after it are not looked at."""
    requests = [exactly(f"r{n}", select=["true"]) for n in range(6)]
    state = cluster(named("d1", "d2", "d3"), templates={"t": requests})
    found = refused(price(state, pods("t")))
    assert found.path.endswith("requests[3].exactly")
    assert "4 devices" in found.message


def test_5_a_workload_that_can_start_with_fewer_pods_needs_devices_for_those() -> None:
    """What partial admission may leave out need not be there."""
    state = cluster(named("d1", "d2"), templates={"t": [exactly(select=["true"])]})
    asked = pricing(state)
    found = asked.price_workload("default", [PodSetRequest("main", 8, pods("t"), min_count=2)])
    assert isinstance(found, dict)


@EITHER
def test_6_devices_are_matched_in_the_best_way_there_is(rules: Rules) -> None:
    """The first request could have either device, the second one only the first: there is a device for both."""
    requests = [exactly("a", select=["true"]), exactly("b", select=[D1])]
    state = cluster(named("d1", "d2"), templates={"t": requests})
    assert charged(price(state, pods("t"), rules=rules)) == {"gpus": 2}


@EITHER
def test_7_old_and_incomplete_slices_do_not_count(rules: Rules) -> None:
    """Selectors match devices of the newest generation of a pool, if all of it is there."""
    old, new = piece(["old-0", "old-1"], generation=1), piece(["new"], generation=2)
    partial = piece(["x", "y", "z"], pool="partial", of=2)
    state = cluster(old, new, partial, templates={"t": [exactly(count=2, select=["true"])]})
    found = refused(price(state, pods("t"), rules=rules))
    assert "2 wanted, 1 match" in found.message


@EITHER
def test_8_admin_access_takes_no_device_from_others(rules: Rules) -> None:
    """A request that looks at the only device leaves it to the one that uses it."""
    requests = [exactly("a", admin=True, select=["true"]), exactly("b", select=["true"])]
    state = cluster(named("d1"), templates={"t": requests})
    assert charged(price(state, pods("t"), rules=rules)) == {"gpus": 1}


@EITHER
def test_8_devices_that_can_be_shared_serve_several_requests(rules: Rules) -> None:
    """Two requests of a claim may have shares of one device, but one request has no device twice."""
    slices = piece([shared("s", {"memory": capacity("80Gi", default="1Gi")})])
    both = [exactly(name, cls="gpu", select=["true"]) for name in ("a", "b")]
    state = cluster(slices, templates={"t": both, "u": [exactly(count=2, select=["true"])]})
    assert charged(price(state, pods("t"), rules=rules)) == {"gpus": 2}
    assert refused(price(state, pods("u"), rules=rules)).code is Code.DEVICE_SHORTAGE


@EITHER
def test_9_more_capacity_than_a_device_has_is_refused(rules: Rules) -> None:
    """With or without a policy."""
    state = cluster(
        piece([shared("s", {"memory": capacity("80Gi")})]),
        templates={"t": [exactly(cls="share", asks={"memory": "90Gi"})]},
    )
    found = refused(price(state, pods("t"), rules=rules))
    assert (found.code, found.retryable) == (Code.POLICY_REJECTS, False)


def test_10_a_flavor_has_prices_of_its_own() -> None:
    """A large device somewhere does not raise the price on nodes that have small ones."""
    small = [device("s", spends={"c": {"memory": "5Gi"}})]
    large = [device("l", spends={"c": {"memory": "80Gi"}})]
    counters = {"c": {"memory": "80Gi"}}
    state = cluster(
        *partitioned(small, counters, pool="small", nodeName="n-small"),
        *partitioned(large, counters, pool="large", nodeName="n-large"),
        templates={"t": [exactly(cls="mig")]},
        nodes=[
            {"metadata": {"name": f"n-{size}", "labels": {"size": size}}}
            for size in ("small", "large")
        ],
    )
    assert charged(price(state, pods("t"))) == {"gpu.memory": 80 * GI}
    assert charged(price(state, pods("t"), flavor={"size": "small"})) == {"gpu.memory": 5 * GI}
    assert charged(price(state, pods("t"), flavor={"size": "large"})) == {"gpu.memory": 80 * GI}
    nowhere = refused(price(state, pods("t"), flavor={"size": "medium"}))
    assert (nowhere.code, nowhere.retryable) == (Code.DEVICE_SHORTAGE, True)


@pytest.mark.parametrize("cls", ["share", "gpu"], ids=["measured", "counted"])
def test_11_devices_without_a_capacity_that_is_asked_for_do_not_count(cls: str) -> None:
    """The allocator would refuse every one of them: there is no price for what can never be scheduled."""
    asks = {"memory": "1Gi", "threads": "4"}
    slices = piece([shared("s", {"memory": capacity("80Gi")})])
    state = cluster(slices, templates={"t": [exactly(cls=cls, asks=asks)]})
    assert refused(price(state, pods("t"))).code in (Code.POLICY_REJECTS, Code.DEVICE_SHORTAGE)
    both = shared("b", {"memory": capacity("80Gi"), "threads": capacity("8")})
    state.set_slice(convert(ResourceSlice, piece([both], pool="more")))
    expected = {"vram": 1 * GI} if cls == "share" else {"gpus": 1}
    assert charged(price(state, pods("t"))) == expected


@pytest.mark.parametrize("cls", ["gpu", "mig", "share"])
def test_12_a_selector_that_fails_on_a_device_may_pass(cls: str) -> None:
    """It depends on the devices, so it is looked at again when they change, in whatever way devices are charged."""
    state = cluster(
        piece([device("d")]), templates={"t": [exactly(cls=cls, select=[attribute_is("x", "y")])]}
    )
    found = refused(price(state, pods("t")))
    assert (found.code, found.retryable) == (Code.SELECTOR_INVALID, True)
    changed = Changed.of_slice(None, convert(ResourceSlice, piece([device("d")])))
    assert changed.concerns(found.depends_on)


def test_13_every_change_that_matters_wakes_whoever_waits() -> None:
    """Slices, classes and templates that appear reach those who lack them, and nobody else."""
    state, waiting = (
        cluster(classes=[], templates={"t": [exactly(select=["true"])]}),
        PriceDependents(),
    )
    asked = pricing(state)

    def tried(*names: str) -> list[str | None]:
        codes = []
        for name in names:
            found = asked.price("default", "main", pods(name))
            waiting.note(name, found.depends_on)
            codes.append(None if not hasattr(found, "code") else str(found.code))
        return codes

    assert tried("t", "u") == ["ClassMissing", "TemplateMissing"]
    made = convert(DeviceClass, device_class("gpu"))
    state.set_class(made)
    assert waiting.concerned_by(Changed.of_class(None, made)) == ["t"]
    assert tried("t") == ["DeviceShortage"]
    slice_ = convert(ResourceSlice, named("d1"))
    state.set_slice(slice_)
    assert waiting.concerned_by(Changed.of_slice(None, slice_)) == ["t"]
    assert tried("t") == [None]
    late = convert(
        ResourceClaimTemplate,
        {
            "metadata": {"name": "u", "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [exactly()]}}},
        },
    )
    state.set_template(late)
    assert waiting.concerned_by(Changed.of_template(late)) == ["u"]
    assert tried("u") == [None]


@EITHER
@pytest.mark.parametrize("in_mapping", ["memory", f"{GPU}/memory"])
@pytest.mark.parametrize("in_request", ["memory", f"{GPU}/memory"])
@pytest.mark.parametrize("in_slice", ["memory", f"{GPU}/memory"])
def test_capacities_may_be_named_in_full(
    in_mapping: str, in_request: str, in_slice: str, rules: Rules
) -> None:
    """Within the domain of a driver both names mean the same, wherever they stand."""
    state = cluster(
        piece([shared("s", {in_slice: capacity("80Gi")})]),
        templates={"t": [exactly(cls="share", asks={in_request: "20Gi"})]},
    )
    mappings = [maps("vram", "share", sources=[capacity_source(in_mapping)])]
    assert charged(price(state, pods("t"), mappings=mappings, rules=rules)) == {"vram": 20 * GI}
