"""`gpu.nvidia.com`: GPUs for containers.

Partitions are made when a claim is prepared and destroyed when it is unprepared (`--dynamic-mig`), or published as they are. What was half
done is found by its place, not by what was remembered: the name of a partition says where it is.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import ClassVar, Final

import click

from drayman.api.resource import Device
from drayman.driver_configs.decoding import Config
from drayman.driver_configs.known import CONFIGS, config_type
from drayman.driver_configs.nvidia import MPS, GpuConfig, MigDeviceConfig, MpsConfig
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.kit.model import (
    Allocated,
    Claim,
    Hardware,
    Health,
    Prepared,
    PreparedDevice,
)
from drayman.drivers.nvidia import devices, files, mig, programs
from drayman.drivers.nvidia.devices import DRIVER, Gpu
from drayman.drivers.nvidia.discovery import discover, existing_partitions
from drayman.drivers.nvidia.health import Monitor
from drayman.drivers.nvidia.nvml import GpuFacts, Instance, MigDevice, Nvml
from drayman.plugins.cdi import DeviceNode, Mount

_log: Final = logging.getLogger(__name__)
MPS_DIR: Final = Path("/var/run/drayman/mps")
_VOID: Final = {"NVIDIA_VISIBLE_DEVICES": "void"}
"""NVIDIA's own runtime, where it is installed too, is not to add anything."""
_SHARED_MEMORY: Final = "/dev/shm"


