"""Extended resources that devices stand behind: cases D29 to D47 of the specification, with their names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.kueue import PodTemplate, pod_template_of
from drayman.api.resource import DeviceClass
from drayman.quota.charging.outcome import Code
from drayman.quota.charging.rules import KUEUE, Gates, Rules
from drayman.quota.charging.waking import Changed, PriceDependents
from oracle.build import device, exactly, partitioned
from quota.charging.pricing_cases import (
    CLASSES,
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
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
BEHIND = [extended("gpu", NAME)]
TO_CLAIMS = [maps("gpu-claims", "gpu")]


def asking(*containers: str, inits: tuple[str, ...] = (), name: str = NAME) -> PodTemplate:
    """Pods whose containers ask for so many."""
    return pods(
        containers=[{name: quantity} for quantity in containers],
        inits=[{name: quantity} for quantity in inits],
    )


@dataclass(frozen=True)
class Case:
    """A pod, and what it costs."""

    says: str
    pod: PodTemplate
    charges: dict[str, int]
    replaced: set[str] = field(default_factory=lambda: {NAME})
    classes: list[JsonObject] = field(default_factory=lambda: BEHIND)
    mappings: list[JsonObject] = field(default_factory=list)
    gates: Gates | None = None


CASES = {
    "D29": Case("a name is charged as itself, and only once", asking("1"), {NAME: 1}),
    "D30": Case(
        "a class with a mapping is charged under its name alone",
        asking("1"),
        {"gpu-claims": 1},
        mappings=TO_CLAIMS,
    ),
    "D31": Case(
        "a name without a class is an ordinary resource, of which there may be halves",
        asking("500m"),
        {},
        set(),
        [],
    ),
    "D34 alone": Case("less than nothing is nothing", asking("-3"), {}),
    "D34 with others": Case(
        "and takes nothing from others",
        asking("5", "-3"),
        {"gpu-claims": 5},
        mappings=TO_CLAIMS,
    ),
    "D35": Case(
        "init containers run one after the other, before the others",
        asking("1", "2", inits=("5", "3")),
        {NAME: 5},
    ),
    "D36": Case(
        "names are added up before they meet under one key",
        pods(containers=[{"example.com/b": "5"}], inits=[{"example.com/a": "5"}]),
        {"gpu-claims": 10},
        {"example.com/a", "example.com/b"},
        [extended("a", "example.com/a"), extended("b", "example.com/b")],
        [maps("gpu-claims", "a", "b")],
    ),
    "D37": Case(
        "of two classes behind a name the later one counts",
        asking("1"),
        {"omega-claims": 1},
        classes=[extended("alpha", NAME, EARLY), extended("omega", NAME, LATE)],
        mappings=[maps("alpha-claims", "alpha"), maps("omega-claims", "omega")],
    ),
    "D38": Case(
        "even if only the earlier one has a mapping",
        asking("1"),
        {NAME: 1},
        classes=[extended("alpha", NAME, EARLY), extended("omega", NAME, LATE)],
        mappings=[maps("alpha-claims", "alpha")],
    ),
    "D39": Case(
        "of two classes of the same second the first by name counts",
        asking("1"),
        {"alpha-claims": 1},
        classes=[extended("omega", NAME, EARLY), extended("alpha", NAME, EARLY)],
        mappings=[maps("alpha-claims", "alpha"), maps("omega-claims", "omega")],
    ),
    "D41": Case(
        "with the gate off it is an ordinary resource",
        asking("1"),
        {},
        set(),
        gates=Gates(extended=False),
    ),
    "none of it": Case("a request for none is for no device", asking("0"), {}, set()),
    "borrowed": Case(
        "an init container uses the devices of containers that start later",
        asking("2", inits=("1",)),
        {NAME: 2},
    ),
}


@pytest.mark.parametrize("rules", [Rules(), KUEUE], ids=["ours", "kueue"])
@pytest.mark.parametrize("name", CASES)
def test_prices(name: str, rules: Rules) -> None:
    """Pods cost what the case says, and the requests that this stands for are named."""
    case = CASES[name]
    state = cluster(classes=case.classes)
    found = price(state, case.pod, mappings=case.mappings, rules=rules, gates=case.gates)
    assert charged(found) == case.charges
    assert found.replaced == case.replaced


QUANTITIES = {
    "D32": (asking("500m"), "containers[0].resources.requests[example.com/gpu]"),
    "D33": (asking("9e18", "9e18"), "template.spec"),
    "one too large": (asking("10e18"), "containers[0].resources.requests[example.com/gpu]"),
    "a half in an init container": (asking("1", inits=("1500m",)), "initContainers[0]"),
}


@pytest.mark.parametrize("name", QUANTITIES)
def test_quantities_that_are_no_number_of_devices(name: str) -> None:
    """The container is named, and nothing but a change of the workload helps."""
    pod, place = QUANTITIES[name]
    found = refused(price(cluster(classes=BEHIND), pod, mappings=()))
    assert (found.code, found.retryable) == (Code.QUANTITY_INVALID, False)
    assert place in found.path


def test_limits_are_requests_where_nothing_else_is_said() -> None:
    """As the API server fills them in for the pods."""
    container = {"name": "c", "resources": {"limits": {NAME: "2"}}}
    template = pod_template_of({"spec": {"containers": [container]}})
    found = price(cluster(classes=BEHIND), template, mappings=())
    assert charged(found) == {NAME: 2}


def test_d40_kueue_refuses_a_name_whose_class_is_measured() -> None:
    """It cannot say how much a device is. We charge the largest that matches."""
    parts = [
        device("small", spends={"s": {"memory": "5Gi"}}),
        device("big", spends={"s": {"memory": "20Gi"}}),
    ]
    state = cluster(*partitioned(parts, {"s": {"memory": "40Gi"}}), classes=BEHIND)
    mappings = [maps("gpu.memory", "gpu", sources=[counter()])]
    found = refused(price(state, asking("1"), mappings=mappings, rules=KUEUE))
    assert (found.code, found.retryable) == (Code.UNSUPPORTED, False)
    assert charged(price(state, asking("2"), mappings=mappings)) == {"gpu.memory": 2 * 20 << 30}


def test_d42_a_class_that_comes_later_wakes_whoever_asks_for_its_name() -> None:
    """Until then the name is an ordinary resource."""
    state, waiting = cluster(classes=[]), PriceDependents()
    asked = pricing(state, TO_CLAIMS)
    before = asked.price("default", "main", asking("1"))
    assert charged(before) == {}
    waiting.note("w", before.depends_on)
    made = convert(DeviceClass, BEHIND[0])
    state.set_class(made)
    assert waiting.concerned_by(Changed.of_class(None, made)) == ["w"]
    assert charged(asked.price("default", "main", asking("1"))) == {"gpu-claims": 1}


def test_d43_a_class_that_takes_on_a_name_wakes_whoever_asks_for_it() -> None:
    """Whether it had no name before, or another one."""
    waiting = PriceDependents()
    waiting.note("w", pricing(cluster(classes=[])).price("default", "main", asking("1")).depends_on)
    after = convert(DeviceClass, BEHIND[0])
    for before in (CLASSES[0], extended("gpu", "example.com/other")):
        assert waiting.concerned_by(Changed.of_class(convert(DeviceClass, before), after)) == ["w"]
    assert waiting.concerned_by(Changed.of_class(after, after)) == []


def test_d44_a_class_that_goes_takes_its_name_along() -> None:
    """Who waits is priced again, without a translation."""
    state, waiting = cluster(classes=BEHIND), PriceDependents()
    asked = pricing(state, TO_CLAIMS)
    before = asked.price("default", "main", asking("1"))
    waiting.note("w", before.depends_on)
    gone = convert(DeviceClass, BEHIND[0])
    state.remove_class(gone)
    assert waiting.concerned_by(Changed.of_class(gone, None)) == ["w"]
    after = asked.price("default", "main", asking("1"))
    assert (charged(after), after.replaced) == ({}, frozenset())


def test_d45_prices_are_of_the_moment_in_which_they_are_asked_for() -> None:
    """A workload that was evicted after its class was deleted is not charged what it was charged before."""
    state = cluster(classes=BEHIND)
    asked = pricing(state, TO_CLAIMS)
    assert charged(asked.price("default", "main", asking("4"))) == {"gpu-claims": 4}
    state.remove_class(convert(DeviceClass, BEHIND[0]))
    assert charged(asked.price("default", "main", asking("4"))) == {}


def test_d46_a_name_is_for_devices_as_long_as_any_class_says_so() -> None:
    """Two classes stand behind it; with the last of them it ends."""
    both = [extended("one", NAME, EARLY), extended("two", NAME, LATE)]
    state = cluster(classes=both)
    asked = pricing(state, ())
    for gone in [convert(DeviceClass, each) for each in both]:
        assert charged(asked.price("default", "main", asking("1"))) == {NAME: 1}
        state.remove_class(gone)
    assert charged(asked.price("default", "main", asking("1"))) == {}


def test_d47_what_needs_a_price_depends_on_objects() -> None:
    """Templates and names that may be devices do; cpu and memory do not."""
    state = cluster(templates={"t": [exactly()]})
    asked = pricing(state)
    template = asked.price("default", "main", pods("t")).depends_on
    assert (template.templates, template.classes) == ({("default", "t")}, {"gpu"})
    assert asked.price("default", "main", asking("1")).depends_on.names == {NAME}
    plain = asked.price("default", "main", pods(containers=({"cpu": "1", "memory": "1Gi"},)))
    assert not Changed.of_class(None, convert(DeviceClass, BEHIND[0])).concerns(plain.depends_on)
    assert not plain.depends_on.templates
    assert not plain.depends_on.drivers


def test_templates_and_names_of_one_class_share_a_key_without_double_counting() -> None:
    """A pod with a claim of two devices and a container that asks for one more costs three, and the request is not counted again."""
    state = cluster(templates={"t": [exactly(count=2)]}, classes=BEHIND)
    pod = pods("t", containers=[{NAME: "1", "cpu": "1"}])
    found = price(state, pod, mappings=TO_CLAIMS)
    assert charged(found) == {"gpu-claims": 3}
    assert found.replaced == {NAME}
