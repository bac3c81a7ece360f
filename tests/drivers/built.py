"""Machines like those of profiles, and claims for what drivers find on them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from drayman.api.resource import Device
from drayman.driver_configs.decoding import decode
from drayman.driver_configs.known import CONFIGS
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.model import Allocated, Claim, Hardware, Prepared
from drayman.drivers.profiles import PROFILES
from drayman.testing import FakeMachine
from drayman.testing.trees import add_hardware


def machine_like(profile: str, folder: Path) -> FakeMachine:
    machine = FakeMachine(folder)
    add_hardware(machine, PROFILES[profile].unit(0)[0])
    return machine


def claim(driver: Driver, *names: str, uid: str = "u-1", said: Any = None, **more: Any) -> Claim:
    hardware = driver.discover()
    assert isinstance(hardware, Hardware)
    devices = {device.name: device for device in hardware.devices}
    config = None if said is None else decode(said, CONFIGS[driver.name])
    return Claim(
        namespace="default",
        name="c",
        uid=uid,
        devices=tuple(
            Allocated(request="r", pool="n", name=name, device=devices[name], config=config, **more)
            for name in names
        ),
    )


def held_by(uid: str, devices: Iterable[Device]) -> Claim:
    """A claim that has devices."""
    found = (Allocated(request="r", pool="n", name=each.name, device=each) for each in devices)
    return Claim(namespace="default", name=uid, uid=uid, devices=tuple(found))


def prepared(driver: Driver, wanted: Claim) -> Prepared:
    found = driver.prepare(wanted)
    if isinstance(found, Prepared):
        return found
    assert isinstance(found, Iterable)
    return Prepared(devices=list(found))
