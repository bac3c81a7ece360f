"""Machines like those of the hardware profiles: the files that a kernel would show of what a profile says it publishes.

What a driver publishes for such a machine is what the profile has, or one of the two is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from drayman.api.resource import Device, ResourceSlice
from drayman.driver_configs.cpu import format_cpus
from drayman.drivers.cpu.devices import Cpu
from drayman.drivers.describing import Slot
from drayman.drivers.nvidia.devices import DRIVER as NVIDIA
from drayman.drivers.nvidia.devices import Gpu
from drayman.drivers.profiles.hardware import HardwareNode
from drayman.drivers.profiles.nvidia_products import MODELS
from drayman.testing.hardware import FakeMachine

_STANDARD = "resource.kubernetes.io"
_CHARACTER_DEVICES: Final = """\
Character devices:
  1 mem
195 nvidia
238 nvidia-uvm
241 nvidia-caps
242 nvidia-caps-imex-channels

Block devices:
  8 sd"""


def devices_of(node: HardwareNode, driver: str) -> list[Device]:
    """What a simulated node publishes for a driver."""
    return [device for each in node.slices if each.spec.driver == driver for device in _in(each)]


def _in(slice_: ResourceSlice) -> Iterable[Device]:
    return slice_.spec.devices or ()


def text(device: Device, name: str) -> str:
    """A string attribute of a device."""
    found = device.attributes[name]
    return found.string or found.version or ""


def slot_of(device: Device, bus_id: str = "") -> Slot:
    """Where a device sits, by its standard attributes."""
    root = device.attributes.get(f"{_STANDARD}/pcieRoot")
    numa = device.attributes.get(f"{_STANDARD}/numaNode")
    return Slot(
        bus_id or text(device, f"{_STANDARD}/pciBusID"),
        None if root is None else root.string,
        None if numa is None else numa.int_,
    )


def nvidia_gpus(node: HardwareNode) -> list[Gpu]:
    """The GPUs of a simulated node, whole or in parts."""
    found: dict[str, Gpu] = {}
    models = {model.product: model for model in MODELS}
    for device in devices_of(node, NVIDIA):
        name = device.name.partition("-mig-")[0]
        uuid = text(device, "uuid" if "uuid" in device.attributes else "parentUUID")
        model = models[text(device, "productName")]
        gpu = Gpu(model, int(name.rpartition("-")[2]), uuid, slot_of(device))
        found.setdefault(name, gpu)
    return list(found.values())


def add_nvidia_gpus(machine: FakeMachine, gpus: Iterable[Gpu]) -> None:
    """GPUs with NVIDIA's driver: PCI devices and device files."""
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"):
        machine.file(f"dev/{name}")
    machine.file("proc/devices", _CHARACTER_DEVICES)
    machine.file("proc/driver/nvidia/params", "ModifyDeviceFiles: 1\nDeviceFileMode: 438")
    for gpu in gpus:
        slot = gpu.slot
        folder = machine.pci(
            slot.bus_id,
            vendor="0x10de",
            device=gpu.model.pci_id,
            class_="0x030200",
            root=slot.pcie_root or "",
            numa=-1 if slot.numa is None else slot.numa,
            driver="nvidia",
        )
        machine.file(f"dev/nvidia{gpu.minor}")
        _add_graphics(machine, folder, gpu.minor, 128 + gpu.minor)


def add_capabilities(machine: FakeMachine, minor: int, instance: int, compute: int = 0) -> None:
    """The files by which NVIDIA's driver gives access to a partition."""
    home = f"proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{instance}"
    for number, path in ((10 * instance, home), (10 * instance + 1, f"{home}/ci{compute}")):
        about = f"DeviceFileMinor: {number}\nDeviceFileMode: 292\nDeviceFileModify: 1"
        machine.file(f"{path}/access", about)


def add_hardware(machine: FakeMachine, node: HardwareNode) -> None:
    """Everything that a simulated node publishes, as files of a machine that has it."""
    for driver, add in _ADDING.items():
        found = devices_of(node, driver)
        if found:
            add(machine, found)
    gpus = nvidia_gpus(node)
    if gpus:
        add_nvidia_gpus(machine, gpus)


