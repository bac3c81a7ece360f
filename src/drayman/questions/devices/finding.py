"""Devices that a cluster publishes, found by the names that people give them, and the rules that taint them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from drayman.api.near_names import did_you_mean
from drayman.questions.errors import NamingError, NoSuchObjectError, QuestionError

if TYPE_CHECKING:
    from drayman.api.resource import DeviceTaint, DeviceTaintRule, ResourceSlice
    from drayman.cluster import Client


@dataclass(frozen=True, slots=True)
class PublishedDevice:
    """A device and where it is published."""

    driver: str
    pool: str
    name: str
    node: str
    slice_name: str
    index: int
    """In the slice's list."""
    taints: tuple[DeviceTaint, ...]

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.driver, self.pool, self.name)


async def devices(client: Client) -> list[PublishedDevice]:
    """Every device of the newest generation of its pool, in the order of the slices' names."""
    from drayman.cluster.resources import RESOURCE_SLICES
    from drayman.inventory.pool import newest_slices

    slices = (await client.list_all(RESOURCE_SLICES)).items
    newest = chain.from_iterable(newest_slices(slices).values())
    in_order = sorted(newest, key=lambda item: item.metadata.name)
    return [found for item in in_order for found in _of_slice(item)]


def _of_slice(item: ResourceSlice) -> Iterable[PublishedDevice]:
    spec = item.spec
    for index, each in enumerate(spec.devices or ()):
        where = spec.node_name or each.node_name or ""
        yield PublishedDevice(
            spec.driver, spec.pool.name, each.name, where, item.metadata.name, index, each.taints
        )


async def find_device(client: Client, name: str) -> PublishedDevice:
    """The device that is meant, as POOL/NAME or DRIVER/POOL/NAME. Raises QuestionError if there is none, or more than one."""
    parts = name.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise NamingError(f"{name!r} is not a device; write POOL/NAME or DRIVER/POOL/NAME")
    every = await devices(client)
    fitting = [found for found in every if list(found.key[-len(parts) :]) == parts]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        choices = ", ".join(map(str, fitting))
        raise QuestionError(f"{name!r} can be any of {choices}: name the driver too")
    names = {"/".join(found.key[-len(parts) :]) for found in every}
    meant = did_you_mean(name, names, "`drayman device list`")
    raise NoSuchObjectError(f"there is no device {name!r}{meant}")


async def taint_rules(client: Client) -> tuple[DeviceTaintRule, ...]:
    """All DeviceTaintRules of the cluster."""
    from drayman.cluster.resources import DEVICE_TAINT_RULES

    return (await client.list_all(DEVICE_TAINT_RULES)).items


def is_about(rule: DeviceTaintRule, found: PublishedDevice) -> bool:
    """Whether a rule taints the device."""
    from drayman.inventory.taints import selects

    return selects(rule, *found.key)
