"""`drayman map`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from drayman.cli.connecting import Where, cluster_options
from drayman.cli.output import format_option
from drayman.cli.top.refreshing import Asked, Picture, show, watch_option
from drayman.cli.worlds import snapshot_option

if TYPE_CHECKING:
    from drayman.questions.devices.reading import Reading

_EPILOG: Final = """\b
Examples:
  drayman map                           racks, and how much of them is used
  drayman map --nodes --kind nic        every node, by its network cards
  drayman map example-0                 one node: who has which device
  drayman map example-0 --matrix        how far its devices are apart
  drayman map -o json                   the same as data
"""


@click.command("map", short_help="Show where devices are and how they are used.", epilog=_EPILOG)
@click.argument("node_name", metavar="[NODE]", required=False)
@click.option("--nodes", "unfold", is_flag=True, help="A line for every node, too.")
@click.option(
    "--kind",
    type=click.Choice(["gpu", "nic", "cpu", "other"]),
    help="The devices to show by rack. Default: GPUs, where there are any.",
)
@click.option(
    "--sort-by",
    type=click.Choice(["name", "used", "free"]),
    help="Which blocks and racks come first. Default: by name.",
)
@click.option("--matrix", is_flag=True, help="The distances of NODE, as `nvidia-smi topo -m` does.")
@watch_option
@format_option
@snapshot_option
@cluster_options
def map_(
    node_name: str | None,
    unfold: bool,
    kind: str | None,
    sort_by: str | None,
    matrix: bool,
    watch: bool,
    output_format: str | None,
    snapshot: str | None,
    where: Where,
) -> None:
    """Show where devices are and how they are used: racks and NVLink domains, or one node in detail.

    A GPU counts once, even if it is offered in parts. In bars and boxes, "in part" is what is shared or partitioned.
    """
    if matrix and node_name is None:
        raise click.UsageError("--matrix is about one node: drayman map NODE --matrix")
    if node_name is not None and (unfold or kind is not None or sort_by is not None):
        raise click.UsageError("--nodes, --kind and --sort-by are for the map of all nodes")

    def picture(reading: Reading) -> Picture:
        if node_name is None:
            from drayman.cli.map.overview import Overview

            return Overview(reading, unfold=unfold, kind=kind, order=sort_by or "name")
        from drayman.questions.devices.reading import node_of

        node = node_of(reading, node_name)
        if matrix:
            from drayman.cli.map.distances import DistanceDrawing

            return DistanceDrawing(reading, node)
        from drayman.cli.map.boxes import NodeDrawing

        return NodeDrawing(reading, node)

    show(Asked(where, output_format, watch, snapshot=snapshot), picture)
