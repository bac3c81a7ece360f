"""`drayman top devices|claims|pools`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from drayman.cli.connecting import cluster_options
from drayman.cli.filters import no_such_node, nothing_found
from drayman.cli.lazy import LazyGroup
from drayman.cli.output import format_option
from drayman.cli.top.refreshing import Asked, Nothing, Picture, show, watch_option

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from drayman.cli.top.reading import Reading
    from drayman.cli.top.table import Cell, Column

_EPILOG: Final = """\b
Examples:
  drayman top devices --node example-0   who has which device there
  drayman top claims -n default          what claims have, for which pods
  drayman top pools --sort-by free       where something is left
"""
_STATES: Final = ("used", "shared", "partitioned", "tainted", "unavailable", "free", "unknown")
_DEVICE_ORDERS: Final = ("node", "driver", "device", "state", "holder")
_CLAIM_ORDERS: Final = ("name", "node", "state", "devices", "age")
_POOL_ORDERS: Final = ("name", "total", "used", "free", "tainted")


@click.group(cls=LazyGroup, lazy={
    "devices": "drayman.cli.top.command:devices",
    "claims": "drayman.cli.top.command:claims",
    "pools": "drayman.cli.top.command:pools",
}, epilog=_EPILOG)  # fmt: skip
def top() -> None:
    """Show how devices, claims and pools are used. Each device counts once: see `drayman top devices --help`."""


class _Row(Protocol):
    def cells(self) -> tuple[Cell, ...]: ...

    def data(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows of one kind as a table, or as data under a name."""

    name: str
    columns: Sequence[Column]
    rows: Sequence[_Row]

    def data(self) -> Mapping[str, Any]:
        return {self.name: [row.data() for row in self.rows]}

    def drawn(self, out: Console) -> RenderableType:
        from drayman.cli.top.table import Table

        return Table(self.columns, (row.cells() for row in self.rows)).text(out.width)

    def plain(self, out: Console) -> str:
        from drayman.cli.top.table import Table

        return Table(self.columns, (row.cells() for row in self.rows)).plain()


@click.command(
    epilog="\b\nExamples:\n  drayman top devices --driver gpu.example.com --state free\n"
    "  drayman top devices --sort-by holder\n"
)
@click.option("--node", "node_name", metavar="NODE", help="Only devices of this node.")
@click.option("--driver", metavar="DRIVER", help="Only devices of this driver.")
@click.option(
    "--state", "states", type=click.Choice(_STATES), multiple=True, help="Only devices like this."
)
@click.option("--sort-by", type=click.Choice(_DEVICE_ORDERS), default="node", show_default=True)
@watch_option
@format_option
@cluster_options
def devices(
    node_name: str | None,
    driver: str | None,
    states: tuple[str, ...],
    sort_by: str,
    watch: bool,
    output_format: str | None,
    kubeconfig: Path | None,
    data_dir: Path | None,
    context: str,
) -> None:
    """List devices: where each is, who has it, and what is left of it.

    \b
    used         somebody holds all of it
    shared       somebody holds a share of it; LEFT says what is left
    partitioned  parts of it are held, so nobody can have the whole
    tainted      nobody holds it; only those get it who tolerate its taints
    unavailable  nobody holds it and nobody can get it, for instance
                 because it overlaps something that is held, or
                 because its node is cordoned or not ready
    free         nobody holds it, and whoever asks for it gets it
    unknown      free, unless a claim has it that you may not see

    The first that is true counts; a device that is used and tainted is used.
    After it stands what else there is to know: "used,not-ready" is a device
    in use on a node that is not ready.
    """

    def picture(reading: Reading) -> Picture:
        from drayman.cli.top.ordering import sorted_devices
        from drayman.cli.top.rows import DEVICE_COLUMNS, device_rows

        standings = [
            standing
            for standing in reading.occupancy.devices.values()
            if node_name in (None, standing.node)
            and driver in (None, standing.id.driver)
            and (not states or standing.state in states)
        ]
        if not standings:
            _refuse_unknown(node_name, reading)
            drivers = {standing.id.driver for standing in reading.occupancy.devices.values()}
            return Nothing(
                "devices",
                nothing_found(
                    "devices", node=node_name, driver=driver, drivers=drivers, states=states
                ),
            )
        rows = device_rows(reading, standings)
        return Listing("devices", DEVICE_COLUMNS, sorted_devices(rows, sort_by))

    show(Asked(kubeconfig, data_dir, context, output_format, watch), picture)


