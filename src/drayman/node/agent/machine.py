"""The machine that a node runs on, and the Node object that describes it."""

from __future__ import annotations

import os
import platform
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from drayman.api.node_identity import RUNTIME
from drayman.api.quantity import Quantity
from drayman.api.struct import Json
from drayman.node.reporting import VERSION

MOST_PODS: Final = 110
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Machine:
    """What a node says about itself."""

    address: str
    cpus: int
    memory_bytes: int
    storage_bytes: int
    architecture: str
    kernel: str
    system: str
    machine_id: str
    system_uuid: str
    boot_id: str

    @classmethod
    def here(cls, folder: Path, address: str = "") -> Machine:
        """This machine. `folder` is on the disk that pods write to. Raises OSError."""
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return cls(
            address=address or own_address(),
            cpus=len(os.sched_getaffinity(0)),
            memory_bytes=pages,
            storage_bytes=shutil.disk_usage(folder).total,
            architecture=_ARCHITECTURES.get(platform.machine(), platform.machine()),
            kernel=platform.release(),
            system=_system(),
            machine_id=_line("/etc/machine-id"),
            system_uuid=_line("/sys/class/dmi/id/product_uuid"),
            boot_id=_line("/proc/sys/kernel/random/boot_id"),
        )

    @property
    def allocatable(self) -> dict[str, Quantity]:
        """Everything: nothing of the machine is kept for itself."""
        return {name: Quantity.parse(text) for name, text in self._capacity().items()}

    def _capacity(self) -> dict[str, str]:
        return {
            "cpu": str(self.cpus),
            "memory": f"{self.memory_bytes // 1024}Ki",
            "ephemeral-storage": f"{self.storage_bytes // 1024}Ki",
            "pods": str(MOST_PODS),
        }

    def labels(self, name: str) -> dict[str, str]:
        return {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": self.architecture,
        }

    def status(self, port: int, now: str) -> dict[str, Json]:
        """The status of the Node object. `port` is that of the node's own server; 0 if it has none."""
        capacity = self._capacity()
        status: dict[str, Json] = {
            "capacity": capacity,
            "allocatable": capacity,
            # No Hostname: servers would prefer it, and the name of a node need not be one that they can look up.
            "addresses": [{"type": "InternalIP", "address": self.address}],
            "conditions": conditions(now),
            "nodeInfo": {
                "architecture": self.architecture,
                "operatingSystem": "linux",
                "osImage": self.system,
                "kernelVersion": self.kernel,
                "kubeletVersion": VERSION,
                "kubeProxyVersion": "",
                "containerRuntimeVersion": f"{RUNTIME}1",
                "machineID": self.machine_id,
                "systemUUID": self.system_uuid,
                "bootID": self.boot_id,
            },
        }
        if port:
            status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}
        return status


def conditions(now: str) -> list[dict[str, Json]]:
    """Those of a node that is well."""
    kinds = (
        (
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "has sufficient memory available",
        ),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "is posting ready status"),
    )
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": f"the node {message}",
            "lastHeartbeatTime": now,
        }
        for kind, status, reason, message in kinds
    ]


def own_address() -> str:
    """The address from which others are reached. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        found: str = probe.getsockname()[0]
        return found


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"


def _line(path: str) -> str:
    """The first line of a file of the system; empty where there is none to read."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
