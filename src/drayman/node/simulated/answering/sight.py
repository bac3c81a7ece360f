"""What a container sees: its devices, its environment and its device nodes, from what was allocated and published."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from drayman.api.core import Container, Pod
from drayman.api.pods import requests_used
from drayman.api.quantity import Quantity
from drayman.api.resource import Device, DeviceRequestAllocationResult, ResourceClaim
from drayman.driver_configs.decoding import Config
from drayman.driver_configs.known import FindDevice
from drayman.driver_configs.memory_limits import limited_results
from drayman.driver_configs.nvidia import MPS_DIR, MPS_PIPES, MPS_VARIABLE, mps_settings

NVIDIA: Final = "gpu.nvidia.com"
COMPUTE_DOMAIN: Final = "compute-domain.nvidia.com"
AMD: Final = "gpu.amd.com"
GAUDI: Final = "gaudi.intel.com"
TPU: Final = "tpu.google.com"

MEBIBYTE: Final = 1024 * 1024
_NAMES: Final = ("productName", "model", "tpuGen", "dra.net/ifName", "type")
_IDENTITIES: Final = ("uuid", "serial", "deviceID", "dra.net/mac")
_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class SeenDevice:
    """A device of a container, with what its driver published about it."""

    claim: str
    result: DeviceRequestAllocationResult
    published: Device
    claim_uid: str = ""
    config: Config | None = None
    """How its driver is to set it up."""
    limit: Quantity | None = None
    """How much of its memory each program may use, if that is limited."""

    @property
    def driver(self) -> str:
        return self.result.driver

    @property
    def name(self) -> str:
        return self.result.device

    def attribute(self, name: str) -> str:
        """An attribute as text; empty if the device does not have it."""
        found = self.published.attributes.get(name)
        if found is None:
            return ""
        value = next(
            (v for v in (found.string, found.version, found.int_) if v is not None), found.bool_
        )
        return "" if value is None else str(value)

    @property
    def memory(self) -> int | None:
        """In mebibytes: its share where it shares the device."""
        shared: Quantity | None = self.result.consumed_capacity.get("memory")
        whole = self.published.capacity.get("memory")
        amount = shared if shared is not None else None if whole is None else whole.value
        return None if amount is None else amount.rounded_up() // MEBIBYTE

    @property
    def index(self) -> int:
        """The first number in its name, which is how drivers count devices: 3 for `gpu-3-mig-1g10gb-19-0`."""
        found = _NUMBER.search(self.name)
        return 0 if found is None else int(found[0])

    def __str__(self) -> str:
        """As in `gpu-0 of gpu.nvidia.com: NVIDIA H100 80GB HBM3, 81559 MiB, GPU-0f3c...`."""
        known = [
            self._first(_NAMES),
            self.attribute("profile"),
            "" if self.memory is None else f"{self.memory} MiB",
            self._first(_IDENTITIES),
            "shared" if self.result.share_id else "",
            f"limited to {self.limit} of memory" if self.limit is not None else "",
            "admin access" if self.result.admin_access else "",
        ]
        described = ", ".join(filter(None, known))
        return f"{self.name} of {self.driver}{': ' if described else ''}{described}"

    def _first(self, names: Iterable[str]) -> str:
        return next(filter(None, map(self.attribute, names)), "")


@dataclass(frozen=True, slots=True)
class Sight:
    """A container from the inside."""

    namespace: str
    pod: str
    node: str
    container: str
    devices: tuple[SeenDevice, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    """What its specification sets."""
    unknown_variables: tuple[str, ...] = ()
    """Names whose values come from elsewhere, which nothing here reads."""

    def of(self, driver: str) -> tuple[SeenDevice, ...]:
        """Its devices of one driver, each once."""
        found = {(d.result.pool, d.name): d for d in self.devices if d.driver == driver}
        return tuple(found.values())

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOSTNAME": self.pod,
            **self.variables,
            **dict(_device_variables(self)),
            "HOME": "/root",
        }

    @property
    def device_nodes(self) -> list[str]:
        """Paths below /dev, those that every container has first."""
        return [*(f"/dev/{name}" for name in _EVERYWHERE), *dict.fromkeys(_device_nodes(self))]


def devices_of(
    pod: Pod, container: Container, claims: Iterable[ResourceClaim], find: FindDevice
) -> Iterator[SeenDevice]:
    """The devices that a container asks for, out of those of its pod's claims."""
    wanted = requests_used(pod, container)
    for claim in claims:
        requests = wanted.get(claim.metadata.name)
        if requests is None:
            continue
        meta = claim.metadata
        for result, config, limit in limited_results(claim, find):
            if not requests or result.request.partition("/")[0] in requests:
                published = find(result)
                if published is None:
                    published = Device(name=result.device)
                yield SeenDevice(meta.name, result, published, meta.uid, config, limit)


_EVERYWHERE: Final = (
    "core",
    "fd",
    "full",
    "mqueue",
    "null",
    "ptmx",
    "pts",
    "random",
    "shm",
    "stderr",
    "stdin",
    "stdout",
    "termination-log",
    "tty",
    "urandom",
    "zero",
)
_NVIDIA_COMMON: Final = ("nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools")


def _device_nodes(sight: Sight) -> Iterator[str]:
    for device in sight.of(NVIDIA):
        if device.attribute("type") == "vfio":
            yield "/dev/vfio/vfio"
        else:
            yield from (f"/dev/{name}" for name in _NVIDIA_COMMON)
            yield f"/dev/nvidia{device.index}"
    for device in sight.of(COMPUTE_DOMAIN):
        if device.attribute("type") == "channel":
            yield f"/dev/nvidia-caps-imex-channels/channel{device.attribute('id')}"
    for device in sight.of(AMD):
        yield "/dev/kfd"
        yield f"/dev/dri/card{device.attribute('cardIndex')}"
        yield f"/dev/dri/renderD{device.attribute('renderIndex')}"
    for device in sight.of(TPU):
        yield "/dev/vfio/vfio"
        yield f"/dev/vfio/{device.name}"


def _device_variables(sight: Sight) -> Iterator[tuple[str, str]]:
    """What the drivers' CDI files set, as far as what is published determines it."""
    if any(device.attribute("type") != "vfio" for device in sight.of(NVIDIA)):
        yield "NVIDIA_VISIBLE_DEVICES", "void"
    for device in sight.of(NVIDIA):
        if mps_settings(device.config) is not None and not device.result.admin_access:
            yield MPS_VARIABLE, f"{MPS_DIR}/{device.claim_uid}/{MPS_PIPES}"
    for device in sight.of(TPU):
        yield "TPU_SKIP_MDS_QUERY", "true"
        yield "TPU_TOPOLOGY", device.attribute("topology")
    for driver, stem in (("gpu.example.com", "GPU_DEVICE"), ("net.example.com", "NET_DEVICE")):
        for device in sight.of(driver):
            yield f"{stem}_{device.index}", device.name
