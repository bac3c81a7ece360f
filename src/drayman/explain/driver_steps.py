"""What is to be done about the drivers of a pod's claims: to make a class that one brings, or to start one that publishes nothing.

That is no remedy: what a driver that is not there would publish is not known, so no search can try it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from drayman.api.resource import DeviceClass, ResourceClaim
from drayman.driver_configs.class_names import DRIVER_OF_CLASS
from drayman.explain.answer import DriverStep
from drayman.explain.conditions import DRIVER, comparison_of, conditions_of
from drayman.placement.world import World
from drayman.reasons.reason import Reason

_WITHOUT_DEVICES: Final = (Reason.NO_DEVICES, Reason.NO_SUCH_DEVICE, Reason.ATTRIBUTE_UNKNOWN)


def driver_steps(
    world: World, claims: Sequence[ResourceClaim], reason: Reason
) -> tuple[DriverStep, ...]:
    """The steps for claims that wait for this reason, each once."""
    if reason is Reason.CLASS_MISSING:
        return tuple(dict.fromkeys(_classes_to_make(world, claims)))
    if reason in _WITHOUT_DEVICES:
        return tuple(dict.fromkeys(_drivers_to_start(world, claims)))
    return ()


def _classes_to_make(world: World, claims: Sequence[ResourceClaim]) -> Iterator[DriverStep]:
    for name in _class_names(claims):
        driver = DRIVER_OF_CLASS.get(name)
        if driver is not None and name not in world.state.inventory.classes:
            yield DriverStep(
                sentence=f"Class {name} comes with driver {driver}:",
                command=f"drayman driver classes {driver} | kubectl apply -f -",
            )


def _drivers_to_start(world: World, claims: Sequence[ResourceClaim]) -> Iterator[DriverStep]:
    publishing = {each.spec.driver for each in world.objects.slices}
    for name in _class_names(claims):
        found = world.state.inventory.classes.get(name)
        driver = None if found is None else _driver_selected_by(found)
        if driver is not None and driver not in publishing:
            yield DriverStep(
                sentence=f"Class {name} selects devices of driver {driver}, which publishes none:"
                " start it where such devices are, or look at its log if it runs."
            )


def _class_names(claims: Sequence[ResourceClaim]) -> Iterator[str]:
    for claim in claims:
        for request in claim.spec.devices.requests:
            for _, asked in request.alternatives():
                yield asked.device_class_name


def _driver_selected_by(device_class: DeviceClass) -> str | None:
    """The only driver whose devices pass the selectors of a class, where they say that in so many words."""
    for selector in device_class.spec.selectors:
        for condition in () if selector.cel is None else conditions_of(selector.cel.expression):
            found = comparison_of(condition.text, list_attributes=True)
            if found is not None and (found.what, found.operator) == (DRIVER, "=="):
                return str(found.values[0].value) if len(found.values) == 1 else None
    return None
