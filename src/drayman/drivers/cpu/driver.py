"""`dra.cpu`: CPUs that containers have to themselves.

The driver decides which CPUs a claim gets and tells containers by a variable; keeping them there is the business of the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import ClassVar, Final

import click

from drayman.driver_configs.cpu import CpuConfig, format_cpus, parse_cpus
from drayman.driver_configs.decoding import Config
from drayman.driver_configs.known import CONFIGS
from drayman.drivers.cpu import devices
from drayman.drivers.cpu.devices import CAPACITY, Cpu
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.kit.model import Allocated, Claim, Hardware, Prepared, PreparedDevice
from drayman.drivers.pci import read_text
from drayman.drivers.sysfs import numbered

_CPUS: Final = "sys/devices/system/cpu"
_NODES: Final = "sys/devices/system/node"
GROUPED: Final = "grouped"
INDIVIDUAL: Final = "individual"


def discover(root: Path) -> list[Cpu]:
    """The CPUs of a machine that are online. Raises OSError."""
    online = set(parse_cpus(read_text(root / _CPUS / "online") or ""))
    smt = read_text(root / _CPUS / "smt/active") == "1"
    numa = {
        cpu: number
        for number, path in numbered(root / _NODES, "node").items()
        for cpu in parse_cpus(read_text(path / "cpulist") or "")
    }
    return devices.in_order(
        [
            Cpu(
                number=number,
                core=_number(path / "topology/core_id"),
                cache=_number(path / "cache/index3/id"),
                numa=numa.get(number, 0),
                socket=_number(path / "topology/physical_package_id"),
                smt=smt,
            )
            for number, path in numbered(root / _CPUS, "cpu").items()
            if number in online or not online
        ]
    )


def _number(path: Path) -> int:
    return int(read_text(path) or "0")


class CpuDriver(Driver):
    """CPUs of one machine."""

    name = devices.DRIVER
    configs: ClassVar[tuple[type[Config], ...]] = CONFIGS[devices.DRIVER]
    options: ClassVar[Sequence[click.Option]] = (
        click.Option(
            ["--mode"],
            type=click.Choice([GROUPED, INDIVIDUAL]),
            default=GROUPED,
            show_default=True,
            help="One device for the CPUs of each NUMA node, or one for each CPU.",
        ),
    )

    def __init__(self, node: str, mode: str = GROUPED, *, root: Path = Path("/")) -> None:
        """`root` is replaced by tests."""
        super().__init__(node)
        self._mode = mode
        self._root = root
        self._taken: dict[str, set[int]] = {}
        """The CPUs of each claim, by its uid."""
        self._choosing = Lock()

    def recover(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            if isinstance(claim.state, dict):
                held = ",".join(claim.state.values())
                self._taken[claim.uid] = set(parse_cpus(held))

    def discover(self) -> Hardware:
        cpus = discover(self._root)
        if self._mode == INDIVIDUAL:
            return Hardware.of(devices.single(place, cpu) for place, cpu in enumerate(cpus))
        groups: dict[int, list[Cpu]] = {}
        for cpu in cpus:
            groups.setdefault(cpu.numa, []).append(cpu)
        return Hardware.of(
            devices.group(numa, members[0].socket, len(members), smt=members[0].smt)
            for numa, members in sorted(groups.items())
        )

    def prepare(self, claim: Claim) -> Prepared:
        cpus = discover(self._root)
        with self._choosing:
            used = {cpu for uid, held in self._taken.items() if uid != claim.uid for cpu in held}
            chosen: dict[str, list[int]] = {}
            for each in claim.devices:
                own = self._chosen(each, cpus, used)
                used |= set(own)
                chosen[each.name] = own
            self._taken[claim.uid] = {cpu for held in chosen.values() for cpu in held}
        everything = format_cpus(self._taken[claim.uid])
        return Prepared(
            devices=[
                PreparedDevice(device=each, data={"cpuset": format_cpus(chosen[each.name])})
                for each in claim.devices
            ],
            env={f"DRA_CPUSET_{claim.uid.replace('-', '_')}": everything},
            state={name: format_cpus(held) for name, held in chosen.items()},
        )

    def unprepare(self, claim: Claim) -> None:
        with self._choosing:
            self._taken.pop(claim.uid, None)

    def _chosen(self, device: Allocated, cpus: Iterable[Cpu], used: set[int]) -> list[int]:
        attributes = device.device.attributes
        if "cpuID" in attributes:
            return [attributes["cpuID"].int_ or 0]
        numa = attributes["numaNodeID"].int_
        free = [cpu.number for cpu in cpus if cpu.numa == numa and cpu.number not in used]
        wanted = device.consumed.get(CAPACITY)
        amount = len(free) if wanted is None else wanted.rounded_up()
        config = device.config
        if isinstance(config, CpuConfig) and config.chosen:
            return _named(config.chosen, free, amount, device.name)
        if len(free) < amount:
            raise PrepareError(f"{device.name} has {len(free)} CPUs left, and the claim {amount}")
        return free[:amount]


def _named(named: Sequence[int], free: list[int], amount: int, device: str) -> list[int]:
    """The CPUs that a claim names. Raises PrepareError."""
    missing = [cpu for cpu in named if cpu not in free]
    if missing:
        raise PrepareError(
            f"cpuConfig.cpuset: {format_cpus(missing)} is in use, or not of {device}"
        )
    if len(named) > amount:
        raise PrepareError(
            f"cpuConfig.cpuset: it names {len(named)} CPUs, and the claim has {amount}"
        )
    return list(named)
