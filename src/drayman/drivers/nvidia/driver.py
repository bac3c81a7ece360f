"""`gpu.nvidia.com`: GPUs for containers.

Partitions are made when a claim is prepared and destroyed when it is unprepared (`--dynamic-mig`), or published as they are. What is undone
goes by what was prepared, never by the options of today: those that the driver makes are the ones that consume counters.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

import click
from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from drayman.api.resource import Device
from drayman.driver_configs.decoding import Config
from drayman.driver_configs.known import CONFIGS, config_type
from drayman.driver_configs.nvidia import MPS_DIR as DEFAULT_MPS_DIR
from drayman.driver_configs.nvidia import MPS_VARIABLE, GpuConfig, MpsConfig, mps_settings
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.errors import KitError, PrepareError
from drayman.drivers.kit.model import (
    Allocated,
    Claim,
    Hardware,
    Health,
    Prepared,
    PreparedDevice,
)
from drayman.drivers.nvidia import devices, files, programs
from drayman.drivers.nvidia.devices import DRIVER, Gpu
from drayman.drivers.nvidia.discovery import Found, clique, discover, existing_partitions
from drayman.drivers.nvidia.dividing import Divider
from drayman.drivers.nvidia.health import Monitor
from drayman.drivers.nvidia.nvml import Nvml
from drayman.drivers.nvidia.partitions import MigDevice
from drayman.drivers.nvidia.settings import KEEP, Settings
from drayman.plugins.cdi import DeviceNode, Mount

NVLINK_DOMAIN: Final = "nvidia.com/gpu.clique"
"""The label of nodes by which racks that NVLink joins are recognised, as NVIDIA's feature discovery writes it."""
_log: Final = logging.getLogger(__name__)
MPS_DIR: Final = Path(DEFAULT_MPS_DIR)
_VOID: Final = {"NVIDIA_VISIBLE_DEVICES": "void"}
"""NVIDIA's own runtime, where it is installed too, is not to add anything."""
_SHARED_MEMORY: Final = "/dev/shm"
_MPS_MOUNT: Final = ("rw", "nosuid", "nodev", "rbind", "rprivate")


