"""Which writes turn the slices that are published into those that should be.

A pool is complete if all of its slices have the same, highest generation and there are as many as each of them says. A change that one
write makes leaves every reader with a complete pool, before and after, and keeps the generation. Where more are needed, all slices get a
new generation: readers leave the pool alone until the last one is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from drayman.api.codec import encode, encode_json
from drayman.api.formats import SUBDOMAIN_LENGTH
from drayman.api.meta import ObjectMeta, OwnerReference
from drayman.api.resource import (
    Device,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from drayman.api.validation import resource_slice
from drayman.drivers.describing import fingerprint
from drayman.drivers.kit.errors import PublishError
from drayman.drivers.kit.model import Hardware
from drayman.drivers.splitting import SliceContent, contents_of


@dataclass(frozen=True, slots=True)
class Publisher:
    """Who publishes: one driver on one node, whose pool has the name of the node."""

    driver: str
    node: str
    node_uid: str

    def slice_name(self, index: int) -> str:
        """Names sort like indices, because the allocator goes through the slices of a pool by name: the order is a preference."""
        name = f"{index:05x}-{self.driver}-{self.node}"
        if len(name) <= SUBDOMAIN_LENGTH:
            return name
        digits = fingerprint(self.driver, self.node, size=8)
        return f"{name[: SUBDOMAIN_LENGTH - len(digits) - 1].rstrip('-.')}-{digits}"

    def make(self, index: int, content: SliceContent, generation: int, count: int) -> ResourceSlice:
        owner = OwnerReference(
            api_version="v1", kind="Node", name=self.node, uid=self.node_uid, controller=True
        )
        return ResourceSlice(
            metadata=ObjectMeta(name=self.slice_name(index), owner_references=(owner,)),
            spec=ResourceSliceSpec(
                driver=self.driver,
                pool=ResourcePool(
                    name=self.node, generation=generation, resource_slice_count=count
                ),
                node_name=self.node,
                devices=content.devices,
                shared_counters=content.counters,
            ),
        )


@dataclass(frozen=True, slots=True)
class Changes:
    """In the order in which they are made: what is out of date goes last."""

    creates: tuple[ResourceSlice, ...] = ()
    updates: tuple[ResourceSlice, ...] = ()
    deletes: tuple[ResourceSlice, ...] = ()

    @property
    def count(self) -> int:
        return len(self.creates) + len(self.updates) + len(self.deletes)


def changes(
    publisher: Publisher,
    current: Sequence[ResourceSlice],
    contents: Sequence[SliceContent],
    last_generation: int = 0,
) -> Changes:
    """What to write. `current` is what the driver has published on the node; `last_generation` the highest that it remembers."""
    count = len(contents)
    wanted = {publisher.slice_name(index): index for index in range(count)}
    there = {each.metadata.name: each for each in current if _belongs(each, publisher)}
    deletes = tuple(each for each in current if each.metadata.name not in wanted)
    filled = _with_times(contents, there.values())
    top = max((each.spec.pool.generation for each in there.values()), default=0)
    differing = [
        index
        for name, index in wanted.items()
        if name not in there or not _holds(there[name], filled[index], top, count)
    ]
    if not differing and not deletes:
        return Changes()
    if len(differing) + len(deletes) > 1 or not there:
        top = max(top, last_generation) + 1
        differing = list(range(count))
    made = [publisher.make(index, filled[index], top, count) for index in differing]
    return Changes(
        tuple(each for each in made if each.metadata.name not in there),
        tuple(
            _over(there[each.metadata.name], each) for each in made if each.metadata.name in there
        ),
        deletes,
    )


def _belongs(found: ResourceSlice, publisher: Publisher) -> bool:
    """Whether a slice can be made what it should be: driver, node and pool of a slice do not change."""
    spec = found.spec
    own = (publisher.driver, publisher.node, publisher.node)
    return (spec.driver, spec.node_name, spec.pool.name) == own


def _holds(found: ResourceSlice, content: SliceContent, generation: int, count: int) -> bool:
    pool = found.spec.pool
    return (
        (found.spec.devices or ()) == (content.devices or ())
        and (found.spec.shared_counters or ()) == (content.counters or ())
        and (pool.generation, pool.resource_slice_count) == (generation, count)
    )


def _over(old: ResourceSlice, new: ResourceSlice) -> ResourceSlice:
    """A new slice as an update of an old one, which must not have changed meanwhile. Labels of others are kept."""
    owners = new.metadata.owner_references
    return replace(new, metadata=replace(old.metadata, owner_references=owners))


def _with_times(
    contents: Sequence[SliceContent], published: Iterable[ResourceSlice]
) -> list[SliceContent]:
    """The same with the times of taints that are published already: a taint is as old as it was."""
    known = {
        device.name: device.taints
        for each in published
        for device in each.spec.devices or ()
        if device.taints
    }
    if not known:
        return list(contents)
    return [
        SliceContent(tuple(_timed(device, known) for device in each.devices))
        if each.devices is not None
        else each
        for each in contents
    ]


def _timed(device: Device, known: Mapping[str, tuple[DeviceTaint, ...]]) -> Device:
    times = {(t.key, t.value, t.effect): t.time_added for t in known.get(device.name, ())}
    if not device.taints or not times:
        return device
    return replace(
        device,
        taints=tuple(
            replace(t, time_added=t.time_added or times.get((t.key, t.value, t.effect)))
            for t in device.taints
        ),
    )


def contents_to_publish(publisher: Publisher, hardware: Hardware) -> list[SliceContent]:
    """The slices that hardware needs. Raises PublishError if an API server would refuse them, or an allocator would not understand them."""
    contents = contents_of(hardware.groups, hardware.counters)
    problems = [*_across(hardware)]
    for index, content in enumerate(contents):
        made = publisher.make(index, content, 1, len(contents))
        problems += _problems_of(made)
    if problems:
        raise PublishError(
            f"driver {publisher.driver} describes devices that cannot be published: {'; '.join(problems)}"
        )
    return contents


def _problems_of(made: ResourceSlice) -> list[str]:
    try:
        problems = [str(error) for error in resource_slice.validate(made)]
        encode(made)
    except UnicodeEncodeError as error:
        return [f"{error.object!r} has bytes that are not UTF-8"]
    return problems


def _across(hardware: Hardware) -> Iterable[str]:
    """Rules between slices, which no API server checks, and what goes elsewhere."""
    try:
        encode_json(dict(hardware.labels))
    except UnicodeEncodeError as error:
        yield f"a label of the node has {error.object!r}, which has bytes that are not UTF-8"
    names: set[str] = set()
    sets = {each.name: each for each in hardware.counters}
    if len(sets) < len(hardware.counters):
        yield "a set of counters is there twice"
    for device in hardware.devices:
        if device.name in names:
            yield f"device {device.name} is there twice"
        names.add(device.name)
        for consumed in device.consumes_counters:
            known = sets.get(consumed.counter_set)
            if known is None:
                yield f"device {device.name} consumes of {consumed.counter_set}, which is not there"
                continue
            for counter in consumed.counters.keys() - known.counters.keys():
                yield f"device {device.name} consumes counter {counter}, which {consumed.counter_set} has not"