def _add_amd_gpus(machine: FakeMachine, devices: Sequence[Device]) -> None:
    machine.files("sys/module/amdgpu", {
        "version": text(devices[0], "driverVersion"),
        "srcversion": text(devices[0], "driverSrcVersion"),
    })  # fmt: skip
    machine.file("dev/kfd")
    homes: dict[str, str] = {}
    for number, device in enumerate(devices):
        whole = "pciAddr" in device.attributes
        address = text(device, "pciAddr" if whole else "parentPciAddr")
        card, render = (device.attributes[name].int_ or 0 for name in ("cardIndex", "renderIndex"))
        if address not in homes:
            compute, memory = text(device, "partitionProfile").upper().split("_")
            home = homes[address] = machine.pci(
                address,
                vendor="0x1002",
                device="0x74a1",
                class_="0x120000",
                root=slot_of(device, address).pcie_root or "",
                driver="amdgpu",
                files={
                    "current_compute_partition": compute,
                    "current_memory_partition": memory,
                    "product_name": text(device, "productName").replace("_", " "),
                },
            )
        else:
            home = f"sys/devices/platform/amdgpu_xcp_{number}"
        _add_graphics(machine, home, card, render)
        unique = text(device, "deviceID" if whole else "parentDeviceID")
        _add_kfd_node(machine, number + 2, device, address, render, unique)


def _add_kfd_node(
    machine: FakeMachine, number: int, device: Device, address: str, render: int, unique: str
) -> None:
    domain, bus, rest = address.split(":")
    slot, function = rest.split(".")
    place = int(bus, 16) << 8 | int(slot, 16) << 3 | int(function)
    simds, units = (int(str(device.capacity[name].value)) for name in ("simdUnits", "computeUnits"))
    about = {
        "simd_count": simds,
        "simd_per_cu": simds // units,
        "location_id": place,
        "domain": int(domain, 16),
        "drm_render_minor": render,
        "unique_id": unique,
        "family_id": 141,
    }
    home = f"sys/class/kfd/kfd/topology/nodes/{number}"
    machine.file(
        f"{home}/properties", "\n".join(f"{name} {value}" for name, value in about.items())
    )
    size = device.capacity["memory"].value.rounded_up()
    machine.file(f"{home}/mem_banks/0/properties", f"heap_type 1\nsize_in_bytes {size}")


def _add_graphics(machine: FakeMachine, home: str, card: int, render: int) -> None:
    for name in (f"card{card}", f"renderD{render}"):
        machine.path(f"{home}/drm/{name}").mkdir(parents=True)
        machine.file(f"dev/dri/{name}")


def _add_intel_gpus(machine: FakeMachine, devices: Sequence[Device]) -> None:
    for number, device in enumerate(devices):
        slot = slot_of(device)
        home = machine.pci(
            slot.bus_id,
            vendor="0x8086",
            device=text(device, "pciId"),
            class_="0x038000",
            root=slot.pcie_root or "",
            driver=text(device, "driver"),
            files={"sriov_totalvfs": "63" if device.attributes["sriov"].bool_ else "0"},
        )
        _add_graphics(machine, home, number, 128 + number)
        size = device.capacity["memory"].value.rounded_up()
        machine.file(f"{home}/drm/card{number}/lmem_total_bytes", str(size))


def _add_gaudis(machine: FakeMachine, devices: Sequence[Device]) -> None:
    for number, device in enumerate(devices):
        domain, bus, place, function, pci_id = device.name.split("-")
        address = f"{domain}:{bus}:{place}.{function}"
        home = machine.pci(
            address,
            vendor="0x1da3",
            device=pci_id,
            class_="0x120000",
            root=slot_of(device, address).pcie_root or "",
            driver="habanalabs",
            files={
                "status": "operational" if device.attributes["healthy"].bool_ else "malfunction",
                "serial_number": text(device, "serial"),
                "module_id": str(number),
            },
        )
        machine.link(f"sys/class/accel/accel{number}/device", home)
        for name in (f"accel{number}", f"accel_controlD{number}"):
            machine.file(f"dev/accel/{name}")
        _add_verbs(machine, home, number)


def _add_verbs(machine: FakeMachine, home: str, number: int) -> None:
    machine.link(f"sys/class/infiniband_verbs/uverbs{number}/device", home)
    machine.file(f"dev/infiniband/uverbs{number}")


def _add_tpus(machine: FakeMachine, devices: Sequence[Device]) -> None:
    machine.file("dev/vfio/vfio")
    for device in devices:
        number = int(device.name)
        home = machine.pci(
            f"0000:00:{number + 4:02x}.0",
            vendor="0x1ae0",
            device=_TPU_IDS[text(device, "tpuGen")],
            class_="0x120000",
            driver="vfio-pci",
        )
        machine.path(f"sys/kernel/iommu_groups/{number}").mkdir(parents=True)
        machine.link(f"{home}/iommu_group", f"sys/kernel/iommu_groups/{number}")
        machine.file(f"dev/vfio/{number}")


def _add_npus(machine: FakeMachine, devices: Sequence[Device]) -> None:
    for device in devices:
        slot = slot_of(device)
        machine.pci(
            slot.bus_id,
            vendor="0x1ed2",
            device="0x0001",
            class_="0x120000",
            root=slot.pcie_root or "",
            numa=-1 if slot.numa is None else slot.numa,
            driver="rngd",
        )
        uuid = text(device, "uuid").lower()
        machine.file(f"sys/class/rngd_mgmt/rngd!{device.name}mgmt/device_uuid", uuid)
        for part in ("mgmt", "pe0", "bar0"):
            machine.file(f"dev/rngd/{device.name}{part}")


