"""What is to be done about drivers: a class of theirs is missing, or they publish nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from drayman.driver_configs.class_names import DRIVER_OF_CLASS
from drayman.drivers.classes import classes_of
from drayman.drivers.known import DRIVERS
from drayman.explain.pod import explain_pod
from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, Scene
from oracle.build import claim, exactly

TO_START = (
    "Class {} selects devices of driver {}, which publishes none:"
    " start it where such devices are, or look at its log if it runs."
)
MAKE = "drayman driver classes gpu.nvidia.com | kubectl apply -f -"


def wanting(scene: Scene, *classes: str) -> Scene:
    """A pod whose claims want a device of each class."""
    return scene.waits(
        "p", {f"c{n}": claim(exactly("r", cls=name)) for n, name in enumerate(classes)}
    )


def of_class(name: str, selector: str) -> Callable[[], Scene]:
    return lambda: wanting(Scene().node("n", 1).device_class(name, selector), name)


CASES: dict[str, tuple[Callable[[], Scene], Reason, list[tuple[str, str]]]] = {
    "a class that comes with a driver": (
        lambda: wanting(Scene().node("n", 1), NVIDIA),
        Reason.CLASS_MISSING,
        [(f"Class {NVIDIA} comes with driver {NVIDIA}:", MAKE)],
    ),
    "another class of that driver": (
        lambda: wanting(Scene().node("n", 1), "mig.nvidia.com"),
        Reason.CLASS_MISSING,
        [(f"Class mig.nvidia.com comes with driver {NVIDIA}:", MAKE)],
    ),
    "a class that nobody knows": (
        lambda: wanting(Scene().node("n", 1), "mine"),
        Reason.CLASS_MISSING,
        [],
    ),
    "a driver that publishes nothing": (
        of_class("sensor", "device.driver == 'sensor.mine'"),
        Reason.NO_SUCH_DEVICE,
        [(TO_START.format("sensor", "sensor.mine"), "")],
    ),
    "a driver that publishes nothing, among other conditions": (
        of_class("mig", "device.attributes['a'].type == 'b' && device.driver == 'sensor.mine'"),
        Reason.ATTRIBUTE_UNKNOWN,
        [(TO_START.format("mig", "sensor.mine"), "")],
    ),
    "no driver at all": (
        lambda: wanting(Scene().node("n"), "gpu"),
        Reason.NO_DEVICES,
        [(TO_START.format("gpu", "gpu.example.com"), "")],
    ),
    "two claims that want the same": (
        lambda: wanting(Scene().node("n"), "gpu", "gpu"),
        Reason.NO_DEVICES,
        [(TO_START.format("gpu", "gpu.example.com"), "")],
    ),
    "a driver that publishes others": (
        of_class("big", "device.driver == 'gpu.example.com' && 'x.y' in device.attributes"),
        Reason.NO_SUCH_DEVICE,
        [],
    ),
    "one of two drivers": (
        of_class("any", "device.driver in ['a.mine', 'b.mine']"),
        Reason.NO_SUCH_DEVICE,
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_drivers_have_to_bring_is_named(name: str) -> None:
    """And nothing where it is not known which driver is wanted, or that one does its part."""
    scene, reason, steps = CASES[name]
    world = scene().world()
    found = explain_pod(world, world.objects.pods[-1])
    assert found.headline.reason is reason
    assert [(each.sentence, each.command) for each in found.driver_steps] == steps


def test_the_classes_of_all_drivers_are_known_by_name() -> None:
    """Those that `drayman driver classes` prints, and no others."""
    brought = {each.metadata.name: driver for driver in DRIVERS for each in classes_of(driver)}
    assert brought == DRIVER_OF_CLASS
