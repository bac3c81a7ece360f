"""The index of tainted devices says what the slices say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drayman.api.meta import ObjectMeta
from drayman.api.resource import (
    Device,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from drayman.controllers.taint_eviction.pools import Pools

POOLS = ("a", "b")
DEVICES = ("gpu-0", "gpu-1")

devices = st.builds(
    lambda name, effects: Device(
        name=name, taints=tuple(DeviceTaint(key="k", effect=effect) for effect in effects)
    ),
    st.sampled_from(DEVICES),
    st.lists(st.sampled_from(["NoExecute", "NoSchedule"]), max_size=2),
)
slices = st.builds(
    lambda name, pool, generation, device: ResourceSlice(
        metadata=ObjectMeta(name=name),
        spec=ResourceSliceSpec(
            driver="d", pool=ResourcePool(name=pool, generation=generation), devices=(device,)
        ),
    ),
    st.sampled_from(["s1", "s2", "s3"]),
    st.sampled_from(POOLS),
    st.integers(1, 2),
    devices,
)
steps = st.lists(st.one_of(slices, st.sampled_from(["s1", "s2", "s3"])), max_size=15)


def expected(held: dict[str, ResourceSlice], pool: str, device: str) -> list[set[int]]:
    """The positions of the evicting taints of a device, as each slice that counts has them."""
    of_pool = [found for found in held.values() if found.spec.pool.name == pool]
    newest = max((found.spec.pool.generation for found in of_pool), default=0)
    return [
        {index for index, taint in enumerate(one.taints) if taint.effect == "NoExecute"}
        for found in of_pool
        if found.spec.pool.generation == newest
        for one in found.spec.devices or ()
        if one.name == device
    ]


@given(steps)
def test_the_index_follows_the_slices(steps: list[ResourceSlice | str]) -> None:
    """After any changes the taints of a device are those of the newest slices, and changes are told."""
    pools = Pools()
    held: dict[str, ResourceSlice] = {}
    for step in steps:
        before = {(p, d): pools.taints_of("d", p, d) for p in POOLS for d in DEVICES}
        if isinstance(step, str):
            held.pop(step, None)
            changed = pools.remove(step)
        else:
            held[step.metadata.name] = step
            changed = pools.put(step)
        after = {(p, d): pools.taints_of("d", p, d) for p in POOLS for d in DEVICES}
        assert {("d", p) for p, d in after if before[p, d] != after[p, d]} == changed
        for (pool, device), taints in after.items():
            wanted = [found for found in expected(held, pool, device) if found]
            assert ({index for index, _ in taints} in wanted) if wanted else taints == ()
        assert pools.has_taints == any(after.values())
