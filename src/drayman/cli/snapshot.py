"""`drayman snapshot`: a cluster in a file, for plans that are made elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from drayman.cli import files
from drayman.cli.connecting import Where, cluster_options, talk
from drayman.cli.worlds import unobtrusively

if TYPE_CHECKING:
    from drayman.cluster import Client
    from drayman.placement.world import World
    from drayman.questions.snapshot import Form

_EPILOG: Final = """\b
Examples:
  drayman snapshot > cluster.yaml
  drayman snapshot -o yaml              one field a line, for reading
  drayman snapshot -o json > cluster.json
"""


@click.command(
    short_help="Print what explain, plan and capacity need of a cluster.", epilog=_EPILOG
)
@click.option(
    "-o",
    "--output",
    "output_format",
    type=click.Choice(["lines", "yaml", "json"]),
    default="lines",
    show_default=True,
    help="lines: YAML with one object a line, which is read fastest; yaml: one field a line; json: a list.",
)
@cluster_options
def snapshot(output_format: Form, where: Where) -> None:
    """Print what `explain`, `plan` and `capacity` need to know about a cluster.

    That is nodes, devices, claims, pods, queues and whatever else affects where and when pods go. Secrets are not read. Environment
    variables, commands, annotations of users and parameters for drivers are left out.
    """

    async def work(client: Client) -> World:
        from drayman.questions.worlds import read_with_rules

        return await read_with_rules(client, None, workloads=True, moves=True, queues=True)

    with unobtrusively():
        world = talk(where, work)
    from drayman.questions.snapshot import written

    with files.writing(files.STANDARD) as out:
        for piece in written(world, output_format):
            out.write(piece)
