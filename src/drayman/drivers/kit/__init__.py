"""A DRA driver in a few lines: a class says which devices there are and what a container needs to use one, the kit does the rest.

Names are imported when first used: configuration classes and descriptions of devices are also read where nothing is served, and must not
cost gRPC there.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from drayman.api.resource import Device as Device
    from drayman.api.struct import always as always
    from drayman.driver_configs.decoding import Config as Config
    from drayman.driver_configs.decoding import ConfigError as ConfigError
    from drayman.drivers.describing import capacity as capacity
    from drayman.drivers.describing import integer as integer
    from drayman.drivers.describing import string as string
    from drayman.drivers.describing import version as version
    from drayman.drivers.kit.command import command_of as command_of
    from drayman.drivers.kit.command import main as main
    from drayman.drivers.kit.driver import Driver as Driver
    from drayman.drivers.kit.errors import KitError as KitError
    from drayman.drivers.kit.errors import PrepareError as PrepareError
    from drayman.drivers.kit.model import Allocated as Allocated
    from drayman.drivers.kit.model import Claim as Claim
    from drayman.drivers.kit.model import Hardware as Hardware
    from drayman.drivers.kit.model import Health as Health
    from drayman.drivers.kit.model import Prepared as Prepared
    from drayman.drivers.kit.model import PreparedDevice as PreparedDevice
    from drayman.drivers.kit.options import PluginOptions as PluginOptions
    from drayman.drivers.kit.plugin import Plugin as Plugin
    from drayman.plugins.cdi import DeviceNode as DeviceNode
    from drayman.plugins.cdi import Hook as Hook
    from drayman.plugins.cdi import Mount as Mount

_NAMES: Final = {
    "api.resource": "Device",
    "api.struct": "always",
    "drivers.describing": "capacity integer string version",
    "drivers.kit.command": "command_of main",
    "driver_configs.decoding": "Config ConfigError",
    "drivers.kit.driver": "Driver",
    "drivers.kit.errors": "KitError PrepareError",
    "drivers.kit.model": "Allocated Claim Hardware Health Prepared PreparedDevice",
    "drivers.kit.options": "PluginOptions",
    "drivers.kit.plugin": "Plugin",
    "plugins.cdi": "DeviceNode Hook Mount",
}
_HOMES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"drayman.{_HOMES[name]}"), name)
