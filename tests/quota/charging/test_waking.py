"""Whose price a change concerns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from drayman.placement.state import ClusterState
from drayman.quota.charging.mapping_rules import read_mappings
from drayman.quota.charging.outcome import ANY_DRIVER, Dependencies
from drayman.quota.charging.waking import Changed, KeptPrices, PriceDependents, question_of
from drayman.quota.demands import PodSetRequest
from oracle.build import NODE, device_class, exactly, piece, taint
from oracle.selectors import GPU, NIC
from quota.charging.pricing_cases import (
    ON_GPU,
    ON_NIC,
    cluster,
    extended,
    maps,
    pods,
    pricing,
    template,
)


def rule(**selector: str) -> DeviceTaintRule:
    spec = {"deviceSelector": selector, "taint": taint("broken")}
    return convert(DeviceTaintRule, {"metadata": {"name": "r"}, "spec": spec})


def slice_(driver: str, *devices: str) -> ResourceSlice:
    return convert(ResourceSlice, piece(devices, driver=driver))


def mappings(*given: Any) -> Any:
    return read_mappings({"resources": {"deviceClassMappings": list(given)}})


GPU_CLASS = convert(DeviceClass, device_class("gpu"))
CLAIM = convert(ResourceClaim, {"metadata": {"name": "c", "namespace": "default"}})
PRICES = {
    "class": Dependencies(classes=frozenset({"gpu"})),
    "name": Dependencies(names=frozenset({"example.com/gpu"})),
    "implicit name": Dependencies(names=frozenset({"deviceclass.resource.kubernetes.io/gpu"})),
    "template": Dependencies(templates=frozenset({("default", "t")})),
    "claim": Dependencies(claims=frozenset({("default", "c")})),
    "driver": Dependencies(drivers=frozenset({GPU})),
    "any driver": Dependencies(drivers=frozenset({ANY_DRIVER})),
    "nothing": Dependencies(),
}
CHANGES = {
    "a class appears": (Changed.of_class(None, GPU_CLASS), {"class", "implicit name"}),
    "a class takes on a name": (
        Changed.of_class(GPU_CLASS, convert(DeviceClass, extended("gpu", "example.com/gpu"))),
        {"class", "name", "implicit name"},
    ),
    "a class stays as it is": (Changed.of_class(GPU_CLASS, GPU_CLASS), set[str]()),
    "a slice appears": (Changed.of_slice(None, slice_(GPU, "d")), {"driver", "any driver"}),
    "a slice of another driver": (Changed.of_slice(slice_(NIC), None), {"any driver"}),
    "a slice stays as it is": (Changed.of_slice(slice_(GPU), slice_(GPU)), set[str]()),
    "a template appears": (Changed.of_template(template("t", [])), {"template"}),
    "another template": (Changed.of_template(template("t", [], namespace="x")), set[str]()),
    "a claim changes": (Changed.of_claim(CLAIM), {"claim"}),
    "a rule for a driver": (
        Changed.of_taint_rule(None, rule(driver=GPU)),
        {"driver", "any driver"},
    ),
    "a rule for all devices": (Changed.of_taint_rule(rule(), None), {"driver", "any driver"}),
    "a rule stays as it is": (Changed.of_taint_rule(rule(), rule()), set[str]()),
    "nodes change": (Changed.of_nodes(), {"driver", "any driver"}),
    "a mapping appears": (Changed.of_mappings(mappings(), mappings(maps("m", "gpu"))), {"class"}),
    "a mapping of another class": (
        Changed.of_mappings(mappings(maps("m", "gpu")), mappings(maps("m", "gpu", "nic"))),
        set[str](),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_concern(name: str) -> None:
    """The index finds exactly the prices that depend on what has changed."""
    changed, concerned = CHANGES[name]
    waiting = PriceDependents()
    for key, price in PRICES.items():
        waiting.note(key, price)
    assert set(waiting.concerned_by(changed)) == concerned
    assert {key for key, price in PRICES.items() if changed.concerns(price)} == concerned


names = st.frozensets(st.sampled_from("abc"), max_size=2)
keys = st.frozensets(st.tuples(st.sampled_from("xy"), st.sampled_from("ab")), max_size=2)
drivers = st.frozensets(st.sampled_from(["a", "b", ANY_DRIVER]), max_size=2)
prices = st.builds(Dependencies, names, names, keys, keys, drivers)
changes = st.builds(Changed, names, names, keys, keys, drivers)
events = st.lists(st.tuples(st.sampled_from("pqr"), st.none() | prices))


@given(events, changes)
def test_the_index_knows_what_looking_at_all_prices_would_find(
    events: list[tuple[str, Dependencies | None]], changed: Changed
) -> None:
    """After any sequence of prices noted and forgotten, and nothing is left when all are forgotten."""
    waiting, known = PriceDependents(), dict[str, Dependencies]()
    for key, price in events:
        if price is None:
            waiting.forget(key)
            known.pop(key, None)
        else:
            waiting.note(key, price)
            known[key] = price
    found = waiting.concerned_by(changed)
    assert sorted(found) == sorted(key for key, price in known.items() if changed.concerns(price))
    for key in known:
        waiting.forget(key)
    assert waiting.concerned_by(changed) == []


# Prices that are kept.

NAME = "example.com/gpu"
QUESTIONS = [
    [PodSetRequest("main", count, asked, runs_elsewhere=elsewhere)]
    for asked in (pods("t"), pods(claims=("c",)), pods(containers=[{NAME: "1"}]))
    for count in (1, 3)
    for elsewhere in (False, True)
]
moves = st.one_of(
    st.tuples(st.just("class"), st.sampled_from(["gone", "plain", "named", "selective"])),
    st.tuples(st.just("slice"), st.integers(0, 3)),
    st.tuples(st.just("rule"), st.booleans()),
    st.tuples(st.just("template"), st.integers(0, 3)),
    st.tuples(st.just("claim"), st.integers(0, 2), st.booleans()),
)


def move(state: ClusterState, version: int, what: str, *more: Any) -> Changed:
    """Something changes in a cluster; returns the change as prices see it."""
    if what == "class":
        before = state.inventory.classes.get("gpu")
        made = {
            "plain": device_class("gpu"),
            "named": extended("gpu", NAME),
            "selective": device_class("gpu", ON_NIC),
        }.get(more[0])
        after = None if made is None else convert(DeviceClass, made)
        if after is not None:
            state.set_class(after)
        elif before is not None:
            state.remove_class(before)
        return Changed.of_class(before, after)
    if what == "slice":
        devices = slice_(GPU, *(f"d{number}" for number in range(more[0])))
        state.set_slice(devices)
        return Changed.of_slice(None, devices)
    if what == "rule":
        state.set_taint_rule(rule(driver=GPU)) if more[0] else state.remove_taint_rule(rule())
        return Changed.of_taint_rule(None, rule(driver=GPU))
    if what == "template":
        made_of = template("t", [exactly(count=more[0], select=[ON_GPU])])
        state.set_template(made_of) if more[0] else state.remove_template(made_of)
        return Changed.of_template(made_of)
    count, held = more
    results = [
        {"request": "req", "driver": GPU, "pool": NODE, "device": f"d{n}"} for n in range(count)
    ]
    value = {
        "metadata": {
            "name": "c",
            "namespace": "default",
            "uid": "c",
            "resourceVersion": str(version),
        },
        "spec": {"devices": {"requests": [exactly(count=max(1, count))]}},
        "status": {"allocation": {"devices": {"results": results}}} if held and count else {},
    }
    claim = convert(ResourceClaim, value)
    state.set_claim(claim) if count else state.remove_claim(claim)
    return Changed.of_claim(claim)


@given(st.lists(moves, max_size=10))
def test_kept_prices_are_those_that_would_be_worked_out(steps: list[tuple[Any, ...]]) -> None:
    """After any changes of classes, slices, taint rules, templates and claims, for work here and in another cluster."""
    state = cluster(classes=[])
    priced, kept = pricing(state), KeptPrices()
    for version, (what, *more) in enumerate([("slice", 1), *steps], start=1):
        kept.drop(move(state, version, what, *more))
        for pod_sets in QUESTIONS:
            fresh = priced.price_workload("default", pod_sets)
            question = question_of("default", pod_sets)
            found = kept.get(question)
            if found is None:
                kept.keep(question, fresh)
            else:
                assert found == fresh
