"""`drayman device list`: every device with the claims that hold it and its taints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from drayman.cli.connecting import cluster_options, talk
from drayman.cli.errors import printable
from drayman.cli.filters import no_such_node, nothing_found
from drayman.cli.finding_devices import Found, devices, is_about, taint_rules
from drayman.cli.output import console, format_option, print_data

if TYPE_CHECKING:
    from drayman.api.resource import DeviceTaint, DeviceTaintRule, ResourceClaim
    from drayman.cluster import Client

_NOTHING: Final = "-"
_EPILOG: Final = """\b
Examples:
  drayman device list --driver gpu.example.com
  drayman device list --node example-0 -o json
"""


@dataclass(frozen=True, slots=True)
class _Row:
    device: Found
    claims: Sequence[str]
    taints: Sequence[str]

    def cells(self) -> tuple[str, ...]:
        device = self.device
        return (
            device.driver,
            device.pool,
            device.name,
            ",".join(self.claims) or _NOTHING,
            ",".join(self.taints) or _NOTHING,
        )

    def data(self) -> dict[str, Any]:
        return {
            "driver": self.device.driver,
            "pool": self.device.pool,
            "device": self.device.name,
            "node": self.device.node,
            "claims": list(self.claims),
            "taints": list(self.taints),
        }


@click.command("list", epilog=_EPILOG)
@click.option("--node", "node_name", metavar="NODE", help="Only devices of this node.")
@click.option("--driver", metavar="DRIVER", help="Only devices of this driver.")
@format_option
@cluster_options
def list_devices(
    node_name: str | None,
    driver: str | None,
    output_format: str | None,
    kubeconfig: Path | None,
    data_dir: Path | None,
    context: str,
) -> None:
    """List devices, who holds each, and its taints.

    On a terminal that is too narrow, names of drivers are cut in the middle (~) and long names of claims and taints go on in the next
    line. Elsewhere lines are whole.
    """

    async def work(client: Client) -> tuple[list[_Row], str]:
        every = await devices(client)
        chosen = [
            found
            for found in every
            if node_name in (None, found.node) and driver in (None, found.driver)
        ]
        if not chosen:
            await _refuse_unknown(client, node_name, {found.node for found in every})
        drivers = {found.driver for found in every}
        nothing = nothing_found("devices", node=node_name, driver=driver, drivers=drivers)
        return await _rows(client, chosen), nothing

    rows, nothing = talk(kubeconfig, data_dir, work, context=context)
    if output_format:
        print_data({"devices": [row.data() for row in rows]}, output_format)
    elif rows:
        _print_table(rows)
    else:
        click.echo(printable(nothing), err=True)


async def _refuse_unknown(client: Client, node_name: str | None, with_devices: set[str]) -> None:
    """Raise UserError for a node that does not exist. One that may not be looked for may exist."""
    from drayman.cluster.errors import ForbiddenError
    from drayman.cluster.resources import NODES

    if node_name is None or node_name in with_devices:
        return
    try:
        nodes = (await client.list_all(NODES)).items
    except ForbiddenError:
        return
    known = {node.metadata.name for node in nodes}
    if node_name not in known:
        raise no_such_node(node_name, known)


async def _rows(client: Client, chosen: Sequence[Found]) -> list[_Row]:
    from drayman.cluster.resources import RESOURCE_CLAIMS

    holders = _holders((await client.list_all(RESOURCE_CLAIMS)).items)
    rules = await taint_rules(client)
    return [
        _Row(found, holders.get(found.key, ()), [_text(taint) for taint in _taints(found, rules)])
        for found in chosen
    ]


def _taints(found: Found, rules: Sequence[DeviceTaintRule]) -> list[DeviceTaint]:
    return [*found.taints, *(rule.spec.taint for rule in rules if is_about(rule, found))]


def _text(each: DeviceTaint) -> str:
    return f"{each.key}{'=' if each.value else ''}{each.value}:{each.effect}"


def _holders(claims: Sequence[ResourceClaim]) -> Mapping[tuple[str, str, str], list[str]]:
    holders: dict[tuple[str, str, str], list[str]] = {}
    for claim in claims:
        allocation = claim.status.allocation
        for result in () if allocation is None else allocation.devices.results:
            key = (result.driver, result.pool, result.device)
            holders.setdefault(key, []).append(f"{claim.metadata.namespace}/{claim.metadata.name}")
    return holders


def _print_table(rows: Sequence[_Row]) -> None:
    from drayman.cli.top.table import Column, Table

    columns = (
        Column("DRIVER", may_be_cut=True),
        Column("POOL", may_be_cut=True, matters=True),
        Column("DEVICE", may_be_cut=True, matters=True),
        Column("CLAIMS", folds=True),
        Column("TAINTS", folds=True, empty=_NOTHING),
    )
    table = Table(columns, [row.cells() for row in rows])
    out = console()
    if out.is_terminal:
        out.print(table.text(out.width))
    else:
        click.echo(table.plain())