class NvidiaGpuDriver(Driver):
    """Whole GPUs and partitions of one machine."""

    name = DRIVER
    configs: ClassVar[tuple[type[Config], ...]] = CONFIGS[DRIVER]
    options: ClassVar[Sequence[click.Option]] = (
        click.Option(
            ["--dynamic-mig"],
            is_flag=True,
            help=f"Offer every partition that GPUs can be divided into, and make them when they are used. Not with {KEEP}.",
        ),
        click.Option(
            ["--destroy-unknown-mig"],
            is_flag=True,
            help="With --dynamic-mig: at the start, destroy partitions that no claim has.",
        ),
        click.Option(
            [KEEP],
            is_flag=True,
            help="Change no settings of GPUs, as where they are lent: compute mode, time slices and MIG stay as they are."
            " Not with --dynamic-mig.",
        ),
        click.Option(
            ["--mps-dir"],
            type=click.Path(path_type=Path),
            default=MPS_DIR,
            show_default=True,
            metavar="DIR",
            help="Where the control daemons of MPS have their pipes and logs.",
        ),
        click.Option(
            ["--ignored-xids"],
            default="",
            metavar="LIST",
            callback=lambda _context, _option, value: _numbers(value),
            help="Errors of GPUs (XID) that only inform, beside those that programs cause, such as 63,94.",
        ),
    )

    def __init__(
        self,
        node: str,
        dynamic_mig: bool = False,
        destroy_unknown_mig: bool = False,
        mps_dir: Path = MPS_DIR,
        ignored_xids: Collection[int] = (),
        keep_settings: bool = False,
        *,
        nvml: Nvml | None = None,
        root: Path = Path("/"),
    ) -> None:
        """`nvml` and `root` are replaced by tests. Raises KitError if the machine has no NVML, or options exclude each other."""
        super().__init__(node)
        if dynamic_mig and keep_settings:
            raise KitError(f"--dynamic-mig switches MIG on and off, which {KEEP} forbids")
        self._dynamic = dynamic_mig
        self._destroy_unknown = destroy_unknown_mig
        self._mps_dir = mps_dir
        self._nvml = nvml or Nvml.load()
        self._root = root
        self._found: dict[str, Found] = {}
        """GPUs by their names."""
        self._monitor = Monitor(self._nvml, ignored_xids)
        self._divider = Divider(self._nvml, self._monitor, lambda: self.folder)
        self._settings = Settings(self._nvml, lambda: self.folder, kept=keep_settings)

    @property
    def keeps_settings(self) -> bool:
        """Whether it leaves the settings of GPUs as they are."""
        return self._settings.kept

    @classmethod
    def config_type(cls, device: Device) -> type[Config] | None:
        return config_type(DRIVER, device)

    # --- What there is -------------------------------------------------------------------------

    def recover(self, claims: Sequence[Claim]) -> None:
        """Destroys partitions that no claim has, if that is wanted."""
        if not (self._dynamic and self._destroy_unknown):
            return
        known = {each.name for claim in claims for each in claim.devices}
        own = [each.gpu for each in self._read() if not (each.is_lost or each.facts.is_virtual)]
        self._divider.destroy_unknown(own, known)

    def discover(self) -> Hardware:
        found = self._read()
        described = (
            self._dividable(found) if self._dynamic else Hardware.of(_all_as_they_are(found))
        )
        uuids = {each.gpu.name: each.gpu.uuid for each in found}
        self._monitor.follow(
            {device.name: uuids[_gpu_name(device.name)] for device in described.devices},
            [each.gpu.uuid for each in found if each.is_lost],
        )
        domain = clique(found)
        return described if domain is None else replace(described, labels={NVLINK_DOMAIN: domain})

    def _read(self) -> list[Found]:
        found = discover(self._nvml, self._root, self._found.values())
        self._found = {each.gpu.name: each for each in found}
        return found

    @staticmethod
    def _dividable(found: Sequence[Found]) -> Hardware:
        """Whole and in parts, where a GPU can be both; where it has to be reset in between, as it is."""
        dividing: list[Gpu] = []
        fixed: list[Found] = []
        for each in found:
            model, facts = each.gpu.model, each.facts
            reset = not model.divides_when_idle
            if not model.mig_profiles or facts.is_virtual or (reset and not facts.mig_enabled):
                fixed.append(each)
            else:
                dividing.append(each.gpu)
        parts = devices.dividable(dividing)
        whole = tuple(_all_as_they_are(fixed))
        groups = (*((whole,) if whole else ()), *parts.groups)
        return Hardware(groups=groups, counters=parts.counters)

    def _gpu(self, device: Allocated) -> Gpu:
        """The GPU that a device is, or is a part of."""
        name = _gpu_name(device.name)
        if name not in self._found:
            self._read()
        if name not in self._found:
            raise PrepareError(f"{name} is not on node {self.node} any more")
        return self._found[name].gpu

    # --- Preparing -----------------------------------------------------------------------------

    def prepare(self, claim: Claim) -> Prepared:
        used = [self._use(each) for each in claim.devices]
        libraries = files.libraries(self._root)
        hooks = files.hooks(self._root, libraries) if self.runs_hooks else []
        mounts = files.mounts(self._root, libraries, by_all_names=not hooks)
        if not self.runs_hooks:
            assert self.folder is not None, "the kit says where it is, with what the runtime does"
            mounts += files.fixed_device_files(self._root, self.folder)
        daemon = self._start_mps(claim, used)
        return Prepared(
            devices=[each.prepared(daemon) for each in used],
            env=_VOID,
            device_nodes=files.common_nodes(self._root),
            mounts=mounts,
            hooks=hooks,
            state=None if daemon is None else to_builtins(_State(mps=str(daemon.folder))),
        )

    def _use(self, device: Allocated) -> _Used:
        gpu = self._gpu(device)
        if not self._nvml.is_there(gpu.uuid):
            raise PrepareError(f"{gpu.name} has fallen off the bus")
        if _is_partition(device):
            made = self._partition(gpu, device)
            ids = made.instance.id, made.compute_id
            nodes, uuid = files.partition_nodes(self._root, gpu.minor, *ids), made.uuid
        else:
            if not device.admin_access:
                self._put_together(gpu)
            nodes, uuid = files.gpu_nodes(self._root, gpu.minor, gpu.slot.bus_id), gpu.uuid
        mps = None if device.admin_access else self._share(gpu, device)
        return _Used(device, uuid, nodes, mps)

    def _put_together(self, gpu: Gpu) -> None:
        if not self._settings.kept:
            self._divider.put_together(gpu)
        elif self._nvml.partitions.mode(gpu.uuid):
            raise PrepareError(f"{gpu.name} is in MIG mode, and the driver runs with {KEEP}")

    def _partition(self, gpu: Gpu, device: Allocated) -> MigDevice:
        """Raises PrepareError for one that is not there and is not to be made: whoever only looks changes nothing."""
        if device.device.consumes_counters and not device.admin_access:
            return self._divider.make(gpu, device.name)
        found = self._divider.find(gpu, device.name)
        if found is None:
            raise PrepareError(f"partition {device.name} is not there")
        return found

    def unprepare(self, claim: Claim) -> None:
        """What of it cannot be undone does not keep the rest."""
        undoing: list[Callable[[], None]] = [self._mps_daemon(claim).stop]
        undoing += [
            partial(self._give_back, each) for each in claim.devices if not each.admin_access
        ]
        problems = []
        for undo in undoing:
            try:
                undo()
            except (PrepareError, OSError, self._nvml.error) as error:
                problems.append(str(error))
        if problems:
            raise PrepareError("; ".join(problems))

    def _give_back(self, device: Allocated) -> None:
        """A GPU that is gone has taken its state with it."""
        if not self._nvml.is_there(_gpu_uuid(device)):
            _log.warning("%s is gone: there is nothing to undo", device.name)
            return
        gpu = self._gpu(device)
        if _is_partition(device):
            if device.device.consumes_counters:
                self._divider.destroy(gpu, device.name)
        else:
            self._settings.reset(gpu)

    def _share(self, gpu: Gpu, device: Allocated) -> MpsConfig | None:
        """Sets how a device is shared; the settings of MPS, if that is how."""
        config = device.config
        mps = mps_settings(config)
        if not isinstance(config, GpuConfig) or config.sharing is None:
            return mps
        if mps is not None:
            self._settings.leave_to_mps(gpu)
        else:
            assert config.sharing.time_slicing_config is not None, "completed when it was decoded"
            self._settings.slice(gpu, config.sharing.time_slicing_config)
        return mps

    def _start_mps(self, claim: Claim, used: Sequence[_Used]) -> programs.MpsDaemon | None:
        """One daemon for all devices of the claim that MPS shares."""
        shared = {each.uuid: each.mps for each in used if each.mps is not None}
        if not shared:
            return None
        settings = list(shared.values())
        if any(each != settings[0] for each in settings):
            raise PrepareError("sharing.mpsConfig: devices of one claim have different settings")
        daemon = self._mps_daemon(claim)
        daemon.start(list(shared), settings[0])
        return daemon

    def _mps_daemon(self, claim: Claim) -> programs.MpsDaemon:
        """Where it was started, whatever the options say by now."""
        state = convert(claim.state or {}, _State)
        return programs.MpsDaemon(Path(state.mps) if state.mps else self._mps_dir / claim.uid)

    # --- Health --------------------------------------------------------------------------------

    async def health(self) -> AsyncIterator[Iterable[Health]]:
        """Critical errors (XID) of the GPUs, as soon as NVML reports them. They stay until the driver is started anew."""
        async for reports in self._monitor.run():
            yield reports


