"""`dra.cpu`: CPUs that containers have to themselves.

The driver decides which CPUs a claim gets and tells containers by a variable; keeping them there is the business of the node. Which CPUs
are free follows from what the other claims have, so that two instances of the driver agree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Final

import click

from drayman.driver_configs.cpu import CPUSET_VARIABLE, CpuConfig, format_cpus, parse_cpus
from drayman.driver_configs.decoding import Config
from drayman.driver_configs.known import CONFIGS
from drayman.drivers.cpu import devices
from drayman.drivers.cpu.devices import CAPACITY, Cpu
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.errors import PrepareError
from drayman.drivers.kit.model import Allocated, Claim, Hardware, Prepared, PreparedDevice
from drayman.drivers.sysfs import numbered, read_text

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


def _reserved(text: str) -> tuple[int, ...]:
    try:
        return parse_cpus(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


class CpuDriver(Driver):
    """CPUs of one machine."""

    name = devices.DRIVER
    configs: ClassVar[tuple[type[Config], ...]] = CONFIGS[devices.DRIVER]
    sees_others = True
    options: ClassVar[Sequence[click.Option]] = (
        click.Option(
            ["--mode"],
            type=click.Choice([GROUPED, INDIVIDUAL]),
            default=GROUPED,
            show_default=True,
            help="One device for the CPUs of each group, or one for each CPU.",
        ),
        click.Option(
            ["--group-by"],
            type=click.Choice(devices.GROUPS),
            default=devices.NUMA,
            show_default=True,
            help="Of which CPUs a group is made.",
        ),
        click.Option(
            ["--reserved-cpus"],
            default="",
            metavar="LIST",
            callback=lambda _context, _option, value: _reserved(value),
            help="CPUs that no claim gets, such as 0-1,64.",
        ),
    )

    def __init__(
        self,
        node: str,
        mode: str = GROUPED,
        group_by: str = devices.NUMA,
        reserved_cpus: Collection[int] = (),
        *,
        root: Path = Path("/"),
    ) -> None:
        """`root` is replaced by tests."""
        super().__init__(node)
        self._mode = mode
        self._group_by = group_by
        self._reserved = frozenset(reserved_cpus)
        self._root = root

    def discover(self) -> Hardware:
        cpus = self._usable()
        if self._mode == INDIVIDUAL:
            return Hardware.of(devices.single(place, cpu) for place, cpu in enumerate(cpus))
        groups: dict[str, list[Cpu]] = {}
        for cpu in cpus:
            groups.setdefault(devices.group_name(self._group_by, cpu), []).append(cpu)
        return Hardware.of(
            devices.group(self._group_by, members[0], len(members))
            for _, members in sorted(groups.items())
        )

    def _usable(self) -> list[Cpu]:
        return [cpu for cpu in discover(self._root) if cpu.number not in self._reserved]

    def prepare(self, claim: Claim) -> Prepared:
        """Who may only look at CPUs gets none, and no variable that would pin a container to those of the claim."""
        cpus = self._usable()
        used = {cpu for other in claim.others for cpu in _held(other)}
        chosen: list[tuple[Allocated, list[int]]] = []
        held: dict[str, list[int]] = {}
        for each in claim.devices:
            if each.admin_access:
                continue
            own = self._chosen(each, cpus, used)
            used |= set(own)
            held.setdefault(each.name, []).extend(
                own
            )  # a claim may have several shares of a device
            chosen.append((each, own))
        everything = format_cpus(cpu for own in held.values() for cpu in own)
        env = {f"{CPUSET_VARIABLE}{claim.uid}": everything}
        return Prepared(
            devices=[
                PreparedDevice(device=each, env=env, data={"cpuset": format_cpus(own)})
                for each, own in chosen
            ],
            state={name: format_cpus(own) for name, own in held.items()},
        )

    def _chosen(self, device: Allocated, cpus: Iterable[Cpu], used: set[int]) -> list[int]:
        attributes = device.device.attributes
        if "cpuID" in attributes:
            return [attributes["cpuID"].int_ or 0]
        own = (cpu for cpu in cpus if device.name == devices.group_name(self._group_by, cpu))
        free = [cpu.number for cpu in own if cpu.number not in used]
        wanted = device.consumed.get(CAPACITY)
        amount = len(free) if wanted is None else wanted.rounded_up()
        config = device.config
        if isinstance(config, CpuConfig) and config.chosen:
            return _named(config.chosen, free, amount, device.name)
        if len(free) < amount:
            raise PrepareError(f"{device.name} has {len(free)} CPUs left, and the claim {amount}")
        return free[:amount]


def _held(claim: Claim) -> tuple[int, ...]:
    """The CPUs of a claim; none if it has not come so far."""
    return parse_cpus(",".join(claim.state.values())) if isinstance(claim.state, dict) else ()


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
