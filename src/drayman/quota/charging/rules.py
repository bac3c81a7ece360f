"""Which of Kueue's limits hold when devices are priced: all that differs between our prices and Kueue's is here.

Kueue refuses what it cannot count in advance, and leaves some things out of its count. `Rules()` has none of that. `KUEUE` is what
Kueue decides, for comparing decisions with its own. Where Kueue is plainly wrong (sidecars, names of capacities, requests that only
another order of devices serves, capacity that no device has), both do what is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from drayman.api.struct import Json


class Gates(Struct, frozen=True):
    """Kueue's feature gates about devices. Everything is on unless it is switched off."""

    devices: bool = True
    extended: bool = True
    counters: bool = True
    capacity: bool = True
    refuses_when_off: bool = True
    """With `devices` off: whether workloads with claims are refused, or admitted at no charge for them."""

    @classmethod
    def of_kueue(cls, given: Mapping[str, bool], *, capacity: bool = False) -> Gates:
        """Kueue's defaults with these changes, by the names of its gates. Capacity is off in it unless switched on."""
        return cls(
            devices=given.get("KueueDRAIntegration", True),
            extended=given.get("KueueDRAIntegrationExtendedResource", True),
            counters=given.get("KueueDRAIntegrationPartitionableDevices", True),
            capacity=given.get("KueueDRAIntegrationConsumableCapacity", capacity),
            refuses_when_off=given.get("KueueDRARejectWorkloadsWhenDRADisabled", True),
        )

    @classmethod
    def of_configuration(cls, configuration: Json) -> Gates:
        """As a Configuration sets them. Unlike in Kueue, what it does not mention is on."""
        given = (configuration or {}).get("featureGates")
        return cls.of_kueue(given if isinstance(given, dict) else {}, capacity=True)


class Rules(Struct, frozen=True):
    """What is priced, and how carefully."""

    claims: bool = True
    """Pods may name claims, which are charged once. Kueue refuses them for good."""
    all_devices: bool = True
    """Requests may ask for all devices of a node; Kueue refuses."""
    alternatives: bool = True
    """Requests may list alternatives (`firstAvailable`), charged at the dearest; Kueue refuses."""
    implicit_names: bool = True
    """`deviceclass.resource.kubernetes.io/CLASS` means devices of the class; to Kueue it is an ordinary resource."""
    extended_sources: bool = True
    """An extended resource may have a class that is measured rather than counted; Kueue refuses."""
    first_source: bool = True
    """The first source that applies to a device measures it. In Kueue each source must match on its own, and their charges add up."""
    classes_exist: bool = True
    """No price without the DeviceClass, since nothing could be allocated. Kueue only looks for it if there are selectors."""
    taints: bool = True
    """Tainted devices are there only for requests that tolerate the taints. Kueue ignores taints."""
    all_pods: bool = True
    """There must be devices for all claims of all pods together. Kueue looks at one claim at a time, and only at its selectors."""
    constraints: bool = True
    """There must be a node that could meet the constraints of a pod's claims. Kueue does not look at them."""
    flavors: bool = True
    """In a flavor with node labels, devices cost what those on its nodes cost. Kueue has one price for the whole cluster."""
    whole_requests: bool = True
    """A device serves a request for capacity only if it has every capacity asked for; Kueue looks at the one it charges."""


KUEUE: Final = Rules(
    claims=False,
    all_devices=False,
    alternatives=False,
    implicit_names=False,
    extended_sources=False,
    first_source=False,
    classes_exist=False,
    taints=False,
    all_pods=False,
    constraints=False,
    flavors=False,
    whole_requests=False,
)
"""As Kueue decides."""
