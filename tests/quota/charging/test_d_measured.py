"""Devices that are measured, by counters and by capacities: cases D48 to D61 and D63 to D74 of the specification, with their names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.integers import INT64_MAX
from drayman.api.resource import ResourceSlice
from drayman.quota.charging.outcome import Code
from drayman.quota.charging.rules import KUEUE, Rules
from drayman.quota.charging.waking import Changed, PriceDependents
from oracle.build import capacity, device, device_class, exactly, partitioned, piece, shared
from quota.charging.pricing_cases import (
    GI,
    MI,
    attribute_is,
    charged,
    cluster,
    pods,
    price,
    pricing,
    refused,
)

JsonObject = dict[str, Any]
SMALL = attribute_is("profile", "1g.5gb")


def part(name: str, profile: str, memory: str, **more: str) -> JsonObject:
    """A partition that draws memory, and maybe more, from one GPU."""
    return device(name, attrs={"profile": profile}, spends={"gpu": {"memory": memory, **more}})


def gpu(*parts: JsonObject, **fields: Any) -> list[JsonObject]:
    """A GPU with everything that its parts may draw from."""
    counters = {"memory": "80Gi", "multiprocessors": "100"}
    return partitioned(parts, {"gpu": counters, "other": counters}, **fields)


MENU = gpu(
    part("small-0", "1g.5gb", "4864Mi"),
    part("small-1", "1g.5gb", "4864Mi"),
    part("large", "3g.20gb", "20Gi"),
    part("whole", "full", "40320Mi"),
)


@dataclass(frozen=True)
class Counted:
    """Requests for partitions, and the memory that they are charged."""

    says: str
    requests: list[JsonObject]
    memory: int
    slices: list[JsonObject] = field(default_factory=lambda: MENU)


def some(count: int = 1, *select: str, name: str = "r") -> JsonObject:
    return exactly(name, count, "mig", select=list(select) or None)


COUNTED = {
    "D48": Counted("a partition costs its memory", [some(1, SMALL)], 4864 * MI),
    "D49": Counted("two cost twice as much", [some(2, SMALL)], 9728 * MI),
    "D50": Counted(
        "if several kinds match, the dearest may be the one",
        [some(1, f"{SMALL} || {attribute_is('profile', '3g.20gb')}")],
        20 * GI,
    ),
    "D51": Counted(
        "without selectors it is whatever the class has",
        [some()],
        40320 * MI,
        gpu(part("whole", "full", "40320Mi")),
    ),
    "D52": Counted(
        "requests of a claim add up",
        [some(1, attribute_is("profile", "full"), name="a"), some(1, SMALL, name="b")],
        (40320 + 4864) * MI,
    ),
    "D55": Counted(
        "a newer generation replaces the older one",
        [some()],
        7 * GI,
        [
            *gpu(part("d", "x", "9Gi"), generation=1),
            *(
                {**each, "metadata": {"name": f"new-{n}"}}
                for n, each in enumerate(gpu(part("d", "x", "7Gi"), generation=2))
            ),
        ],
    ),
    "D56": Counted(
        "devices of other drivers do not count",
        [some()],
        5 * GI,
        [
            *gpu(part("d", "x", "5Gi")),
            *gpu(part("d", "x", "50Gi"), driver="other.example.com", pool="other"),
        ],
    ),
    "D57": Counted(
        "of several counter sets the largest amount counts",
        [some()],
        30 * GI,
        gpu(device("d", spends={"gpu": {"memory": "10Gi"}, "other": {"memory": "30Gi"}})),
    ),
    "D58": Counted(
        "counters that nothing is charged by do not count",
        [some()],
        5 * GI,
        gpu(part("d", "x", "5Gi", multiprocessors="100")),
    ),
    "D59 large": Counted("amounts saturate", [some()], INT64_MAX, gpu(part("d", "x", "1e19"))),
    "D59 times": Counted(
        "and so do products",
        [some(2)],
        INT64_MAX,
        gpu(part("d", "x", "8e18"), part("e", "x", "8e18")),
    ),
    "D60 negative": Counted("less than nothing is nothing", [some()], 0, gpu(part("d", "x", "-5"))),
    "D60 small": Counted("nor is a part of it", [some()], 0, gpu(part("d", "x", "-500m"))),
    "D60 half": Counted("halves are rounded up", [some()], 1, gpu(part("d", "x", "500m"))),
}


@pytest.mark.parametrize("rules", [Rules(), KUEUE], ids=["ours", "kueue"])
@pytest.mark.parametrize("name", COUNTED)
def test_counters(name: str, rules: Rules) -> None:
    """Partitions cost what they draw from the hardware, by our rules and by Kueue's."""
    case = COUNTED[name]
    state = cluster(*case.slices, templates={"t": case.requests})
    found = price(state, pods("t"), rules=rules)
    assert charged(found) == {"gpu.memory": case.memory}
    assert found.measured == {"gpu.memory"}


