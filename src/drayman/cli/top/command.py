"""`drayman top devices|claims|pools|owners`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from drayman.cli.connecting import Where, cluster_options
from drayman.cli.filters import nothing_found
from drayman.cli.lazy import LazyGroup
from drayman.cli.options import prices_option
from drayman.cli.output import format_option
from drayman.cli.prices import load_prices
from drayman.cli.top.refreshing import Asked, Nothing, Picture, show, show_at, watch_option
from drayman.cli.worlds import snapshot_option

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from drayman.api.struct import ApiStruct
    from drayman.cli.table import Cell, Column
    from drayman.questions.devices.reading import Reading

_EPILOG: Final = """\b
Examples:
  drayman top devices --node example-0   who has which device there
  drayman top claims -n default          what claims have, for which pods
  drayman top pools --sort-by free       where something is left
  drayman top owners                     who holds how much, at which cost
"""
STATES: Final = ("used", "shared", "partitioned", "tainted", "unavailable", "free", "unknown")
_DEVICE_ORDERS: Final = ("node", "driver", "device", "state", "holder")
_CLAIM_ORDERS: Final = ("name", "node", "state", "devices", "age")
_POOL_ORDERS: Final = ("name", "total", "used", "free", "tainted")
_OWNER_ORDERS: Final = ("rate", "cost", "devices", "since", "name")


@click.group(cls=LazyGroup, lazy={
    "devices": "drayman.cli.top.command:devices",
    "claims": "drayman.cli.top.command:claims",
    "pools": "drayman.cli.top.command:pools",
    "owners": "drayman.cli.top.command:owners",
}, epilog=_EPILOG)  # fmt: skip
def top() -> None:
    """Show how devices, claims and pools are used, and by whom. Each device counts once: see `drayman top devices --help`."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows of one kind as a table, or as data under a name."""

    name: str
    columns: Sequence[Column]
    cells: Sequence[Sequence[Cell]]
    rows: Sequence[ApiStruct]
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else there is to say, as data."""

    def data(self) -> Mapping[str, Any]:
        from drayman.api import codec

        return {self.name: [codec.to_dict(row) for row in self.rows], **self.more}

    def drawn(self, out: Console) -> RenderableType:
        from drayman.cli.table import Table

        return Table(self.columns, self.cells).text(out.width)

    def plain(self, out: Console) -> str:
        from drayman.cli.table import Table

        return Table(self.columns, self.cells).plain()


def _without_fixed(columns: Sequence[Column], **given: str | None) -> list[Column]:
    """The columns, those of which an option gives the only value to be left out first."""
    from drayman.cli.table import EXTRA

    return [replace(each, spare=EXTRA) if given.get(each.title) else each for each in columns]


@click.command(
    epilog="\b\nExamples:\n  drayman top devices --driver gpu.example.com --state free\n"
    "  drayman top devices --sort-by holder\n"
)
@click.option("--node", "node_name", metavar="NODE", help="Only devices of this node.")
@click.option("--driver", metavar="DRIVER", help="Only devices of this driver.")
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES),
    multiple=True,
    help="Only devices in this state.",
)
@click.option("--sort-by", type=click.Choice(_DEVICE_ORDERS), default="node", show_default=True)
@watch_option
@format_option
@snapshot_option
@cluster_options
def devices(
    node_name: str | None,
    driver: str | None,
    states: tuple[str, ...],
    sort_by: str,
    watch: bool,
    output_format: str | None,
    snapshot: str | None,
    where: Where,
) -> None:
    """List devices: where each is, who has it, and what is left of it.

    \b
    used         a claim holds all of it
    shared       claims hold shares of it; LEFT says what is left
    partitioned  parts of it are held, so it cannot be allocated whole
    tainted      not held; only requests that tolerate its taints get it
    unavailable  not held, but cannot be allocated, for instance
                 because it overlaps something that is held, or
                 because its node is cordoned or not ready
    free         not held, and a request for it gets it
    unknown      free, unless held by a claim that you may not see

    The first that applies is shown; a device that is used and tainted is used.
    Anything else to know follows it: "used,not-ready" is a device in use on a
    node that is not ready.
    """

    def picture(reading: Reading) -> Picture:
        from drayman.cli.top.rows import DEVICE_COLUMNS, device_cells
        from drayman.questions.devices.ordering import sorted_devices
        from drayman.questions.devices.reading import refuse_unknown_node
        from drayman.questions.devices.rows import device_rows

        rows = device_rows(reading, node=node_name, driver=driver, states=states)
        if not rows:
            refuse_unknown_node(reading, node_name)
            drivers = {standing.id.driver for standing in reading.occupancy.devices.values()}
            return Nothing(
                "devices",
                nothing_found(
                    "devices", node=node_name, driver=driver, drivers=drivers, states=states
                ),
            )
        rows = sorted_devices(rows, sort_by)
        columns = _without_fixed(DEVICE_COLUMNS, NODE=node_name, DRIVER=driver)
        return Listing("devices", columns, [device_cells(row) for row in rows], rows)

    show(Asked(where, output_format, watch, snapshot=snapshot), picture)


@click.command(
    epilog="\b\nExamples:\n  drayman top claims\n  drayman top claims -n default --sort-by age\n"
)
@click.option("-n", "--namespace", metavar="NAMESPACE", help="Only claims of this namespace.")
@click.option("--node", "node_name", metavar="NODE", help="Only claims with devices of this node.")
@click.option("--sort-by", type=click.Choice(_CLAIM_ORDERS), default="name", show_default=True)
@watch_option
@format_option
@snapshot_option
@cluster_options
def claims(
    namespace: str | None,
    node_name: str | None,
    sort_by: str,
    watch: bool,
    output_format: str | None,
    snapshot: str | None,
    where: Where,
) -> None:
    """List claims: what they have, where, and for which pods.

    STATE says after a comma if devices of the claim are gone (devices-gone), or their node is cordoned or not-ready.
    """

    def picture(reading: Reading) -> Picture:
        from drayman.cli.top.rows import CLAIM_COLUMNS, claim_cells
        from drayman.questions.devices.claim_rows import claim_rows
        from drayman.questions.devices.ordering import sorted_claims
        from drayman.questions.devices.reading import refuse_unknown_node

        now = datetime.now(UTC)
        rows = claim_rows(reading, namespace=namespace, node=node_name)
        if not rows:
            refuse_unknown_node(reading, node_name)
            return Nothing("claims", nothing_found("claims", namespace=namespace, node=node_name))
        rows = sorted_claims(rows, sort_by)
        columns = _without_fixed(CLAIM_COLUMNS, NAMESPACE=namespace, NODE=node_name)
        return Listing("claims", columns, [claim_cells(row, now) for row in rows], rows)

    asked = Asked(where, output_format, watch, namespace, needs_claims=True, snapshot=snapshot)
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
@snapshot_option
@cluster_options
def pools(
    node_name: str | None,
    driver: str | None,
    sort_by: str,
    watch: bool,
    output_format: str | None,
    snapshot: str | None,
    where: Where,
) -> None:
    """List pools: whether all of their slices are there, and how their devices are used.

    Only the newest generation of a pool counts. PART are devices that cannot be allocated whole because parts of them are held,
    UNAV those that cannot be allocated at all; see `drayman top devices --help`.
    """

    def picture(reading: Reading) -> Picture:
        from drayman.cli.top.rows import POOL_COLUMNS, pool_cells
        from drayman.questions.devices.ordering import sorted_pools
        from drayman.questions.devices.reading import refuse_unknown_node
        from drayman.questions.devices.rows import pool_rows

        rows = pool_rows(reading, node=node_name, driver=driver)
        if not rows:
            refuse_unknown_node(reading, node_name)
            drivers = {pool.id.driver for pool in reading.occupancy.pools}
            return Nothing(
                "pools", nothing_found("pools", node=node_name, driver=driver, drivers=drivers)
            )
        rows = sorted_pools(rows, sort_by)
        columns = _without_fixed(POOL_COLUMNS, NODE=node_name, DRIVER=driver)
        return Listing("pools", columns, [pool_cells(row) for row in rows], rows)

    show(Asked(where, output_format, watch, snapshot=snapshot), picture)


@click.command(
    short_help="List who holds devices: since when, and at which cost.",
    epilog="\b\nExamples:\n"
    "  drayman top owners                      the highest cost per hour first\n"
    "  drayman top owners --by namespace --prices prices.yaml\n"
    "  drayman top owners --by queue           whose quota it is\n"
    "  drayman top owners -n team-a --sort-by since\n"
    "  drayman top owners --snapshot cluster.yaml -o json\n",
)
@click.option(
    "--by",
    type=click.Choice(["workload", "namespace", "queue"]),
    default="workload",
    show_default=True,
    help="What is added up: the pods of a Job, a Deployment and the like, all of a namespace, or what has quota of a ClusterQueue.",
)
@click.option("-n", "--namespace", metavar="NAMESPACE", help="Only owners in this namespace.")
@click.option("--sort-by", type=click.Choice(_OWNER_ORDERS), default="rate", show_default=True)
@prices_option
@watch_option
@format_option
@snapshot_option
@cluster_options
def owners(
    by: str,
    namespace: str | None,
    sort_by: str,
    prices: str | None,
    watch: bool,
    output_format: str | None,
    snapshot: str | None,
    where: Where,
) -> None:
    """List who holds devices: how many of each kind, since when, and at which cost.

    A device costs its share of the price of its node: see docs/scheduling.md. COST/H is by the hour, SO FAR since each claim
    got its devices, at the prices of today. Prices are in labels of nodes (drayman.dev/price-per-hour) or in the file that
    --prices names; without them the columns are left out.
    """
    table = load_prices(prices, where if snapshot is None else None)

    def picture(reading: Reading, now: float) -> Picture:
        from drayman.api import codec
        from drayman.cli.top.rows import owner_cells, owner_columns, total_cells
        from drayman.questions.devices.ordering import sorted_owners
        from drayman.questions.devices.owners import Grouping
        from drayman.questions.devices.owners import owners as found_owners

        found = found_owners(reading, now, table, by=Grouping(by), namespace=namespace)
        if not found.rows:
            return Nothing("owners", nothing_found("owners", namespace=namespace))
        rows = sorted_owners(found.rows, sort_by)
        moment = datetime.fromtimestamp(now, UTC)
        cells = [owner_cells(row, moment) for row in rows]
        if len(rows) > 1:
            cells.append(total_cells(found.total, of_queues=by == Grouping.QUEUE))
        columns = _without_fixed(owner_columns(found.currency), NAMESPACE=namespace)
        more: dict[str, Any] = {"total": codec.to_dict(found.total)}
        if found.currency:
            more["currency"] = found.currency
        return Listing("owners", columns, cells, rows, more)

    def remarks(reading: Reading) -> Iterable[str]:
        from drayman.placement.prices import label_faults

        return map(str, label_faults(reading.nodes))

    asked = Asked(
        where,
        output_format,
        watch,
        namespace,
        needs_claims=True,
        with_pods=True,
        with_queues=by == "queue",
        remarks=remarks,
        snapshot=snapshot,
    )
    show_at(asked, picture)
