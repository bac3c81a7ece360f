"""The errors and structures of NVML's library, as the stand-in for it has them."""

from __future__ import annotations

from ctypes import Structure, c_char, c_uint, c_uint8, c_ulonglong, c_void_p
from typing import ClassVar, Final, Self, cast

_TEXTS: Final = {
    2: "Invalid Argument",
    3: "Not Supported",
    4: "Insufficient Permissions",
    6: "Not Found",
    10: "Timeout",
    13: "Function Not Found",
    15: "GPU is lost",
    16: "GPU requires restart",
    19: "In use by another client",
    23: "Insufficient resources",
    999: "Unknown Error",
}
IN_USE: Final = 19
RESET_REQUIRED: Final = 16


class NVMLError(Exception):
    """What goes wrong. Made of a number, it is the class that the number has."""

    value: int = 999
    _classes: ClassVar[dict[int, type[NVMLError]]] = {}

    def __init_subclass__(cls) -> None:
        NVMLError._classes[cls.value] = cls

    def __new__(cls, value: int | None = None) -> Self:
        kind = NVMLError._classes.get(value, cls) if value is not None else cls
        made = super().__new__(kind)
        made.value = kind.value if value is None else value
        return cast(Self, made)

    def __str__(self) -> str:
        return _TEXTS[self.value]


class InvalidArgumentError(NVMLError):
    value = 2


class NotSupportedError(NVMLError):
    value = 3


class NoPermissionError(NVMLError):
    value = 4


class NotFoundError(NVMLError):
    value = 6


class TimeoutError(NVMLError):
    value = 10


class FunctionNotFoundError(NVMLError):
    value = 13


class LostError(NVMLError):
    value = 15


class InUseError(NVMLError):
    value = IN_USE


class InsufficientError(NVMLError):
    value = 23


class Placement(Structure):
    _fields_ = (("start", c_uint), ("size", c_uint))


class GpuInstance(Structure):
    """What a handle points to is NVML's own business."""

    _fields_ = (("number", c_uint),)


class InstanceInfo(Structure):
    _fields_ = (
        ("device", c_void_p),
        ("id", c_uint),
        ("profileId", c_uint),
        ("placement", Placement),
    )


class ProfileInfo(Structure):
    _fields_ = (
        ("version", c_uint),
        ("id", c_uint),
        ("isP2pSupported", c_uint),
        ("sliceCount", c_uint),
        ("instanceCount", c_uint),
        ("multiprocessorCount", c_uint),
        ("copyEngineCount", c_uint),
        ("decoderCount", c_uint),
        ("encoderCount", c_uint),
        ("jpegCount", c_uint),
        ("ofaCount", c_uint),
        ("memorySizeMB", c_ulonglong),
        ("name", c_char * 96),
    )


class FabricInfo(Structure):
    _fields_ = (
        ("version", c_uint),
        ("clusterUuid", c_uint8 * 16),
        ("status", c_uint),
        ("cliqueId", c_uint),
        ("state", c_uint8),
        ("healthMask", c_uint),
    )
