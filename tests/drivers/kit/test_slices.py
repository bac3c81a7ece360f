"""From what is published to what should be: few writes, and never a pool that looks complete and is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.api.quantity import Quantity
from drayman.api.resource import (
    Counter,
    CounterSet,
    Device,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourceSlice,
)
from drayman.drivers.kit.errors import PublishError
from drayman.drivers.kit.model import Hardware
from drayman.drivers.kit.slices import Changes, Publisher, changes, contents_to_publish
from drayman.drivers.splitting import contents_of

OWN = Publisher("d.example.com", "node-1", "uid-of-node-1")
TAINT = DeviceTaint(key="d.example.com/x", effect="NoSchedule")


def devices(count: int, prefix: str = "dev", **fields) -> tuple[Device, ...]:
    return tuple(Device(name=f"{prefix}-{index}", **fields) for index in range(count))


def counters(count: int) -> tuple[CounterSet, ...]:
    amount = {"m": Counter(value=Quantity.parse("1"))}
    return tuple(CounterSet(name=f"set-{index}", counters=amount) for index in range(count))


def apply(current: list[ResourceSlice], due: Changes) -> list[ResourceSlice]:
    """What an API server has afterwards."""
    found = {each.metadata.name: each for each in current}
    for each in due.creates:
        assert each.metadata.name not in found
        found[each.metadata.name] = each
    for each in due.updates:
        assert each.metadata.name in found
        found[each.metadata.name] = each
    for each in due.deletes:
        del found[each.metadata.name]
    return [found[name] for name in sorted(found)]


def publish(
    current: list[ResourceSlice], hardware: Hardware
) -> tuple[list[ResourceSlice], Changes]:
    due = changes(OWN, current, contents_of(hardware.groups, hardware.counters))
    return apply(current, due), due


def is_complete(slices: list[ResourceSlice]) -> bool:
    top = max((each.spec.pool.generation for each in slices), default=0)
    newest = [each for each in slices if each.spec.pool.generation == top]
    return all(each.spec.pool.resource_slice_count == len(newest) for each in newest)


SPLITTING = {
    "none": (Hardware(), []),
    "a few": (Hardware.of(devices(3)), [3]),
    "as many as fit": (Hardware.of(devices(128)), [128]),
    "one more": (Hardware.of(devices(129)), [128, 1]),
    "with taints": (Hardware.of(devices(65, taints=(TAINT,))), [64, 1]),
    "one with a taint": (Hardware.of((*devices(64), *devices(1, "x", taints=(TAINT,)))), [64, 1]),
    "in groups": (Hardware(groups=(devices(2, "a"), devices(1, "b"))), [2, 1]),
    "counters apart": (Hardware(groups=(devices(1),), counters=counters(8)), [-8, 1]),
    "many counters": (Hardware(groups=(devices(1),), counters=counters(9)), [-8, -1, 1]),
}


@pytest.mark.parametrize("name", SPLITTING)
def test_a_pool_is_divided_as_the_limits_of_slices_say(name: str) -> None:
    """128 devices, 64 if any of them has more to it, 8 sets of counters in slices of their own."""
    hardware, sizes = SPLITTING[name]
    found = contents_of(hardware.groups, hardware.counters)
    assert [len(each.devices or ()) or -len(each.counters or ()) for each in found] == sizes


def test_names_sort_like_indices_and_are_never_too_long() -> None:
    """The order is the allocator's, and a name has 253 characters at most."""
    long = Publisher("d" * 60 + ".com", "n" * 240, "u")
    for publisher in (OWN, long):
        names = [publisher.slice_name(index) for index in range(300)]
        assert names == sorted(names)
        assert len(set(names)) == 300
        assert max(map(len, names)) <= 253
    assert long.slice_name(0) != Publisher("d" * 60 + ".com", "n" * 241, "u").slice_name(0)


def test_slices_belong_to_their_node() -> None:
    """They go when it goes."""
    (found,), _ = publish([], Hardware.of(devices(1)))
    (owner,) = found.metadata.owner_references
    assert (owner.kind, owner.name, owner.uid) == ("Node", "node-1", "uid-of-node-1")
    assert (found.spec.node_name, found.spec.pool.name) == ("node-1", "node-1")