class _State(Struct, frozen=True, omit_defaults=True):
    """What has to be known to undo a claim."""

    mps: str = ""
    """The folder of its control daemon."""


@dataclass(frozen=True, slots=True)
class _Used:
    """A device that is ready for containers."""

    device: Allocated
    uuid: str
    nodes: Sequence[DeviceNode]
    mps: MpsConfig | None
    """How MPS shares it, if that is how."""

    def prepared(self, daemon: programs.MpsDaemon | None) -> PreparedDevice:
        if daemon is None or self.mps is None:
            return PreparedDevice(device=self.device, device_nodes=self.nodes)
        pipes = str(daemon.pipes)
        return PreparedDevice(
            device=self.device,
            device_nodes=self.nodes,
            env={MPS_VARIABLE: pipes},
            mounts=[
                Mount(host_path=each, container_path=each, options=_MPS_MOUNT)
                for each in (pipes, _SHARED_MEMORY)
            ],
        )


def _all_as_they_are(found: Iterable[Found]) -> Iterator[Device]:
    for each in found:
        if each.facts.mig_enabled:
            yield from devices.partitions(each.gpu, existing_partitions(each))
        else:
            yield devices.whole(each.gpu)


def _gpu_name(device: str) -> str:
    return device.partition("-mig-")[0]


def _gpu_uuid(device: Allocated) -> str:
    """Of the GPU that a device is, or is a part of, as it was published."""
    said = device.device.attributes["parentUUID" if _is_partition(device) else "uuid"]
    return said.string or ""


def _is_partition(device: Allocated) -> bool:
    said = device.device.attributes.get("type")
    return said is not None and said.string == "mig"


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(each) for each in text.split(",") if each.strip())
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of numbers, such as 63,94") from None
