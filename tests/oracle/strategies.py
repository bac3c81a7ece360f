"""Random problems with all features mixed, small enough for exhaustive search."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from oracle.build import (
    ALL_FEATURES,
    capacity,
    claim,
    device,
    device_class,
    everything,
    exactly,
    first_available,
    opaque,
    partitioned,
    piece,
    problem,
    shared,
    taint,
    toleration,
)
from oracle.nodes import JsonObject
from oracle.quantities import amount
from oracle.selectors import GPU, NIC, ONLY_GPU, with_verdicts
from oracle.strategies_claims import claims
from oracle.strategies_hardware import NUMA, ROOT, hardware, rarely

_TUNED = device_class("tuned", ONLY_GPU, config=[opaque(GPU, "class"), opaque(NIC, "extra")])


@st.composite
def holdings(draw: st.DrawFn, slices: list[JsonObject]) -> JsonObject:
    """What is in use already: exclusive devices and shares, with their sums."""
    exclusive, held, sums = [], [], []
    seen = set()
    for item in slices:
        spec = item["spec"]
        for content in spec.get("devices") or []:
            key = {
                "driver": spec["driver"],
                "pool": spec["pool"]["name"],
                "device": content["name"],
            }
            if tuple(key.values()) in seen or not draw(rarely(4)):
                continue
            seen.add(tuple(key.values()))
            if not content.get("allowMultipleAllocations") or draw(rarely(6)):
                exclusive.append(key)
                continue
            number = draw(st.integers(1, 2))
            label = "-".join(key.values())
            held += [{**key, "shareID": f"held-{label}-{n}"} for n in range(number)]
            if content.get("capacity"):
                consumed = {
                    name: str(min(number, amount(value["value"])))
                    for name, value in content["capacity"].items()
                }
                sums.append({**key, "consumedCapacity": consumed})
    return {"devices": exclusive, "sharedDevices": held, "aggregatedCapacity": sums}


@st.composite
def gates_off(draw: st.DrawFn) -> list[str]:
    """Feature gates that are off: mostly none."""
    if not draw(rarely(5)):
        return []
    return draw(st.lists(st.sampled_from(ALL_FEATURES), min_size=1, max_size=2, unique=True))


@st.composite
def mixed_problems(draw: st.DrawFn, most_devices: int = 6) -> JsonObject:
    """Problems with every feature, unrelated to each other in how they are mixed."""
    slices = draw(hardware(most_devices))
    asked = [draw(claims(2)) for _ in range(draw(st.integers(1, 2)))]
    off = draw(gates_off())
    allocated = draw(holdings(slices))
    if "DRAConsumableCapacity" in off:
        allocated = {"devices": allocated["devices"]}
    if "DRAListTypeAttributes" in off:
        slices = [_without_lists(item) for item in slices]
    return problem(slices, *asked, allocated=allocated, off=off, classes=[_TUNED])


def _without_lists(item: JsonObject) -> JsonObject:
    """Whether a list counts as a value of a constraint is undefined without the feature."""
    spec = item["spec"]
    if "devices" not in spec:
        return item
    kept = []
    for content in spec["devices"]:
        attributes = {
            name: value
            for name, value in (content.get("attributes") or {}).items()
            if not set(value) & {"ints", "strings"}
        }
        kept.append({**content, "attributes": attributes})
    return {**item, "spec": {**spec, "devices": kept}}


# --- Near the edge: counts, values, counters and capacities that fit just so, or just not ----------


@st.composite
def tight_counts(draw: st.DrawFn) -> JsonObject:
    """GPUs and NICs over few roots; claims want about as many as there are, aligned or spread."""
    roots = draw(st.integers(1, 3))
    made: dict[str, list[JsonObject]] = {GPU: [], NIC: []}
    for driver, prefix in ((GPU, "g"), (NIC, "n")):
        for n in range(draw(st.integers(1, 4))):
            attrs = {ROOT: f"r{draw(st.integers(0, roots - 1))}", NUMA: draw(st.integers(0, 1))}
            fields: dict[str, Any] = {"taints": [taint("lease")]} if draw(rarely(5)) else {}
            made[driver].append(device(f"{prefix}{n}", attrs=attrs, **fields))
    slices = [piece(found, driver=driver) for driver, found in made.items()]
    wanted = [
        draw(_tight_claim(len(made[GPU]), len(made[NIC]))) for _ in range(draw(st.integers(1, 2)))
    ]
    return problem(slices, *wanted)


@st.composite
def _tight_claim(draw: st.DrawFn, gpus: int, nics: int) -> JsonObject:
    extra: dict[str, Any] = {"tolerates": [toleration("lease")]} if draw(st.booleans()) else {}
    requests = [exactly("g", draw(st.integers(1, gpus)), "gpu", **extra)]
    if draw(st.booleans()):
        requests.append(exactly("n", draw(st.integers(1, nics)), "nic", **extra))
    if draw(rarely(4)):
        alternatives = [
            exactly("two", 2, "gpu"),
            exactly("one", 1, "gpu"),
            everything("all", "nic"),
        ]
        requests.append(first_available("f", *draw(st.permutations(alternatives))[:2]))
    attribute = st.sampled_from([ROOT, NUMA])
    fields: dict[str, Any] = {}
    if draw(st.booleans()):
        fields["match"] = [draw(attribute)]
    if draw(rarely(3)):
        fields["distinct"] = [draw(attribute)]
    return claim(*requests, **fields)


@st.composite
def tight_shares(draw: st.DrawFn) -> JsonObject:
    """A few shared devices, filled to about their capacity."""
    policies: list[JsonObject] = [{}, {"default": "1"}, {"default": "2", "validValues": ["2", "3"]}]
    found = [
        shared(
            f"d{n}",
            {"memory": capacity(draw(st.integers(2, 6)), **draw(st.sampled_from(policies)))},
        )
        for n in range(draw(st.integers(1, 3)))
    ]
    items = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    requests = [exactly(f"r{n}", asks={"memory": item}) for n, item in enumerate(items)]
    if draw(rarely(4)):
        requests.append(exactly("rest"))
    cut = draw(st.integers(0, len(requests)))
    wanted = [claim(*part) for part in (requests[:cut], requests[cut:]) if part]
    return problem([piece(found)], *wanted)


@st.composite
def tight_counters(draw: st.DrawFn) -> JsonObject:
    """Partitions of one or two cards, wanted in about the number that the counters allow."""
    slices = []
    for card in range(draw(st.integers(1, 2))):
        sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
        parts = [
            device(
                f"p{n}-{size}",
                spends={"card": {"units": size}},
                attrs={ROOT: f"r{card}", "model": "a" if size > 1 else "b"},
                allowMultipleAllocations=draw(rarely(5)) or None,
            )
            for n, size in enumerate(sizes)
        ]
        units = draw(st.integers(2, 6))
        slices += partitioned(parts, {"card": {"units": units}}, pool=f"card-{card}")
    counts = draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))
    requests = [exactly(f"r{n}", count) for n, count in enumerate(counts)]
    match = [ROOT] if draw(rarely(3)) else []
    made = problem(slices, claim(*requests, match=match))
    return with_verdicts({**made, "allocated": draw(holdings(slices))})


def problems() -> st.SearchStrategy[JsonObject]:
    """Any of the above."""
    return st.one_of(
        mixed_problems(), mixed_problems(), tight_counts(), tight_shares(), tight_counters()
    )


@st.composite
def placed_problems(draw: st.DrawFn) -> JsonObject:
    """A node with roots and NUMA nodes, partly in use, and claims that leave the choice open."""
    numa_of = [draw(st.sampled_from([0, 0, 1, None])) for _ in range(4)]
    made: dict[str, list[JsonObject]] = {GPU: [], NIC: []}
    for driver, prefix in ((GPU, "g"), (NIC, "n")):
        for n in range(draw(st.integers(1, 4))):
            root = draw(st.integers(0, 3))
            attrs: JsonObject = {ROOT: f"r{root}"} if draw(st.integers(0, 7)) else {}
            if numa_of[root] is not None:
                attrs[NUMA] = numa_of[root]
            is_shared = draw(rarely(5)) or None
            fields: dict[str, Any] = {"allowMultipleAllocations": is_shared} if is_shared else {}
            made[driver].append(device(f"{prefix}{n}", attrs=attrs, **fields))
    slices = [piece(found, driver=driver) for driver, found in made.items()]
    wanted = [
        claim(
            exactly("g", draw(st.integers(1, 2)), draw(st.sampled_from(["gpu", "gpu", "any"]))),
            *([exactly("n", draw(st.integers(1, 2)), "nic")] if draw(st.booleans()) else []),
            match=[ROOT] if draw(rarely(5)) else [],
        )
        for _ in range(draw(st.integers(1, 2)))
    ]
    return problem(slices, *wanted, allocated=draw(holdings(slices)))


LADDERS = (
    "pcieRoot > numaNode > any",
    "pcieRoot > numaNode",
    "pcieRoot",
    "numaNode > any",
    "numaNode > socket",
    "one pcieRoot > pcieRoot > one numaNode > any",
    "one numaNode > numaNode",
    "one socket",
    "nvlink > one numaNode > any",
    "nvlink",
)
_SOCKETS = {0: 0, 1: 0, 2: 1}


@st.composite
def aligned_problems(draw: st.DrawFn, *, with_alternatives: bool = True) -> JsonObject:
    """A node with roots, NUMA nodes, sockets and NVLink groups, partly in use, and claims that state alignments."""
    numa_of = [draw(st.sampled_from([0, 1, 2, None])) for _ in range(4)]
    has_sockets, has_fabrics = draw(st.booleans()), draw(st.booleans())
    made: dict[str, list[JsonObject]] = {GPU: [], NIC: []}
    for driver, prefix in ((GPU, "g"), (NIC, "n")):
        for n in range(draw(st.integers(1, 4))):
            root = draw(st.integers(0, 3))
            attrs: JsonObject = {ROOT: f"r{root}"} if draw(st.integers(0, 7)) else {}
            numa = numa_of[root]
            if numa is not None:
                attrs[NUMA] = numa
                if has_sockets:
                    attrs["dra.cpu/socketID"] = _SOCKETS[numa]
            if has_fabrics and driver == GPU and draw(st.integers(0, 5)):
                attrs["drayman.dev/nvlinkGroup"] = draw(st.sampled_from(["left", "right"]))
            is_shared = draw(rarely(6)) or None
            fields: dict[str, Any] = {"allowMultipleAllocations": is_shared} if is_shared else {}
            made[driver].append(device(f"{prefix}{n}", attrs=attrs, **fields))
    slices = [piece(found, driver=driver) for driver, found in made.items()]
    wanted = [
        draw(_aligned_claim(with_alternatives=with_alternatives))
        for _ in range(draw(st.integers(1, 2)))
    ]
    return problem(slices, *wanted, allocated=draw(holdings(slices)))


@st.composite
def _aligned_claim(draw: st.DrawFn, *, with_alternatives: bool) -> JsonObject:
    requests = [exactly("g", draw(st.integers(1, 2)), draw(st.sampled_from(["gpu", "gpu", "any"])))]
    if draw(st.integers(0, 3)):
        requests.append(exactly("n", draw(st.integers(1, 2)), "nic"))
    if draw(rarely(3)):
        requests.append(exactly("h", 1, draw(st.sampled_from(["gpu", "nic"]))))
    if with_alternatives and draw(rarely(3)):
        requests.append(first_available("f", exactly("two", 2, "gpu"), exactly("one", 1, "nic")))
    names = [request["name"] for request in requests]
    ladder = st.sampled_from(LADDERS)
    stated = draw(ladder)
    if draw(st.booleans()):
        chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        stated = f"{', '.join(chosen)}: {stated}"
    if draw(rarely(3)):
        stated = f"{stated}; {draw(st.sampled_from(names))}: {draw(ladder)}"
    return claim(
        *requests,
        match=[ROOT] if draw(rarely(8)) else [],
        align=stated if draw(st.integers(0, 7)) else None,
    )