def _add_interfaces(machine: FakeMachine, devices: Sequence[Device]) -> None:
    cards: dict[tuple[str, str], tuple[str, str]] = {}
    for number, device in enumerate(devices):
        own = {name.removeprefix("dra.net/"): value for name, value in device.attributes.items()}
        vendor, product = own["pciVendor"].string or "", own["pciDevice"].string or ""
        ids = cards.setdefault((vendor, product), (_VENDORS[vendor], f"{0x1000 + len(cards):04x}"))
        slot = slot_of(device, own["pciAddress"].string or "")
        home = machine.pci(
            slot.bus_id,
            vendor=f"0x{ids[0]}",
            device=f"0x{ids[1]}",
            class_="0x020000",
            root=slot.pcie_root or "",
            numa=-1 if slot.numa is None else slot.numa,
        )
        interface = own["ifName"].string or ""
        link = f"{home}/net/{interface}"
        machine.files(
            link,
            {
                "address": own["mac"].string or "",
                "mtu": str(own["mtu"].int_),
                "type": "32" if own["encapsulation"].string == "infiniband" else "1",
                "operstate": own["state"].string or "",
            },
        )
        machine.link(f"{link}/device", home)
        machine.link(f"sys/class/net/{interface}", link)
        rdma = own.get("rdmaDevice")
        if rdma is not None:
            machine.link(f"{home}/infiniband/{rdma.string}/device", home)
            machine.link(f"sys/class/infiniband/{rdma.string}", f"{home}/infiniband/{rdma.string}")
            _add_verbs(machine, home, number)
    names = [
        f"{vendor_id}  {vendor}\n\t{device_id}  {product}"
        for (vendor, product), (vendor_id, device_id) in cards.items()
    ]
    machine.file("usr/share/hwdata/pci.ids", "\n".join(("# PCI IDs", *names, "C 00  Unclassified")))
    for name in ("lo", "eth0"):  # the node's own
        machine.files(f"sys/devices/virtual/net/{name}", {"mtu": "1500", "type": "1"})
        machine.link(f"sys/class/net/{name}", f"sys/devices/virtual/net/{name}")
    route = "Iface\tDestination\tGateway\neth0\t00000000\t0100A8C0"
    machine.file("proc/net/route", route)


def _add_cpus(machine: FakeMachine, devices: Sequence[Device]) -> None:
    cpus = list(_cpus_in(devices))
    machine.file("sys/devices/system/cpu/online", format_cpus(cpu.number for cpu in cpus))
    machine.file("sys/devices/system/cpu/smt/active", "1" if cpus[0].smt else "0")
    for cpu in cpus:
        home = f"sys/devices/system/cpu/cpu{cpu.number}"
        machine.files(
            f"{home}/topology",
            {"core_id": str(cpu.core), "physical_package_id": str(cpu.socket)},
        )
        machine.file(f"{home}/cache/index3/id", str(cpu.cache))
    for numa in {cpu.numa for cpu in cpus}:
        own = format_cpus(cpu.number for cpu in cpus if cpu.numa == numa)
        machine.file(f"sys/devices/system/node/node{numa}/cpulist", own)


def _cpus_in(devices: Sequence[Device]) -> Iterator[Cpu]:
    """CPUs as devices have them, one by one or by the NUMA node; how they are numbered then is of no consequence."""
    first = 0
    for device in devices:
        said = {name: value.int_ or 0 for name, value in device.attributes.items()}
        numa, socket = said["numaNodeID"], said["socketID"]
        smt = bool(device.attributes["smtEnabled"].bool_)
        if "cpuID" in said:
            yield Cpu(said["cpuID"], said["coreID"], said["cacheL3ID"], numa, socket, smt)
            continue
        for number in range(first, first + said["numCPUs"]):
            yield Cpu(number, number // (1 + smt), numa, numa, socket, smt)
        first += said["numCPUs"]


_TPU_IDS: Final = {"v4": "0x005e", "v5p": "0x0062", "v5litepod": "0x0063", "v6e": "0x006f"}
_VENDORS: Final = {"Mellanox Technologies": "15b3", "Google, Inc.": "1ae0", "Amazon.com, Inc.": "1d0f"}  # fmt: skip
_ADDING: Final[Mapping[str, Callable[[FakeMachine, Sequence[Device]], None]]] = {
    "gpu.amd.com": _add_amd_gpus,
    "gpu.intel.com": _add_intel_gpus,
    "gaudi.intel.com": _add_gaudis,
    "tpu.google.com": _add_tpus,
    "npu.furiosa.ai": _add_npus,
    "dra.net": _add_interfaces,
    "dra.cpu": _add_cpus,
}
