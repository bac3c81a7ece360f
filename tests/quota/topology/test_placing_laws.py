"""What holds for every placement, by brute force on small trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from drayman.api.kueue_workload import SliceConstraint, TopologyRequest
from drayman.quota.demands import NotPlaced, Placement, TopologyDemand
from drayman.quota.topology.flavor import FlavorTopology
from drayman.quota.topology.replacing import replaced
from drayman.quota.topology.usage import DomainUsage
from quota.topology.trees import LEVELS, Racks, demand, pods_on, topology

Blocks = dict[str, dict[str, list[int]]]

hosts = st.lists(st.integers(0, 5), min_size=1, max_size=3)
blocks = st.lists(st.lists(hosts, min_size=1, max_size=3), min_size=1, max_size=2).map(
    lambda found: {
        f"b{b}": {f"b{b}r{r}": list(cpus) for r, cpus in enumerate(racks)}
        for b, racks in enumerate(found)
    }
)
levels = st.sampled_from(LEVELS)
requests = st.one_of(
    levels.map(lambda level: TopologyRequest(required=level)),
    levels.map(lambda level: TopologyRequest(preferred=level)),
    st.just(TopologyRequest(unconstrained=True)),
)


@st.composite
def sliced(draw: st.DrawFn) -> tuple[TopologyRequest, int]:
    """A request with slices, and how many pods the widest have."""
    main = draw(st.integers(0, 2))
    first = draw(st.integers(main, 2))
    number = draw(st.integers(1, 3 - first))
    positions = sorted(draw(st.permutations(range(first, 3)))[:number])
    size = 1
    sizes = []
    for _ in positions:
        size *= draw(st.integers(1, 3))
        sizes.append(size)
    layers = tuple(
        SliceConstraint(topology=LEVELS[level], size=each)
        for level, each in zip(positions, reversed(sizes), strict=True)
    )
    mode = draw(st.sampled_from(["required", "preferred", ""]))
    named = {mode: LEVELS[min(main, positions[0])]} if mode else {}
    return TopologyRequest(podset_slice_required_topology_constraints=layers, **named), sizes[-1]


def free(found: Blocks) -> dict[tuple[str, str, str], int]:
    """The room of each host, by its place."""
    return {
        (block, rack, f"{rack}-{number}"): cpu
        for block, racks in found.items()
        for rack, cpus in racks.items()
        for number, cpu in enumerate(cpus)
    }


def by_place(found: Blocks, placement: Placement) -> dict[tuple[str, str, str], int]:
    pods = pods_on(placement)
    return {place: pods[place[-1]] for place in free(found) if place[-1] in pods}


def capacity(
    found: Blocks, request: TopologyRequest, prefix: tuple[str, ...] = ()
) -> tuple[int, int]:
    """What a domain holds in units of its own, and how many pods a unit has; counted from the definition."""
    layers = [
        (LEVELS.index(each.topology), each.size)
        for each in request.podset_slice_required_topology_constraints
    ]
    if len(prefix) == 3:
        units, size = free(found)[prefix], 1  # type: ignore[index]
    else:
        children = sorted(
            {place[: len(prefix) + 1] for place in free(found) if place[: len(prefix)] == prefix}
        )
        each = [capacity(found, request, child) for child in children]
        units, size = sum(n for n, _ in each), each[0][1]
    here = [n for level, n in layers if level == len(prefix) - 1]
    return (units * size // here[0], here[0]) if here else (units, size)


def check(found: Blocks, asked: TopologyDemand, placement: Placement) -> None:
    """Every assignment fits, is complete, and is where it was asked to be."""
    pods = by_place(found, placement)
    room = free(found)
    assert sum(pods.values()) == sum(count for _, count in placement.domains) == asked.count
    assert all(0 < count <= room[place] for place, count in pods.items())
    if asked.request.required is not None:
        level = LEVELS.index(asked.request.required)
        assert len({place[: level + 1] for place in pods}) <= 1
    for layer in asked.request.podset_slice_required_topology_constraints:
        level = LEVELS.index(layer.topology)
        within: Counter[tuple[str, ...]] = Counter()
        for place, count in pods.items():
            within[place[: level + 1]] += count
        assert all(count % layer.size == 0 for count in within.values())


def domains(found: Blocks, level: int) -> list[tuple[str, ...]]:
    return sorted({place[: level + 1] for place in free(found)})


@given(blocks, requests, st.integers(1, 20))
def test_pods_are_placed_if_and_only_if_there_is_room(
    found: Blocks, request: TopologyRequest, count: int
) -> None:
    """A placement is right, and a refusal means that there is none."""
    asked = demand(count, request)
    result = topology(found).place([asked], {})
    level = -1 if request.required is None else LEVELS.index(request.required)
    within = [()] if level < 0 else domains(found, level)
    most = max(sum(n for place, n in free(found).items() if place[: len(p)] == p) for p in within)
    assert isinstance(result, NotPlaced) == (most < count)
    if isinstance(result, NotPlaced):
        assert f"only {most} out of {count} pods" in result.message
    else:
        check(found, asked, result["main"])


@given(blocks, sliced(), st.integers(1, 4))
def test_slices_are_placed_if_and_only_if_there_is_room(
    found: Blocks, wish: tuple[TopologyRequest, int], number: int
) -> None:
    """The same with slices in up to three layers."""
    request, size = wish
    asked = demand(number * size, request)
    result = topology(found).place([asked], {})
    level = -1 if request.required is None else LEVELS.index(request.required)
    within = [()] if level < 0 else domains(found, level)
    most = 0
    for path in within:
        units, each = capacity(found, request, path)
        most = max(most, units * each)
    assert isinstance(result, NotPlaced) == (most < asked.count)
    if not isinstance(result, NotPlaced):
        check(found, asked, result["main"])


def fewest(rooms: Sequence[int], count: int) -> int:
    """How few domains hold so many pods, by trying all sets."""
    return next(
        number
        for number in range(len(rooms) + 1)
        if any(sum(chosen) >= count for chosen in combinations(rooms, number))
    )


@given(blocks, levels, st.integers(1, 16))
def test_best_fit_uses_as_few_domains_as_possible(found: Blocks, level: str, count: int) -> None:
    """In the domain that was chosen, as few domains of the next finer level as hold the pods, and so on downwards."""
    result = topology(found).place([demand(count, TopologyRequest(required=level))], {})
    if isinstance(result, NotPlaced):
        return
    pods = by_place(found, result["main"])
    for length in range(LEVELS.index(level) + 1, len(LEVELS)):
        above = {place[:length] for place in pods}
        rooms: Counter[tuple[str, ...]] = Counter()
        for place, cpu in free(found).items():
            if place[:length] in above:
                rooms[place[: length + 1]] += cpu
        used = {place[: length + 1] for place in pods}
        assert len(used) == fewest(list(rooms.values()), count)


@given(blocks, levels, st.integers(1, 16))
def test_best_fit_takes_the_tightest_domain(found: Blocks, level: str, count: int) -> None:
    """No other domain of the required level that holds all pods has less room."""
    result = topology(found).place([demand(count, TopologyRequest(required=level))], {})
    if isinstance(result, NotPlaced):
        return
    length = LEVELS.index(level) + 1
    rooms: Counter[tuple[str, ...]] = Counter()
    for place, cpu in free(found).items():
        rooms[place[:length]] += cpu
    (chosen,) = {place[:length] for place in by_place(found, result["main"])}
    assert rooms[chosen] == min(room for room in rooms.values() if room >= count)


@given(blocks, requests, st.integers(1, 10), st.integers(1, 3))
def test_leader_and_workers(found: Blocks, request: TopologyRequest, count: int, size: int) -> None:
    """A leader of another size is beside its workers, and a refusal means that no host could take it so that they fit."""
    leader = demand(1, request, name="leader", cpu=size)
    workers = demand(count, request, name="workers")
    result = topology(found).place([leader, workers], {})
    level = -1 if request.required is None else LEVELS.index(request.required)
    within = [()] if level < 0 else domains(found, level)

    def holds(path: tuple[str, ...]) -> bool:
        rooms = [n for place, n in free(found).items() if place[: len(path)] == path]
        return any(room >= size for room in rooms) and sum(rooms) - size >= count

    assert isinstance(result, NotPlaced) == (not any(map(holds, within)))
    if isinstance(result, NotPlaced):
        return
    pods = by_place(found, result["workers"])
    ((place, _),) = by_place(found, result["leader"]).items()
    taken = Counter(pods)
    taken[place] += size
    assert sum(pods.values()) == count
    assert all(n <= free(found)[host] for host, n in taken.items())
    assert len({host[: level + 1] for host in taken}) == 1 or level < 0


@given(blocks, levels, st.integers(1, 20))
def test_balanced_placement_is_right_and_even(found: Blocks, level: str, count: int) -> None:
    """It places what BestFit places, and within a block the least that any host gets is not less than with BestFit."""
    asked = demand(count, TopologyRequest(preferred=level))
    result = topology(found, is_balanced=True).place([asked], {})
    plain = topology(found).place([asked], {})
    assert isinstance(result, NotPlaced) == isinstance(plain, NotPlaced)
    if isinstance(result, NotPlaced) or isinstance(plain, NotPlaced):
        return
    check(found, asked, result["main"])
    if level == LEVELS[1] and len({p[0] for p in by_place(found, result["main"])}) == 1:
        assert min(pods_on(result["main"]).values()) >= min(pods_on(plain["main"]).values())


def walk(
    tree: FlavorTopology, used: DomainUsage, steps: Sequence[tuple[TopologyDemand, int]]
) -> Iterator[None]:
    held: list[tuple[Placement, TopologyDemand]] = []
    for asked, drop in steps:
        if held and drop < 3:
            placement, former = held.pop(drop % len(held))
            used.remove(placement, former.per_pod)
        result = tree.place([asked], used)
        if not isinstance(result, NotPlaced):
            held.append((result["main"], asked))
            used.add(result["main"], asked.per_pod)
        yield


steps = st.lists(
    st.tuples(
        st.builds(demand, st.integers(1, 4), requests, cpu=st.integers(1, 2)), st.integers(0, 5)
    ),
    max_size=8,
)


@given(blocks, steps, steps)
def test_trials_are_undone_exactly_and_counts_follow(
    found: Blocks, before: list[tuple[TopologyDemand, int]], tried: list[tuple[TopologyDemand, int]]
) -> None:
    """After a trial everything is as it was, and what is counted step by step is what a fresh count of the same usage gives."""
    tree, used = topology(found), DomainUsage()
    for _ in walk(tree, used, before):
        pass
    kept = {domain: dict(held) for domain, held in used.items()}
    with used.trial():
        for _ in walk(tree, used, tried):
            pass
    assert dict(used) == kept
    for asked, _ in (*before, *tried):
        fresh = topology(found).place([asked], kept)
        assert tree.place([asked], used) == fresh
        assert tree.place([asked], kept) == fresh
        assert tree.place([asked], {}) == topology(found).place([asked], {})


@given(blocks, requests, st.integers(1, 12), st.data())
def test_a_replacement_is_what_was_asked_for(
    found: Blocks, request: TopologyRequest, count: int, data: st.DataObject
) -> None:
    """Pods that keep their host stay; the others fit beside them, and the whole still meets the request."""
    tree, used, asked = topology(found), DomainUsage(), demand(count, request)
    first = tree.place([asked], used)
    if isinstance(first, NotPlaced):
        return
    used.add(first["main"], asked.per_pod)
    lost = data.draw(st.sampled_from([domain for domain, _ in first["main"].domains]))
    tree.remove_node(lost[-1])
    result = replaced(tree, asked, first["main"], [lost], used)
    if isinstance(result, NotPlaced):
        if request.required is None:
            total = sum(n for place, n in free(found).items() if place[-1] != lost[-1])
            assert total < count
        return
    check(found, asked, result)
    after = dict(result.domains)
    assert lost not in after
    assert all(after[domain] >= n for domain, n in first["main"].domains if domain != lost)


def test_the_order_of_nodes_does_not_matter() -> None:
    """Nodes that come in another order, or come back, give the same placements."""
    racks: Racks = {"r1": [3, 1], "r0": [2, 2]}
    one, other = topology({"b": racks}), topology({"b": dict(reversed(racks.items()))})
    asked = demand(5, TopologyRequest(preferred=LEVELS[1]))
    assert one.place([asked], {}) == other.place([asked], {})
