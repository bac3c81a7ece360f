"""`drayman device list`: devices with their state, the claims that hold them, and their taints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from drayman.cli.connecting import Where, cluster_options
from drayman.cli.filters import nothing_found
from drayman.cli.output import format_option
from drayman.cli.top.command import STATES
from drayman.cli.top.refreshing import Asked, Nothing, Picture, show
from drayman.cli.worlds import snapshot_option

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from drayman.cli.table import Table
    from drayman.questions.devices.holding import DeviceGroup, HeldDevice, HeldDevices
    from drayman.questions.devices.reading import Reading

_NOTHING: Final = "-"
_MOST_NAMES: Final = 4
"""Devices that a line of the short list names; of more, the first ones."""
_FIRST_NAMES: Final = 2
_EPILOG: Final = """\b
Examples:
  drayman device list                      how many, by node and state
  drayman device list --all --driver gpu.example.com
  drayman device list --state used --all   what is held, by which claims
  drayman device list --node example-0 -o json
"""


@click.command(
    "list", short_help="List devices by node and state, or each with its claims.", epilog=_EPILOG
)
@click.option("--node", "node_name", metavar="NODE", help="Only devices of this node.")
@click.option("--driver", metavar="DRIVER", help="Only devices of this driver.")
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES),
    multiple=True,
    help="Only devices in this state; see `drayman top devices --help`.",
)
@click.option("--all", "every", is_flag=True, help="A line for each device, with its claims.")
@format_option
@snapshot_option
@cluster_options
def list_devices(
    node_name: str | None,
    driver: str | None,
    states: tuple[str, ...],
    every: bool,
    output_format: str | None,
    snapshot: str | None,
    where: Where,
) -> None:
    """List devices: how many each node has of each driver in which state, or, with --all, each device with its claims and taints.

    Data (-o) have each device. On a terminal that is too narrow, names of drivers are cut in the middle (~), and names that do not fit are
    printed below their line.
    """

    def picture(reading: Reading) -> Picture:
        from drayman.questions.devices.holding import held_devices
        from drayman.questions.devices.reading import refuse_unknown_node

        found = held_devices(reading, node=node_name, driver=driver, states=states)
        if found.devices:
            return _Listing(found, every, is_of_driver=driver is not None)
        refuse_unknown_node(reading, node_name)
        drivers = {standing.id.driver for standing in reading.occupancy.devices.values()}
        return Nothing(
            "devices",
            nothing_found("devices", node=node_name, driver=driver, drivers=drivers, states=states),
        )

    show(Asked(where, output_format, snapshot=snapshot), picture)


@dataclass(frozen=True, slots=True)
class _Listing:
    """Devices in a table, each by itself or in groups."""

    found: HeldDevices
    every: bool
    is_of_driver: bool
    """Whether all are of one driver, whose name is left out first."""

    def data(self) -> Mapping[str, Any]:
        from drayman.api import codec

        return codec.to_dict(self.found)

    def drawn(self, out: Console) -> RenderableType:
        return self._table().text(out.width)

    def plain(self, out: Console) -> str:
        return self._table().plain()

    def _table(self) -> Table:
        from drayman.cli.table import EXTRA
        from drayman.questions.devices.holding import groups

        spare = EXTRA if self.is_of_driver else 0
        if self.every:
            return _table_of_devices(self.found.devices, spare)
        return _table_of_groups(groups(self.found.devices), spare)


def _table_of_devices(rows: Sequence[HeldDevice], spare: int) -> Table:
    from drayman.cli.table import STYLES, Column, Table

    columns = (
        Column("DRIVER", may_be_cut=True, spare=spare),
        Column("POOL", is_name=True),
        Column("DEVICE", is_name=True, stays=True),
        Column("STATE"),
        Column("CLAIMS", is_name=True),
        Column("TAINTS", is_name=True, empty=_NOTHING),
    )
    cells = [
        (
            row.driver,
            row.pool,
            row.device,
            (row.state.value, STYLES[row.state]),
            ",".join(row.claims) or _NOTHING,
            ",".join(row.taints) or _NOTHING,
        )
        for row in rows
    ]
    return Table(columns, cells)


def _table_of_groups(found: Sequence[DeviceGroup], spare: int) -> Table:
    from drayman.cli.table import STYLES, Column, Table

    columns = (
        Column("POOL", is_name=True, stays=True),
        Column("DRIVER", may_be_cut=True, spare=spare),
        Column("STATE"),
        Column("DEVICES", is_number=True),
        Column("TAINTS", is_name=True, empty=_NOTHING),
        Column("NAMES", is_name=True),
    )
    cells = [
        (
            each.pool,
            each.driver,
            (each.state.value, STYLES[each.state]),
            f"{len(each.devices):,}",
            ",".join(each.taints) or _NOTHING,
            _names(each.devices),
        )
        for each in found
    ]
    return Table(columns, cells)


def _names(devices: Sequence[str]) -> str:
    if len(devices) <= _MOST_NAMES:
        return ",".join(devices)
    return f"{','.join(devices[:_FIRST_NAMES])},+{len(devices) - _FIRST_NAMES:,}"