class NvidiaGpuDriver(Driver):
    """Whole GPUs and partitions of one machine."""

    name = DRIVER
    configs: ClassVar[tuple[type[Config], ...]] = CONFIGS[DRIVER]
    options: ClassVar[Sequence[click.Option]] = (
        click.Option(
            ["--dynamic-mig"],
            is_flag=True,
            help="Offer every partition that GPUs can be divided into, and make them when they are used.",
        ),
        click.Option(
            ["--destroy-unknown-mig"],
            is_flag=True,
            help="With --dynamic-mig: at the start, destroy partitions that no claim has.",
        ),
        click.Option(
            ["--mps-dir"],
            type=click.Path(path_type=Path),
            default=MPS_DIR,
            show_default=True,
            metavar="DIR",
            help="Where the control daemons of MPS have their pipes and logs.",
        ),
    )

    def __init__(
        self,
        node: str,
        dynamic_mig: bool = False,
        destroy_unknown_mig: bool = False,
        mps_dir: Path = MPS_DIR,
        *,
        nvml: Nvml | None = None,
        root: Path = Path("/"),
    ) -> None:
        """`nvml` and `root` are replaced by tests. Raises KitError if the machine has no NVML."""
        super().__init__(node)
        self._dynamic = dynamic_mig
        self._destroy_unknown = destroy_unknown_mig
        self._mps_dir = mps_dir
        self._nvml = nvml or Nvml.load()
        self._root = root
        self._gpus: dict[str, Gpu] = {}
        self._names: tuple[str, ...] = ()
        """Of the devices that were discovered last."""
        self._dividing = Lock()
        self._monitor = Monitor(self._nvml)

    @classmethod
    def config_type(cls, device: Device) -> type[Config] | None:
        return config_type(DRIVER, device)

    # --- What there is -------------------------------------------------------------------------

    def recover(self, claims: Sequence[Claim]) -> None:
        """Destroys partitions that no claim has, if that is wanted."""
        if not (self._dynamic and self._destroy_unknown):
            return
        self._read()
        known = {each.name for claim in claims for each in claim.devices}
        for gpu in self._gpus.values():
            if not self._nvml.mig_mode(gpu.uuid):
                continue
            for instance in self._nvml.instances(gpu.uuid):
                name = _partition_name(gpu, instance)
                if name not in known:
                    _log.warning("destroying partition %s, which no claim has", name)
                    self._nvml.destroy_partition(gpu.uuid, instance)

    def discover(self) -> Hardware:
        found = self._discover()
        self._names = tuple(device.name for device in found.devices)
        return found

    def _discover(self) -> Hardware:
        found = self._read()
        if self._dynamic:
            return self._dividable([gpu for gpu, _ in found])
        return Hardware.of(
            device
            for gpu, facts in found
            for device in (
                devices.partitions(gpu, existing_partitions(self._nvml, gpu))
                if facts.mig_enabled
                else [devices.whole(gpu)]
            )
        )

    def _read(self) -> list[tuple[Gpu, GpuFacts]]:
        found = discover(self._nvml, self._root)
        self._gpus = {gpu.name: gpu for gpu, _ in found}
        self._monitor.follow({gpu.uuid for gpu, _ in found})
        return found

    def _dividable(self, gpus: Sequence[Gpu]) -> Hardware:
        """Whole and in parts, where a GPU can be both; where it has to be reset in between, as it is."""
        dividing, whole = [], []
        for gpu in gpus:
            reset = not gpu.model.divides_when_idle
            if not gpu.model.mig_profiles or (reset and not self._nvml.mig_mode(gpu.uuid)):
                whole.append(devices.whole(gpu))
            else:
                dividing.append(gpu)
        found = devices.dividable(dividing)
        groups = (*((tuple(whole),) if whole else ()), *found.groups)
        return Hardware(groups=groups, counters=found.counters)

    def _gpu(self, device: Allocated) -> Gpu:
        """The GPU that a device is, or is a part of."""
        name = device.name.partition("-mig-")[0]
        if name not in self._gpus:
            self._read()
        if name not in self._gpus:
            raise PrepareError(f"{name} is not on node {self.node} any more")
        return self._gpus[name]

    # --- Preparing -----------------------------------------------------------------------------

    def prepare(self, claim: Claim) -> Prepared:
        prepared: list[PreparedDevice] = []
        shared: dict[str, MpsConfig] = {}
        sliced = [self._gpu(each).uuid for each in claim.devices if _is_sliced(each)]
        for each in claim.devices:
            gpu = self._gpu(each)
            if _is_partition(each):
                made = self._partition(gpu, each)
                nodes, uuid = self._nodes_of_partition(gpu, made), made.uuid
            else:
                if not each.admin_access:
                    self._undivide(gpu)
                nodes, uuid = files.gpu_nodes(self._root, gpu.minor, gpu.slot.bus_id), gpu.uuid
            if not each.admin_access:
                settings = self._share(gpu, each)
                if settings is not None:
                    shared[uuid] = settings
            prepared.append(PreparedDevice(device=each, device_nodes=nodes))
        mounts = files.mounts_of_libraries(self._root)
        more = self._start_mps(claim, shared)
        return Prepared(
            devices=prepared,
            env={**_VOID, **({"CUDA_MPS_PIPE_DIRECTORY": more[0].host_path} if more else {})},
            device_nodes=files.common_nodes(self._root),
            mounts=[*mounts, *more],
            hooks=files.hooks(self._root, mounts),
            state={"sliced": sliced},
        )

    def unprepare(self, claim: Claim) -> None:
        programs.MpsDaemon(self._mps_dir / claim.uid).stop()
        for each in claim.devices:
            if each.admin_access:
                continue
            gpu = self._gpu(each)
            if _is_partition(each):
                if self._dynamic:
                    self._destroy(gpu, each.name)
            elif _sharing(each) is not None:
                self._nvml.set_exclusive(gpu.uuid, exclusive=False)
        for uuid in claim.state["sliced"] if isinstance(claim.state, dict) else ():
            programs.set_time_slice(uuid, 0)

    def _share(self, gpu: Gpu, device: Allocated) -> MpsConfig | None:
        """Sets how a device is shared; the settings of MPS, if that is how."""
        config = device.config
        if isinstance(config, MigDeviceConfig):
            sharing = config.sharing
            return sharing.mps_config if sharing and sharing.strategy == MPS else None
        if not isinstance(config, GpuConfig) or config.sharing is None:
            return None
        if config.sharing.strategy == MPS:
            self._nvml.set_exclusive(gpu.uuid, exclusive=True)
            return config.sharing.mps_config
        self._nvml.set_exclusive(gpu.uuid, exclusive=False)
        assert config.sharing.time_slicing_config is not None, "completed when it was decoded"
        programs.set_time_slice(gpu.uuid, config.sharing.time_slicing_config.number)
        return None

    def _start_mps(self, claim: Claim, shared: dict[str, MpsConfig]) -> list[Mount]:
        """One daemon for all devices of the claim that MPS shares; the first mount is that of its pipes."""
        if not shared:
            return []
        settings = list(shared.values())
        if any(each != settings[0] for each in settings):
            raise PrepareError("sharing.mpsConfig: devices of one claim have different settings")
        daemon = programs.MpsDaemon(self._mps_dir / claim.uid)
        daemon.start(list(shared), settings[0])
        folders = (str(daemon.pipes), _SHARED_MEMORY)
        options = ("rw", "nosuid", "nodev", "rbind", "rprivate")
        return [Mount(host_path=each, container_path=each, options=options) for each in folders]

    # --- Partitions ----------------------------------------------------------------------------

    def _partition(self, gpu: Gpu, device: Allocated) -> MigDevice:
        for found in self._nvml.mig_devices(gpu.uuid) if self._nvml.mig_mode(gpu.uuid) else ():
            if _partition_name(gpu, found.instance) == device.name:
                return found
        if not self._dynamic:
            raise PrepareError(f"partition {device.name} is not there any more")
        profile, start = _placement(gpu, device.name)
        with self._dividing:
            if not self._nvml.mig_mode(gpu.uuid):
                self._nvml.set_mig_mode(gpu.uuid, enabled=True)
            return self._nvml.create_partition(gpu.uuid, profile, start)

    def _destroy(self, gpu: Gpu, name: str) -> None:
        with self._dividing:
            if not self._nvml.mig_mode(gpu.uuid):
                return
            for instance in self._nvml.instances(gpu.uuid):
                if _partition_name(gpu, instance) == name:
                    self._nvml.destroy_partition(gpu.uuid, instance)

    def _undivide(self, gpu: Gpu) -> None:
        """A GPU in MIG mode cannot be used as a whole."""
        with self._dividing:
            if not self._nvml.mig_mode(gpu.uuid):
                return
            left = self._nvml.instances(gpu.uuid)
            if left:
                names = ", ".join(_partition_name(gpu, each) for each in left)
                raise PrepareError(
                    f"{gpu.name} is divided, and no claim has {names}; --destroy-unknown-mig destroys such"
                )
            self._nvml.set_mig_mode(gpu.uuid, enabled=False)

    def _nodes_of_partition(self, gpu: Gpu, made: MigDevice) -> list[DeviceNode]:
        return [
            *files.gpu_nodes(self._root, gpu.minor, gpu.slot.bus_id),
            *files.partition_nodes(self._root, gpu.minor, made.instance.id, made.compute_id),
        ]

    # --- Health --------------------------------------------------------------------------------

    async def health(self) -> AsyncIterator[Iterable[Health]]:
        """Critical errors (XID) of the GPUs, as soon as NVML reports them. They stay until the driver is started anew."""
        async for errors in self._monitor.run():
            yield [
                report
                for device in self._names
                for report in errors.reports(device, self._gpus[device.partition("-mig-")[0]].uuid)
            ]


def _is_partition(device: Allocated) -> bool:
    said = device.device.attributes.get("type")
    return said is not None and said.string == "mig"


def _is_sliced(device: Allocated) -> bool:
    """Whether the length of the slices of a GPU is set, so that it has to be set back."""
    config = device.config
    if not isinstance(config, GpuConfig) or config.sharing is None or device.admin_access:
        return False
    slicing = config.sharing.time_slicing_config
    return slicing is not None and slicing.number > 0


def _sharing(device: Allocated) -> object:
    return getattr(device.config, "sharing", None)


def _placement(gpu: Gpu, name: str) -> tuple[mig.Profile, int]:
    """The profile of a partition and where it starts, by its name."""
    for profile in gpu.model.mig_profiles:
        for start in profile.starts:
            if profile.device_name(gpu.name, start) == name:
                return profile, start
    raise PrepareError(f"{gpu.name} has no partition {name}")


def _partition_name(gpu: Gpu, instance: Instance) -> str:
    for profile in gpu.model.mig_profiles:
        if profile.id == instance.profile_id:
            return profile.device_name(gpu.name, instance.start)
    return f"{gpu.name}, instance {instance.id}"