CHANGES = {
    "the same": (Hardware.of(devices(200)), 1, (0, 0, 0)),
    "one device in one slice": (Hardware.of((*devices(199), Device(name="new"))), 1, (0, 1, 0)),
    "a device in each slice": (
        Hardware.of((Device(name="first"), *devices(199)[1:], Device(name="last"))),
        2,
        (0, 2, 0),
    ),
    "one slice more": (Hardware.of(devices(300)), 2, (1, 2, 0)),
    "one slice less": (Hardware.of(devices(100)), 2, (0, 1, 1)),
    "nothing left": (Hardware(), 1, (0, 0, 2)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_generation_rises_if_one_write_is_not_enough(name: str) -> None:
    """Creates, updates and deletes; with a new generation every slice is written."""
    hardware, generation, counts = CHANGES[name]
    before, _ = publish([], Hardware.of(devices(200)))
    after, due = publish(before, hardware)
    assert (len(due.creates), len(due.updates), len(due.deletes)) == counts
    assert {each.spec.pool.generation for each in after} <= {generation}


def test_a_slice_that_somebody_has_deleted_is_made_again_with_the_same_generation() -> None:
    """One write completes the pool."""
    before, _ = publish([], Hardware.of(devices(200)))
    after, due = publish(before[1:], Hardware.of(devices(200)))
    assert after == before
    assert due.count == 1


def test_slices_of_other_names_and_pools_are_replaced() -> None:
    """An older driver may have left them."""
    (own,), _ = publish([], Hardware.of(devices(1)))
    other = replace(own, metadata=replace(own.metadata, name="other"))
    after, due = publish([other], Hardware.of(devices(1)))
    assert [each.metadata.name for each in after] == [own.metadata.name]
    assert len(due.deletes) == 1


def test_a_generation_that_is_remembered_is_not_used_again() -> None:
    """Not even after all slices were deleted."""
    due = changes(OWN, [], contents_to_publish(OWN, Hardware.of(devices(1))), last_generation=7)
    assert due.creates[0].spec.pool.generation == 8


def test_a_taint_is_as_old_as_it_was() -> None:
    """Evictions count from its time; an API server fills it in."""
    since = "2026-01-02T03:04:05Z"
    sick = Hardware.of(devices(2, taints=(TAINT,)))
    (before,), _ = publish([], sick)
    aged = replace(
        before,
        spec=replace(
            before.spec,
            devices=tuple(
                replace(device, taints=(replace(TAINT, time_added=since),))
                for device in before.spec.devices
            ),
        ),
    )
    assert publish([aged], sick)[1].count == 0
    mixed = Hardware.of((*sick.devices[:1], Device(name="dev-1")))
    (after,), _ = publish([aged], mixed)
    assert [t.time_added for d in after.spec.devices for t in d.taints] == [since]


ANOTHER = {"n": Counter(value=Quantity.parse("1"))}
REFUSED = {
    "same device twice": (Hardware(groups=(devices(1), devices(1))), "device dev-0 is there twice"),
    "same counters twice": (Hardware(counters=counters(1) * 2, groups=(devices(1),)), "a set of counters is there twice"),
    "counters that are not there": (
        Hardware.of(devices(1, consumes_counters=(DeviceCounterConsumption(counter_set="s", counters=counters(1)[0].counters),))),
        "device dev-0 consumes of s, which is not there",
    ),
    "a counter that is not there": (
        Hardware(
            groups=(devices(1, consumes_counters=(DeviceCounterConsumption(counter_set="set-0", counters=ANOTHER),)),),
            counters=counters(1),
        ),
        "device dev-0 consumes counter n, which set-0 has not",
    ),
    "a name": (Hardware.of([Device(name="Upper")]), "spec.devices[0].name"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_published_is_refused_before_anything_is_written(name: str) -> None:
    """With the names of what is wrong."""
    hardware, problem = REFUSED[name]
    with pytest.raises(PublishError) as caught:
        contents_to_publish(OWN, hardware)
    assert problem in str(caught.value)


SIZES = st.lists(st.integers(0, 300), min_size=1, max_size=3)


@given(st.lists(SIZES, min_size=1, max_size=4), st.data())
def test_publishing_is_right_after_any_history(
    history: list[list[int]], data: st.DataObject
) -> None:
    """Whatever was published and deleted before: the pool is complete, holds what it should, and a second look changes nothing."""
    slices: list[ResourceSlice] = []
    for sizes in history:
        groups = tuple(devices(size, f"g{at}") for at, size in enumerate(sizes) if size)
        slices, _ = publish(slices, Hardware(groups=groups))
        assert is_complete(slices)
        assert [d for each in slices for d in each.spec.devices or ()] == [
            device for group in groups for device in group
        ]
        assert publish(slices, Hardware(groups=groups))[1].count == 0
        if slices:
            slices.pop(data.draw(st.integers(0, len(slices) - 1)))


@given(SIZES, SIZES, st.data())
def test_a_pool_never_looks_complete_with_a_mixture(
    first: list[int], second: list[int], data: st.DataObject
) -> None:
    """After any number of the writes, a reader sees the old pool, the new one, or that it is incomplete."""

    def hardware(sizes: list[int], mark: str) -> Hardware:
        return Hardware(groups=tuple(devices(n, f"{mark}{at}") for at, n in enumerate(sizes) if n))

    before, _ = publish([], hardware(first, "a"))
    after, due = publish(before, hardware(second, "b"))
    steps = [
        *(Changes(creates=(each,)) for each in due.creates),
        *(Changes(updates=(each,)) for each in due.updates),
        *(Changes(deletes=(each,)) for each in due.deletes),
    ]
    now = before
    for step in steps[: data.draw(st.integers(0, len(steps)))]:
        now = apply(now, step)
    top = max((each.spec.pool.generation for each in now), default=0)
    seen = [each for each in now if each.spec.pool.generation == top]
    if seen and is_complete(now):
        names = {d.name for each in seen for d in each.spec.devices or ()}
        whole = [
            {d.name for each in pool for d in each.spec.devices or ()} for pool in (before, after)
        ]
        assert names in whole
