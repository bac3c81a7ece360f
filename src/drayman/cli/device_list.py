"""`drayman device list`: every device with the claims that hold it and its taints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from drayman.cli.connecting import Where, cluster_options, talk
from drayman.cli.filters import nothing_found
from drayman.cli.output import console, format_option, print_data, to_stderr, to_stdout

if TYPE_CHECKING:
    from drayman.cluster import Client
    from drayman.questions.devices.holding import HeldDevice, HeldDevices

_NOTHING: Final = "-"
_EPILOG: Final = """\b
Examples:
  drayman device list --driver gpu.example.com
  drayman device list --node example-0 -o json
"""


@click.command("list", epilog=_EPILOG)
@click.option("--node", "node_name", metavar="NODE", help="Only devices of this node.")
@click.option("--driver", metavar="DRIVER", help="Only devices of this driver.")
@format_option
@cluster_options
def list_devices(
    node_name: str | None, driver: str | None, output_format: str | None, where: Where
) -> None:
    """List devices, who holds each, and its taints.

    On a terminal that is too narrow, names of drivers are cut in the middle (~), and claims and taints that do not fit are printed
    below the device. Elsewhere lines are complete.
    """

    async def work(client: Client) -> tuple[HeldDevices, set[str]]:
        from drayman.questions.devices.holding import held_devices

        return await held_devices(client, node=node_name, driver=driver)

    found, drivers = talk(where, work)
    if output_format:
        from drayman.api import codec

        print_data(codec.to_dict(found), output_format)
    elif found.devices:
        _print_table(found.devices)
    else:
        to_stderr(nothing_found("devices", node=node_name, driver=driver, drivers=drivers))


def _print_table(rows: Sequence[HeldDevice]) -> None:
    from drayman.cli.top.table import Column, Table

    columns = (
        Column("DRIVER", may_be_cut=True),
        Column("POOL", may_be_cut=True, matters=True),
        Column("DEVICE", may_be_cut=True, matters=True),
        Column("CLAIMS", folds=True),
        Column("TAINTS", folds=True, empty=_NOTHING),
    )
    table = Table(columns, [_cells(row) for row in rows])
    out = console()
    if out.is_terminal:
        out.print(table.text(out.width))
    else:
        to_stdout(table.plain())


def _cells(row: HeldDevice) -> tuple[str, ...]:
    claims, taints = ",".join(row.claims) or _NOTHING, ",".join(row.taints) or _NOTHING
    return row.driver, row.pool, row.device, claims, taints
