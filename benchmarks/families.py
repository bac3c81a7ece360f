"""Families of problems that grow to 512 devices on one node, each with an answer that is known by construction.

Every family exists in two variants where that makes sense: a solution is planted and the rest is noise, or one thing is
missing so that there is none. The generators use only sums and counts of what they plant, never an allocator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from building import (
    DRIVER,
    NICS,
    NUMA,
    ROOT,
    JsonObject,
    attribute_is,
    card,
    claim,
    claims_of,
    device,
    either,
    problem,
    request,
    slices,
)

SIZES = (64, 128, 256, 512)
BAR_MS = 250.0
PERFECT_BAR_MS = 1500.0


@dataclass(frozen=True, slots=True)
class Instance:
    """A problem with the outcomes that are right for it, and the time that it may take."""

    family: str
    size: int
    seed: int
    want: frozenset[str]
    bar_ms: float
    problem: JsonObject


# --- The families ---------------------------------------------------------------------------------

Generator = Callable[[int, Random, bool], JsonObject]
"""Makes a problem of about `size` devices that has a solution, or lacks one by one device."""


def symmetric(size: int, random: Random, feasible: bool) -> JsonObject:
    """Devices that nothing tells apart, all of them wanted."""
    devices = [device(f"g{n:03}") for n in range(size)]
    counts = []
    left = size + (not feasible)
    while left:
        counts.append(min(left, random.randint(1, 8)))
        left -= counts[-1]
    return problem(slices(devices), claims_of([request(f"r{n}", c) for n, c in enumerate(counts)]))


def two_kinds(size: int, random: Random, feasible: bool) -> JsonObject:
    """Requests that take either kind come before those that need the first kind."""
    devices = [device(f"g{n:03}", model="a" if n % 2 else "b") for n in range(size)]
    half = size // 2
    either_kind = [request(f"any{n}", 2) for n in range(half // 2)]
    picky = [request(f"a{n}", 2, where=attribute_is("model", "a")) for n in range(half // 2)]
    if not feasible:
        either_kind.pop()
        picky.append(request("one-more", 1, where=attribute_is("model", "a")))
    random.shuffle(devices)
    return problem(slices(devices), claims_of(either_kind + picky))


def late_root(size: int, random: Random, feasible: bool) -> JsonObject:
    """GPUs and NICs have to share a root, and only the last roots have enough of both."""
    good = 6
    roots = size // 6
    gpus: list[JsonObject] = []
    nics: list[JsonObject] = []
    for root in range(roots):
        enough = root >= roots - good + (not feasible)
        gpu_count, nic_count = (3, 3) if enough else (5, 1)
        gpus += [device(f"g{root:03}-{n}", root=f"r{root:03}") for n in range(gpu_count)]
        nics += [device(f"n{root:03}-{n}", root=f"r{root:03}") for n in range(nic_count)]
    random.shuffle(nics)
    claims = [claim(request("g", 3), request("n", 3, "nic"), match=ROOT) for _ in range(good)]
    return problem(slices(gpus) + slices(nics, NICS), claims)


def big_claim_last(size: int, random: Random, feasible: bool) -> JsonObject:
    """Small requests would take one device of every root; the last claims need whole roots."""
    roots = size // 8
    devices = [device(f"g{n:03}", root=f"r{n % roots:03}") for n in range(size)]
    whole = roots // 4
    small = size - 8 * whole + (not feasible)
    singles = [request(f"s{n}", 1) for n in range(small)]
    random.shuffle(singles)
    claims = claims_of(singles)
    claims += [claim(request("all", 8), match=ROOT) for _ in range(whole)]
    return problem(slices(devices), claims)


def distinct_root(size: int, random: Random, feasible: bool) -> JsonObject:
    """Sixteen devices of one model on sixteen roots; every model but the last spans one root less."""
    wanted = 16
    per_model = 32
    devices = []
    models = size // per_model
    for model in range(models):
        span = wanted if feasible and model == models - 1 else wanted - 1
        for n in range(per_model):
            name = f"g{model:02}-{n:02}"
            devices.append(device(name, model=f"m{model}", root=f"r{n % span:02}"))
    random.shuffle(devices)
    body = claim(request("r", wanted), match=f"{DRIVER}/model", distinct=(ROOT,))
    return problem(slices(devices), [body])


def two_distinct(size: int, random: Random, feasible: bool) -> JsonObject:
    """24 devices distinct in two attributes: a perfect matching between their values."""
    wanted = 24
    narrow = wanted // 2
    pairs = []
    if feasible:
        pairs = list(enumerate(random.sample(range(wanted), wanted)))
    while len(pairs) < size:
        left, right = random.randrange(wanted), random.randrange(wanted)
        # Without a solution, one value more than `narrow` on the left shares `narrow` on the right.
        if feasible or left > narrow or right < narrow:
            pairs.append((left, right))
    random.shuffle(pairs)
    devices = [device(f"g{n:03}", x=x, y=y) for n, (x, y) in enumerate(pairs)]
    body = claim(request("r", wanted), distinct=(f"{DRIVER}/x", f"{DRIVER}/y"))
    return problem(slices(devices), [body])


def matching(size: int, random: Random, feasible: bool) -> JsonObject:
    """Requests that each name three slots: a bipartite matching between requests and devices."""
    devices = [device(f"g{n:03}", slot=n) for n in range(size)]
    wanted = size // 4
    targets = random.sample(range(size), wanted)
    menus = []
    for number, target in enumerate(targets):
        # Later requests' targets are tempting for earlier ones.
        decoys = random.sample(targets, 2) if number else [target]
        menus.append({target, *decoys})
    if not feasible:
        crowd = sorted(random.sample(targets, 3))
        menus += [set(crowd) for _ in range(4)]
    random.shuffle(menus)
    requests = [
        request(f"r{n}", 1, where=f'device.attributes["{DRIVER}"].slot in {sorted(menu)}')
        for n, menu in enumerate(menus)
    ]
    return problem(slices(devices), claims_of(requests))


def chains(size: int, random: Random, feasible: bool) -> JsonObject:
    """Every request wants some of the scarce model, or as many of any, or one less; all have to take less."""
    devices = [device(f"g{n:03}", model="b" if n % 4 else "a") for n in range(size)]
    random.shuffle(devices)
    requests = []
    left = size + (not feasible)
    while left:
        least = min(left, random.randint(1, 8))
        scarce = request("scarce", least + 1, where=attribute_is("model", "a"))
        alternatives = [scarce, request("any", least + 1), request("less", least)]
        requests.append(either(f"r{len(requests)}", *alternatives))
        left -= least
    return problem(slices(devices), claims_of(requests))


def ring(size: int, random: Random, feasible: bool) -> JsonObject:
    """Every request wants three of one of eight models, or two of the next; 90 % are used if all take two."""
    models = 8
    devices = [device(f"g{n:03}", model=f"m{n % models}") for n in range(size)]
    random.shuffle(devices)
    requests = []
    for number in range(int(size * 0.45) if feasible else size // 2 + 1):
        model = number % models
        first = request("many", 3, where=attribute_is("model", f"m{model}"))
        other = request("some", 2, where=attribute_is("model", f"m{(model + 1) % models}"))
        requests.append(either(f"r{number}", first, other))
    return problem(slices(devices), claims_of(requests))


def capacity_slack(size: int, random: Random, feasible: bool) -> JsonObject:
    """Three shares on each of an eighth of the devices, 85 % full; or more than there is."""
    return _capacity(max(8, size // 8), 3, random, 0.85 if feasible else 1.0, over=not feasible)


def capacity_wide(size: int, random: Random, feasible: bool) -> JsonObject:
    """Two shares on every device, 85 % full; or more than there is."""
    return _capacity(size, 2, random, 0.85 if feasible else 1.0, over=not feasible)


def partitions_slack(size: int, random: Random, feasible: bool) -> JsonObject:
    """Partitions of cards, 85 % of them used; or one unit more than there is."""
    return _partitions(size, random, 0.85 if feasible else 1.0, over=not feasible)


def numa_slack(size: int, random: Random, feasible: bool) -> JsonObject:
    """Claims that each stay within a NUMA node, 90 % full; or one device more than there is."""
    return _numa(size, random, 0.9 if feasible else 1.0, over=not feasible)


def _capacity(
    devices: int, parts: int, random: Random, share: float, *, over: bool = False
) -> JsonObject:
    made = []
    items: list[int] = []
    for n in range(devices):
        content = device(f"g{n:03}")
        content["allowMultipleAllocations"] = True
        content["capacity"] = {"memory": {"value": "80"}}
        made.append(content)
        items += _cut(int(80 * share), parts, random)
    random.shuffle(items)
    items += [1] if over else []
    requests = [request(f"r{n}", memory=item) for n, item in enumerate(items)]
    return problem(slices(made), claims_of(requests))


def _cut(total: int, parts: int, random: Random) -> list[int]:
    """A whole number as a sum of a few."""
    cuts = sorted(random.sample(range(1, total), parts - 1))
    return [high - low for low, high in zip([0, *cuts], [*cuts, total], strict=True)]


_MENU = [("1g", 1, 7), ("2g", 2, 3), ("3g", 3, 2), ("4g", 4, 1), ("7g", 7, 1)]
_LAYOUTS = [(7,), (4, 3), (4, 2, 1), (3, 3), (3, 2, 1), (2, 2, 2, 1), (4, 1, 1, 1)]


def _partitions(size: int, random: Random, share: float, *, over: bool = False) -> JsonObject:
    cards = size // 14
    pieces, wanted = [], []
    for number in range(cards):
        menu = [(f"{name}-{n}", units) for name, units, times in _MENU for n in range(times)]
        pieces += card(f"card-{number:02}", 7, menu)
        wanted += random.choice(_LAYOUTS) if share < 1.0 else random.choice(_FULL)
    random.shuffle(wanted)
    wanted = wanted[: int(len(wanted) * share)]
    wanted += [1] if over else []
    requests = [
        request(f"r{n}", where=attribute_is("profile", f"{units}g"))
        for n, units in enumerate(wanted)
    ]
    return problem(pieces, claims_of(requests))


_FULL = [layout for layout in _LAYOUTS if sum(layout) == 7]


def _numa(size: int, random: Random, share: float, *, over: bool = False) -> JsonObject:
    nodes = max(3, size // 20)
    devices = []
    wanted: list[int] = []
    for node in range(nodes):
        devices += [device(f"g{node:02}-{n:02}", numa=node) for n in range(size // nodes)]
        wanted += _cut(int(size // nodes * share), 4, random)
    random.shuffle(devices)
    random.shuffle(wanted)
    wanted += [1] if over else []
    return problem(slices(devices), [claim(request("r", count), match=NUMA) for count in wanted])


def perfect_capacity(size: int, random: Random, _: bool) -> JsonObject:
    return _capacity(max(8, size // 20), 3, random, 1.0)


def perfect_partitions(size: int, random: Random, _: bool) -> JsonObject:
    return _partitions(size, random, 1.0)


def perfect_numa(size: int, random: Random, _: bool) -> JsonObject:
    return _numa(size, random, 1.0)


FAMILIES: dict[str, Generator] = {
    "symmetric": symmetric,
    "two-kinds": two_kinds,
    "late-root": late_root,
    "big-claim-last": big_claim_last,
    "distinct-root": distinct_root,
    "two-distinct": two_distinct,
    "matching": matching,
    "first-available": chains,
    "capacity": capacity_slack,
    "capacity-wide": capacity_wide,
    "partitions": partitions_slack,
    "numa": numa_slack,
}
PERFECT: dict[str, Generator] = {
    "perfect-capacity": perfect_capacity,
    "perfect-partitions": perfect_partitions,
    "perfect-numa": perfect_numa,
}

UNBOUNDED: dict[str, Generator] = {"first-available-ring": ring}
"""Packings in disguise, to watch: nobody promises a time for them."""


def instances(sizes: tuple[int, ...] = SIZES, seeds: int = 3) -> Iterator[Instance]:
    """Every family in every size, with and without a solution, then the perfect packings."""
    for size in sizes:
        for seed in range(seeds):
            for name, generate in FAMILIES.items():
                made = generate(size, Random(f"{name} {size} {seed}"), True)
                yield Instance(name, size, seed, frozenset({"allocated"}), BAR_MS, made)
                made = generate(size, Random(f"{name} {size} {seed}"), False)
                refused = frozenset({"unallocatable"})
                yield Instance(f"{name}-by-one", size, seed, refused, BAR_MS, made)
            for group, bar in ((PERFECT, PERFECT_BAR_MS), (UNBOUNDED, math.inf)):
                for name, generate in group.items():
                    made = generate(size, Random(f"{name} {size} {seed}"), True)
                    yield Instance(name, size, seed, frozenset({"allocated", "limit"}), bar, made)