def test_d53_a_slice_with_a_match_wakes_whoever_waits_for_it() -> None:
    """Without one there is no price; the event alone brings it about."""
    state, waiting = cluster(templates={"t": [some(1, SMALL)]}), PriceDependents()
    asked = pricing(state)
    before = refused(asked.price("default", "main", pods("t")))
    assert (before.code, before.retryable) == (Code.DEVICE_SHORTAGE, True)
    waiting.note("w", before.depends_on)
    woken = []
    for each in MENU:
        made = convert(ResourceSlice, each)
        state.set_slice(made)
        woken += waiting.concerned_by(Changed.of_slice(None, made))
    assert set(woken) == {"w"}
    assert charged(asked.price("default", "main", pods("t"))) == {"gpu.memory": 4864 * MI}


@pytest.mark.parametrize("generation", [1, 2], ids=["D54", "D55, incomplete"])
def test_pools_that_are_still_being_published_do_not_count(generation: int) -> None:
    """Neither with one of two slices, nor with a complete generation that is being replaced."""
    old = gpu(part("d", "x", "5Gi")) if generation == 2 else []
    half = gpu(part("d", "x", "7Gi"), generation=generation)[1]
    half = {**half, "metadata": {"name": "half"}}
    state = cluster(*old, half, templates={"t": [some()]})
    found = refused(price(state, pods("t")))
    assert (found.code, found.retryable) == (Code.DEVICE_SHORTAGE, True)


def test_d61_devices_without_the_counter_are_not_for_nothing() -> None:
    """There is no price rather than a price of zero, until there are devices that can be measured."""
    state = cluster(piece([device("d")]), templates={"t": [some()]})
    found = refused(price(state, pods("t")))
    assert (found.code, found.retryable) == (Code.DEVICE_SHORTAGE, True)
    assert "none has memory" in found.message


def test_d62_a_class_may_be_charged_by_several_counters() -> None:
    """Memory and compute are charged side by side."""
    from quota.charging.pricing_cases import counter, maps

    mappings = [
        maps("gpu.memory", "mig", sources=[counter()]),
        maps("gpu.compute", "mig", sources=[counter("multiprocessors")]),
    ]
    state = cluster(*gpu(part("d", "x", "5Gi", multiprocessors="14")), templates={"t": [some()]})
    found = price(state, pods("t"), mappings=mappings)
    assert charged(found) == {"gpu.memory": 5 * GI, "gpu.compute": 14}


# Capacities.

VALUES = {"default": "10Gi", "validValues": ["10Gi", "20Gi", "40Gi", "80Gi"]}
STEPS = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "80Gi", "step": "1Gi"}}
TWENTIES = {"default": "10Gi", "validRange": {"min": "10Gi", "max": "90Gi", "step": "20Gi"}}
FIVES = {"default": "5Gi", "validRange": {"min": "5Gi", "max": "80Gi", "step": "5Gi"}}
NO_STEP = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "80Gi"}}


def whole(name: str = "d", value: str = "80Gi", **policy: Any) -> JsonObject:
    """A device that others can have shares of."""
    return shared(name, {"memory": capacity(value, **policy)})


@dataclass(frozen=True)
class Taken:
    """A request for memory of shared devices, and what is charged for it."""

    says: str
    devices: list[JsonObject]
    asked: str
    memory: int | None
    count: int = 1