@click.command(
    epilog="\b\nExamples:\n  drayman top claims\n  drayman top claims -n default --sort-by age\n"
)
@click.option("-n", "--namespace", metavar="NAMESPACE", help="Only claims of this namespace.")
@click.option("--node", "node_name", metavar="NODE", help="Only claims with devices of this node.")
@click.option("--sort-by", type=click.Choice(_CLAIM_ORDERS), default="name", show_default=True)
@watch_option
@format_option
@cluster_options
def claims(
    namespace: str | None,
    node_name: str | None,
    sort_by: str,
    watch: bool,
    output_format: str | None,
    kubeconfig: Path | None,
    data_dir: Path | None,
    context: str,
) -> None:
    """List claims: what they have, where, and for which pods.

    STATE says after a comma if devices of the claim are gone (devices-gone), or their node is cordoned or not-ready.
    """

    def picture(reading: Reading) -> Picture:
        from drayman.apiserver.kinds.tables import age_of
        from drayman.cli.top.claim_rows import CLAIM_COLUMNS, claim_row
        from drayman.cli.top.ordering import sorted_claims

        now = datetime.now(UTC)
        rows = [
            claim_row(claim, reading, age_of(claim.metadata.creation_timestamp, now))
            for claim in reading.claims
            if namespace in (None, claim.metadata.namespace)
        ]
        rows = [row for row in rows if node_name in (None, row.node)]
        if not rows:
            _refuse_unknown(node_name, reading)
            return Nothing("claims", nothing_found("claims", namespace=namespace, node=node_name))
        return Listing("claims", CLAIM_COLUMNS, sorted_claims(rows, sort_by))

    asked = Asked(kubeconfig, data_dir, context, output_format, watch, namespace, needs_claims=True)
    show(asked, picture)


@click.command(
    short_help="List pools: their slices, and how their devices are used.",
    epilog="\b\nExamples:\n  drayman top pools\n  drayman top pools --driver gpu.example.com -o json\n",
)
@click.option("--node", "node_name", metavar="NODE", help="Only pools of this node.")
@click.option("--driver", metavar="DRIVER", help="Only pools of this driver.")
@click.option("--sort-by", type=click.Choice(_POOL_ORDERS), default="name", show_default=True)
@watch_option
@format_option
@cluster_options
def pools(
    node_name: str | None,
    driver: str | None,
    sort_by: str,
    watch: bool,
    output_format: str | None,
    kubeconfig: Path | None,
    data_dir: Path | None,
    context: str,
) -> None:
    """List pools: whether all of their slices are there, and how their devices are used.

    Only the newest generation of a pool counts. PART are devices that cannot be had whole because parts of them are held, UNAV those that
    cannot be had at all; see `drayman top devices --help`.
    """

    def picture(reading: Reading) -> Picture:
        from drayman.cli.top.ordering import sorted_pools
        from drayman.cli.top.rows import POOL_COLUMNS, pool_rows

        rows = [
            row
            for row in pool_rows(reading)
            if driver in (None, row.pool.id.driver)
            and (node_name is None or node_name in row.pool.nodes)
        ]
        if not rows:
            _refuse_unknown(node_name, reading)
            drivers = {pool.id.driver for pool in reading.occupancy.pools}
            return Nothing(
                "pools", nothing_found("pools", node=node_name, driver=driver, drivers=drivers)
            )
        return Listing("pools", POOL_COLUMNS, sorted_pools(rows, sort_by))

    show(Asked(kubeconfig, data_dir, context, output_format, watch), picture)


def _refuse_unknown(node_name: str | None, reading: Reading) -> None:
    """Raise UserError for a node that is neither there nor named by a pool."""
    if node_name is None:
        return
    known = {node.metadata.name for node in reading.nodes}
    known.update(name for pool in reading.occupancy.pools for name in pool.nodes)
    if node_name not in known:
        raise no_such_node(node_name, known)
