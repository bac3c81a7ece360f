"""Which of the drivers that come with Drayman brings a DeviceClass, for those who only know the name of the class."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

DRIVER_OF_CLASS: Final = MappingProxyType[str, str](
    {
        **{
            name: name
            for name in (
                "gpu.example.com",
                "net.example.com",
                "cpu.example.com",
                "gpu.nvidia.com",
                "gpu.amd.com",
                "gpu.intel.com",
                "gaudi.intel.com",
                "tpu.google.com",
                "npu.furiosa.ai",
                "dra.cpu",
            )
        },
        "mig.nvidia.com": "gpu.nvidia.com",
        "vfio.gpu.nvidia.com": "gpu.nvidia.com",
        "gpu-vfio.intel.com": "gpu.intel.com",
        "dranet": "dra.net",
        "rdma": "dra.net",
    }
)
