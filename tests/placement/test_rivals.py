"""Which of several claims that hold too much have to give way: all schedulers agree, and what is left fits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.resource import ResourceClaim, ResourceSlice
from drayman.inventory.features import Features
from drayman.placement.rivals import clash, contested, held_twice, yields
from drayman.placement.state import ClusterState

DRIVER, POOL = "gpu.example.com", "pool"


def slices() -> ResourceSlice:
    """Two whole devices, one that is shared by its memory, and three partitions of which two fit together."""
    memory = {"memory": {"value": "8Gi"}}
    shared = {"name": "shared", "allowMultipleAllocations": True, "capacity": memory}
    half = [{"counterSet": "card", "counters": {"slots": {"value": "2"}}}]
    parts = [{"name": f"part-{number}", "consumesCounters": half} for number in range(3)]
    whole = [{"name": f"whole-{number}"} for number in range(2)]
    return piece("s", 1, devices=[*whole, shared, *parts])


def counters() -> ResourceSlice:
    """As above: four slots."""
    sets = [{"name": "card", "counters": {"slots": {"value": "4"}}}]
    return piece("counters", 2, sharedCounters=sets)


def piece(name: str, slices: int, **content: Any) -> ResourceSlice:
    """One of the slices of the pool."""
    pool = {"name": POOL, "generation": 1, "resourceSliceCount": slices}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": "n", **content}
    return convert(ResourceSlice, {"metadata": {"name": name}, "spec": spec})


def claim(name: str, version: int, *devices: str) -> ResourceClaim:
    """A claim; of the shared device it takes 3Gi."""
    results: list[dict[str, Any]] = []
    for device in devices:
        result = {"request": "r", "driver": DRIVER, "pool": POOL, "device": device}
        if device == "shared":
            result |= {"shareID": f"share-{name}", "consumedCapacity": {"memory": "3Gi"}}
        results.append(result)
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
    status = {"allocation": {"devices": {"results": results}}} if results else {}
    return convert(ResourceClaim, {"metadata": metadata, "status": status})


def seen(claims: Sequence[ResourceClaim], *, late: bool = False) -> ClusterState:
    """The state of a scheduler that has followed these claims, or of one that was started after all of them."""
    state = ClusterState(Features(), lambda _: None)
    state.set_slice(slices())
    state.set_slice(counters())
    for number, each in enumerate(claims):
        if not late:
            state.set_claim(claim(each.metadata.name, number))
        state.set_claim(each)
    return state


def unused(_: ResourceClaim) -> bool:
    return False


DEVICES = ["whole-0", "whole-1", "shared", "part-0", "part-1", "part-2"]
HOLDINGS = st.lists(st.sets(st.sampled_from(DEVICES), min_size=1, max_size=3), max_size=5)


@given(HOLDINGS, st.data())
def test_what_does_not_give_way_fits(holdings: list[set[str]], data: st.DataObject) -> None:
    """Whatever was given away, what is kept is no more than there is, and the first claim keeps what it has."""
    claims = [claim(f"c{i}", 100 + i, *sorted(each)) for i, each in enumerate(holdings)]
    running = {c.metadata.name for c in claims[:1] if data.draw(st.booleans())}
    state = seen(claims)
    kept = [c for c in claims if not yields(state, c, lambda c: c.metadata.name in running)]
    assert kept[:1] == claims[:1]
    left = seen(kept)
    assert all(clash(left, each) is None for each in kept)
    if len(kept) == len(claims):
        assert all(clash(state, each) is None for each in claims)


def test_nothing_is_taken_from_a_pod_on_a_node() -> None:
    """Though it was second: the first gives way if it can."""
    first, second = claim("first", 10, "whole-0"), claim("second", 11, "whole-0")
    state = seen([first, second])
    found = yields(state, first, lambda c: c is second)
    assert found is not None
    assert (found.what, found.others) == ("device gpu.example.com/pool/whole-0", ("second",))
    assert yields(state, second, lambda c: c is second) is None
    both = [yields(state, each, lambda _: True) for each in (first, second)]
    assert both == [None, None]


def test_a_scheduler_that_did_not_see_who_was_first_yields() -> None:
    """Never do both keep a device, whichever of the two schedulers was started late."""
    claims = [claim("a", 10, "whole-0"), claim("b", 11, "whole-0")]
    for own, other in permutations(claims):
        for views in ((True, False), (False, True), (True, True)):
            mine, theirs = (seen(claims, late=late) for late in views)
            keeps = [yields(mine, own, unused) is None, yields(theirs, other, unused) is None]
            assert keeps != [True, True]


def test_each_kind_of_excess_has_its_name() -> None:
    """A device, a capacity, a counter."""
    cases = {
        "device gpu.example.com/pool/whole-0": ("whole-0", "whole-0"),
        "memory of device gpu.example.com/pool/shared": ("shared", "shared", "shared"),
        "counter slots of card in pool gpu.example.com/pool": ("part-0", "part-1", "part-2"),
    }
    for what, devices in cases.items():
        claims = [claim(f"c{i}", 10 + i, device) for i, device in enumerate(devices)]
        found = yields(seen(claims), claims[-1], unused)
        assert found is not None
        assert (found.what, len(found.others)) == (what, len(devices) - 1)


def test_a_claim_is_contested_while_another_has_its_device_and_after_that() -> None:
    """kube-scheduler forgets a device when one of two claims is deallocated: the other is allocated again before it is used."""
    first, second = claim("first", 10, "whole-0"), claim("second", 11, "whole-0")
    state = seen([first, second])
    assert contested(state, first) == ""
    text = "device gpu.example.com/pool/whole-0 is held by claim default/first too, which was first"
    assert contested(state, second) == text
    assert [str(each) for each in held_twice(state, second)] == ["gpu.example.com/pool/whole-0"]
    state.set_claim(claim("first", 12))
    assert held_twice(state, second) == ()
    assert "was held by another claim too" in contested(state, second)
    state.set_claim(claim("second", 13))
    state.set_claim(claim("second", 14, "whole-0"))
    assert contested(state, claim("second", 14, "whole-0")) == ""


def test_shares_of_a_device_and_other_devices_are_not_contested() -> None:
    """What kube-scheduler removes for one claim is exactly what that claim had."""
    state = seen([claim("a", 10, "shared", "whole-0"), claim("b", 11, "shared", "whole-1")])
    state.set_claim(claim("a", 12))
    assert contested(state, claim("b", 11, "shared", "whole-1")) == ""


def test_a_trial_leaves_no_trace_of_what_was_forgotten() -> None:
    """What is supposed to be deallocated counts until the end of the trial."""
    first, second = claim("first", 10, "whole-0"), claim("second", 11, "whole-0")
    state = seen([first, second])
    with state.trial():
        state.set_claim(claim("first", 12))
        assert state.forgotten_of(second)
    assert not state.forgotten_of(second)
