"""What Kueue cannot charge (spec/quota.md 2.10), and what it costs here."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.resource import DeviceTaintRule, ResourceClaim
from drayman.quota.charging.outcome import Code
from drayman.quota.charging.pricing import DevicePricing
from drayman.quota.demands import PodSetRequest
from oracle.build import (
    capacity,
    device,
    everything,
    exactly,
    first_available,
    label_selector,
    partitioned,
    piece,
    shared,
    taint,
    toleration,
)
from oracle.selectors import GPU
from quota.charging.pricing_cases import (
    GI,
    attribute_is,
    charged,
    cluster,
    pods,
    price,
    pricing,
    refused,
    template,
)

JsonObject = dict[str, Any]


def node(name: str, **labels: str) -> JsonObject:
    return {"metadata": {"name": name, "labels": labels}}


def on(name: str, *devices: Any, **fields: Any) -> JsonObject:
    """The devices of a node."""
    return piece(devices, pool=name, nodeName=name, **fields)


def claim(name: str, *requests: JsonObject, **fields: Any) -> JsonObject:
    devices = {"requests": list(requests), **fields}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"devices": devices},
    }


# Claims that pods name.


def test_a_claim_that_pods_share_is_charged_once() -> None:
    """However many pods there are, and however many pod sets: the first one that names it is charged."""
    state = cluster(claims=[claim("c", exactly(count=2))], templates={"t": [exactly()]})
    sets = [
        PodSetRequest("a", 3, pods("t", claims=["c"])),
        PodSetRequest("b", 2, pods(claims=["c"])),
    ]
    found = pricing(state).price_workload("default", sets)
    assert isinstance(found, dict)
    assert [(dict(each.charges), dict(each.once)) for each in found.values()] == [
        ({"gpus": 1}, {"gpus": 2}),
        ({}, {}),
    ]


def test_a_claim_that_has_its_devices_costs_what_they_cost() -> None:
    """The request could have had the large partition; it got the small one."""
    parts = [
        device("s", spends={"c": {"memory": "5Gi"}}),
        device("l", spends={"c": {"memory": "20Gi"}}),
    ]
    slices = partitioned(parts, {"c": {"memory": "40Gi"}})
    waits = claim("c", exactly(cls="mig"))
    result = {"request": "req", "driver": GPU, "pool": "node-1", "device": "s"}
    allocated = {**waits, "status": {"allocation": {"devices": {"results": [result]}}}}
    before, after = (cluster(*slices, claims=[each]) for each in (waits, allocated))
    assert _once(before) == {"gpu.memory": 20 * GI}
    assert _once(after) == {"gpu.memory": 5 * GI}


def test_a_claim_with_devices_that_nothing_is_charged_for_has_no_price() -> None:
    """Having its devices already does not make it free."""
    held = claim("c", exactly())
    result = {"request": "req", "driver": GPU, "pool": "node-1", "device": "d"}
    held["status"] = {"allocation": {"devices": {"results": [result]}}}
    found = refused(price(cluster(piece(["d"]), claims=[held]), pods(claims=["c"]), mappings=()))
    assert found.code is Code.CLASS_UNMAPPED
    assert found.path.startswith("resourceclaim/c spec.devices.requests[0]")


def _once(state: Any) -> dict[str, int]:
    found = price(state, pods(claims=["c"]))
    assert charged(found) == {}
    return dict(found.once)


def test_a_claim_that_is_missing_may_come() -> None:
    """Its price is known when it is there."""
    state = cluster()
    found = refused(price(state, pods(claims=["c"])))
    assert (found.code, found.retryable) == (Code.CLAIM_MISSING, True)
    state.set_claim(convert(ResourceClaim, claim("c", exactly())))
    assert _once(state) == {"gpus": 1}


# All devices of a node.


def test_all_devices_cost_as_many_as_the_node_with_most_of_them_has() -> None:
    """Any node may be the one; in a flavor, any of its nodes."""
    state = cluster(
        on("n1", "a"),
        on("n2", "a", "b", "c"),
        templates={"t": [everything()]},
        nodes=[node("n1", size="s"), node("n2", size="l")],
    )
    assert charged(price(state, pods("t"))) == {"gpus": 3}
    assert charged(price(state, pods("t"), flavor={"size": "s"})) == {"gpus": 1}


def test_all_devices_of_a_node_include_those_that_many_nodes_reach() -> None:
    """Devices of a fabric count on the nodes that they are for."""
    reach = {"nodeSelector": label_selector("zone", "a")}
    state = cluster(
        on("n1", "a"),
        on("n2", "a", "b"),
        piece(["f0", "f1"], pool="fabric", **reach),
        piece(["x"], pool="everywhere", allNodes=True),
        templates={"t": [everything()]},
        nodes=[node("n1", zone="a"), node("n2", zone="b")],
    )
    assert charged(price(state, pods("t"))) == {"gpus": 1 + 2 + 1}


def test_all_devices_are_measured_together() -> None:
    """The node where they are worth most counts, not the one with most of them."""
    counters = {"c": {"memory": "80Gi"}}
    many = [device(f"s{n}", spends={"c": {"memory": "5Gi"}}) for n in range(3)]
    large = [device("l", spends={"c": {"memory": "40Gi"}})]
    state = cluster(
        *partitioned(many, counters, pool="n1", nodeName="n1"),
        *partitioned(large, counters, pool="n2", nodeName="n2"),
        templates={"t": [everything(cls="mig")]},
    )
    assert charged(price(state, pods("t"))) == {"gpu.memory": 40 * GI}


def test_all_devices_need_one_that_matches() -> None:
    """None is not all."""
    state = cluster(templates={"t": [everything()]})
    found = refused(price(state, pods("t")))
    assert (found.code, found.retryable) == (Code.DEVICE_SHORTAGE, True)


# Alternatives.


def test_alternatives_cost_as_much_as_the_dearest() -> None:
    """Under each name the most that any of them asks for."""
    either = first_available("r", exactly("a", 2), exactly("b", 1), exactly("c", 3, "nic"))
    state = cluster(templates={"t": [either]})
    assert charged(price(state, pods("t"))) == {"gpus": 2, "nics": 3}


def test_alternatives_without_devices_cost_nothing() -> None:
    """What no device serves will not be chosen; if that goes for all of them there is no price."""
    large = exactly("large", 4, select=[attribute_is("model", "large")])
    small = exactly("small", 1, select=[attribute_is("model", "small")])
    state = cluster(
        on("n", device("s", attrs={"model": "small"})),
        templates={"t": [first_available("r", large, small)], "u": [first_available("r", large)]},
    )
    assert charged(price(state, pods("t"))) == {"gpus": 1}
    assert refused(price(state, pods("u"))).code is Code.DEVICE_SHORTAGE


def test_every_alternative_has_to_make_sense() -> None:
    """A class that is not charged could be chosen and used for nothing."""
    either = first_available("r", exactly("a"), exactly("b", cls="other"))
    state = cluster(templates={"t": [either]})
    found = refused(price(state, pods("t")))
    assert found.code is Code.CLASS_MISSING
    assert "firstAvailable[1]" in found.path


# Taints.

TAINTED = on("n", device("d0", taints=[taint("broken")]), device("d1"))


def test_tainted_devices_are_there_for_requests_that_tolerate_them() -> None:
    """They shrink what matches for all others."""
    tolerant = exactly(count=2, select=["true"], tolerates=[toleration("broken")])
    templates = {"t": [exactly(count=2, select=["true"])], "u": [tolerant]}
    state = cluster(TAINTED, templates=templates)
    assert "2 wanted, 1 match" in refused(price(state, pods("t"))).message
    assert charged(price(state, pods("u"))) == {"gpus": 2}


def test_rules_that_taint_devices_count_as_well() -> None:
    """And cease to when they are gone."""
    rule = {
        "metadata": {"name": "r"},
        "spec": {"deviceSelector": {"driver": GPU}, "taint": taint("broken")},
    }
    state = cluster(on("n", "d0"), templates={"t": [exactly(select=["true"])]}, rules=[rule])
    assert refused(price(state, pods("t"))).code is Code.DEVICE_SHORTAGE
    state.remove_taint_rule(convert(DeviceTaintRule, rule))
    assert charged(price(state, pods("t"))) == {"gpus": 1}


def test_all_devices_leave_out_tainted_ones() -> None:
    """They would not be allocated."""
    state = cluster(TAINTED, templates={"t": [everything()]})
    assert charged(price(state, pods("t"))) == {"gpus": 1}


# Constraints.

NUMA = f"{GPU}/numa"


@pytest.mark.parametrize("numa", [(0, 0), (0, 1)], ids=["met", "not met"])
def test_constraints_that_no_node_can_meet_are_named(numa: tuple[int, int]) -> None:
    """Two devices that have to agree: on a node where none do, there is no price."""
    devices = [device(f"d{n}", attrs={"numa": value}) for n, value in enumerate(numa)]
    state = cluster(on("n", *devices), nodes=[node("n")])
    state.set_template(template("t", [exactly(count=2)], constraints=[{"matchAttribute": NUMA}]))
    found = price(state, pods("t"))
    if numa == (0, 0):
        assert charged(found) == {"gpus": 2}
    else:
        reason = refused(found)
        assert (reason.code, reason.retryable) == (Code.UNSATISFIABLE, True)
        assert reason.path == "spec.podSets[main].template.spec.resourceClaims"


def test_constraints_are_met_on_some_node_of_the_flavor() -> None:
    """A node elsewhere does not help."""
    state = cluster(
        on("n1", device("a", attrs={"numa": 0}), device("b", attrs={"numa": 0})),
        on("n2", device("a", attrs={"numa": 0}), device("b", attrs={"numa": 1})),
        nodes=[node("n1", size="s"), node("n2", size="l")],
    )
    state.set_template(template("t", [exactly(count=2)], constraints=[{"matchAttribute": NUMA}]))
    assert charged(price(state, pods("t"))) == {"gpus": 2}
    assert refused(price(state, pods("t"), flavor={"size": "l"})).code is Code.UNSATISFIABLE


def test_devices_in_use_are_no_reason_against_a_price() -> None:
    """Whether there is room now is not a matter of the price."""
    used = claim("c", exactly(count=1))
    result = {"request": "req", "driver": GPU, "pool": "n", "device": "d0"}
    used["status"] = {"allocation": {"devices": {"results": [result]}}}
    state = cluster(on("n", device("d0", attrs={"numa": 0})), nodes=[node("n")], claims=[used])
    state.set_template(
        template("t", [exactly(select=["true"])], constraints=[{"matchAttribute": NUMA}])
    )
    assert charged(price(state, pods("t"))) == {"gpus": 1}


# Selectors that take long.

MANY = "[1, 2, 3, 4, 5, 6, 7, 8]"
COSTLY = f"{MANY}.all(a, {MANY}.all(b, a + b < 99))"


def test_selectors_that_take_long_are_looked_at_in_parts() -> None:
    """Nobody else has to wait for them; every attempt goes on from where the last one ended."""
    devices = [device(f"d{n}", attrs={"serial": f"{n}"}) for n in range(20)]
    each = f'{COSTLY} && device.attributes["{GPU}"].serial != ""'
    state = cluster(on("n", *devices), templates={"t": [exactly(count=20, select=[each])]})
    mappings = pricing(state).mappings
    asked = DevicePricing(state, mappings, most_work=20_000)
    attempts = [asked.price("default", "main", pods("t")) for _ in range(20)]
    first = refused(attempts[0])
    assert (first.code, first.retryable) == (Code.UNFINISHED, True)
    assert (first.depends_on.templates, first.depends_on.classes) == ({("default", "t")}, {"gpu"})
    assert charged(attempts[-1]) == {"gpus": 20}


def test_a_single_long_look_is_done_at_once() -> None:
    """What cannot be divided is not put off for ever."""
    long = f"{MANY}.all(c, {MANY}.all(d, {COSTLY}))"
    state = cluster(on("n", "d0"), templates={"t": [exactly(select=[long])]})
    assert charged(price(state, pods("t"))) == {"gpus": 1}


# What messages and bills say.


def test_a_shortage_says_where_devices_were_left_out() -> None:
    """How many the class has, which selector refuses how many, which are tainted, and which are still being published."""
    state = cluster(
        on(
            "n",
            device("a", attrs={"model": "a"}),
            device("b", attrs={"model": "b"}),
            device("t", attrs={"model": "a"}, taints=[taint("broken")]),
        ),
        piece([device("p", attrs={"model": "a"})], pool="partial", of=2),
        templates={"t": [exactly(count=3, select=["true", attribute_is("model", "a")])]},
    )
    assert refused(price(state, pods("t"))).message.endswith(
        "class gpu: 3 wanted, 1 match (3 of the class, 1 refused by selectors[1], 1 tainted,"
        " 1 more in pools that are still being published)"
    )


def test_a_bill_says_how_amounts_come_about() -> None:
    """Each request is an entry with its class, its number of devices and the reason for the amount."""
    state = cluster(
        piece(
            [shared("s", {"memory": capacity("80Gi")}), shared("l", {"memory": capacity("90Gi")})]
        ),
        templates={
            "t": [exactly("gpu", 2), exactly("part", cls="share"), exactly("look", admin=True)]
        },
    )
    found = price(state, pods("t"))
    charged(found)
    said = [
        (item.source, item.request, item.resource, item.devices, item.why) for item in found.items
    ]
    assert said == [
        ("template t", "gpu", "gpus", 2, "2 devices"),
        ("template t", "part", "vram", 1, "memory 90Gi x 1, the dearest of 2 kinds"),
        ("template t", "look", "", 1, "admin access costs nothing"),
    ]
