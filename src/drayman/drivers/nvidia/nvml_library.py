"""NVIDIA's library NVML: how it is found, and how GPUs are found in it.

It is the module `pynvml` of the package `nvidia-ml-py`, or what a test gives in its place. It is imported when a driver starts, because
nothing else needs it.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

from drayman.drivers.kit.errors import KitError


class Library:
    """The module, and what all who call it need. Methods raise its `NVMLError` unless they say otherwise."""

    def __init__(self, module: Any) -> None:
        self.module = module

    @classmethod
    def load(cls) -> Library:
        """Raises KitError if the package, NVIDIA's driver or its library is not there."""
        try:
            found = cls(import_module("pynvml"))
        except ModuleNotFoundError:
            raise KitError(
                "gpu.nvidia.com needs the package nvidia-ml-py: pip install 'drayman[nvidia]'"
            ) from None
        found.start()
        return found

    def start(self) -> None:
        """Raises KitError."""
        try:
            self.module.nvmlInitWithFlags(self.module.NVML_INIT_FLAG_NO_GPUS)
        except self.error as error:
            raise KitError(f"NVML cannot be used: {error}; is NVIDIA's driver loaded?") from error

    @property
    def error(self) -> type[Exception]:
        """What it raises."""
        found: type[Exception] = self.module.NVMLError
        return found

    @property
    def unsupported(self) -> tuple[type[Exception], ...]:
        """What it raises where a GPU or a driver does not have something."""
        return (
            self.module.NVMLError_NotSupported,
            self.module.NVMLError_FunctionNotFound,
            self.module.NVMLError_InvalidArgument,
        )

    def handle(self, uuid: str) -> Any:
        """A GPU."""
        try:
            return self.module.nvmlDeviceGetHandleByUUID(uuid)
        except self.module.NVMLError_GpuIsLost:
            # On its search the library has come upon a GPU that is lost, which need not be this one.
            found = self._search(uuid)
            if found is None:
                raise
            return found

    def _search(self, uuid: str) -> Any:
        for index in range(self.module.nvmlDeviceGetCount()):
            with suppress(self.error):
                handle = self.module.nvmlDeviceGetHandleByIndex(index)
                if text(self.module.nvmlDeviceGetUUID(handle)) == uuid:
                    return handle
        return None


def text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