TAKEN = {
    "D63": Taken("what is asked for is charged", [whole()], "20Gi", 20 * GI),
    "D64 nothing asked": Taken("without a request, the whole", [whole()], "", 80 * GI),
    "D64 default": Taken("or the default", [whole(default="10Gi")], "", 10 * GI),
    "D65": Taken("each device is charged", [whole("d"), whole("e")], "20Gi", 40 * GI, count=2),
    "D66 between": Taken("rounded up to a valid value", [whole(**VALUES)], "15Gi", 20 * GI),
    "D66 below": Taken("at least the first", [whole(**VALUES)], "5Gi", 10 * GI),
    "D66 exact": Taken("or just that", [whole(**VALUES)], "20Gi", 20 * GI),
    "D67": Taken(
        "beyond all valid values there is none",
        [whole(default="10Gi", validValues=["10Gi", "20Gi", "40Gi"])],
        "50Gi",
        None,
    ),
    "D68 up": Taken("rounded up to a step", [whole(**STEPS)], "15500Mi", 16 * GI),
    "D68 below": Taken("at least the minimum", [whole(**STEPS)], "500Mi", 1 * GI),
    "D68 exact": Taken("or just that", [whole(**STEPS)], "20Gi", 20 * GI),
    "D68 above": Taken("beyond the maximum there is none", [whole(**STEPS)], "81Gi", None),
    "D69 25": Taken(
        "steps count from the minimum", [whole(value="90Gi", **TWENTIES)], "25Gi", 30 * GI
    ),
    "D69 30": Taken("and one of them stays", [whole(value="90Gi", **TWENTIES)], "30Gi", 30 * GI),
    "D69 3": Taken("below the minimum is the minimum", [whole(**FIVES)], "3Gi", 5 * GI),
    "D70": Taken("without steps nothing is rounded", [whole(**NO_STEP)], "15500Mi", 15500 * MI),
    "D70 without a minimum": Taken(
        "a step without a minimum means nothing",
        [whole(default="1Gi", validRange={"max": "80Gi", "step": "1Gi"})],
        "15500Mi",
        15500 * MI,
    ),
    "D71": Taken(
        "devices differ in their defaults: the dearest counts",
        [whole("d", "80Gi", default="40Gi"), whole("e", "100Gi", default="10Gi")],
        "",
        40 * GI,
    ),
    "D72": Taken("and in their size", [whole("d", "40Gi"), whole("e", "80Gi")], "", 80 * GI),
    "some reject": Taken(
        "devices that do not give so much do not count",
        [whole("d", "80Gi", **VALUES), whole("e", "40Gi", default="10Gi", validValues=["10Gi"])],
        "20Gi",
        20 * GI,
    ),
}


@pytest.mark.parametrize("rules", [Rules(), KUEUE], ids=["ours", "kueue"])
@pytest.mark.parametrize("name", TAKEN)
def test_capacities(name: str, rules: Rules) -> None:
    """A share costs what the device's policy makes of the request, by our rules and by Kueue's."""
    case = TAKEN[name]
    asks = {"memory": case.asked} if case.asked else None
    request = exactly("r", case.count, "share", asks=asks)
    found = price(cluster(piece(case.devices), templates={"t": [request]}), pods("t"), rules=rules)
    if case.memory is None:
        reason = refused(found)
        assert (reason.code, reason.retryable) == (Code.POLICY_REJECTS, False)
    else:
        assert charged(found) == {"vram": case.memory}


def test_d73_devices_without_the_capacity() -> None:
    """If no device has it, that may change; if those that have it give too little, it is the request that is wrong."""
    request = exactly("r", 1, "share", asks={"memory": "50Gi"})
    without = cluster(piece([device("d")]), templates={"t": [request]})
    found = refused(price(without, pods("t")))
    assert (found.code, found.retryable) == (Code.DEVICE_SHORTAGE, True)
    rest = whole("e", default="10Gi", validValues=["10Gi"])
    some_reject = cluster(piece([device("d"), rest]), templates={"t": [request]})
    found = refused(price(some_reject, pods("t")))
    assert (found.code, found.retryable) == (Code.POLICY_REJECTS, False)


def test_d74_a_class_that_is_measured_is_not_counted_as_well() -> None:
    """One charge, under one name."""
    state = cluster(piece([whole()]), templates={"t": [exactly(cls="share")]})
    assert set(charged(price(state, pods("t")))) == {"vram"}


def test_class_and_request_narrow_down_what_is_measured() -> None:
    """The dearest of the devices that match both, not of all that the source is for."""
    classes = [device_class("mig", attribute_is("profile", "1g.5gb"))]
    state = cluster(*MENU, templates={"t": [some()]}, classes=classes)
    assert charged(price(state, pods("t"))) == {"gpu.memory": 4864 * MI}
