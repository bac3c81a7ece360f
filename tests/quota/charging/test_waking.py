"""Whose price a change concerns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from drayman.quota.charging.mapping_rules import read_mappings
from drayman.quota.charging.outcome import ANY_DRIVER, Dependencies
from drayman.quota.charging.waking import Changed, PriceDependents
from oracle.build import device_class, piece, taint
from oracle.selectors import GPU, NIC
from quota.charging.pricing_cases import extended, maps, template


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
