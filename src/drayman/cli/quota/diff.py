"""`drayman quota diff`: what another configuration of queues would change, before it is put to use."""

from __future__ import annotations

from typing import Final

import click

from drayman.cli import files
from drayman.cli.connecting import Where, cluster_options
from drayman.cli.errors import no_answer
from drayman.cli.output import console, format_option, print_data
from drayman.cli.worlds import load_world, snapshot_option, unobtrusively

SOMETHING_CHANGES: Final = 1
_EPILOG: Final = """\b
Examples:
  drayman quota diff --config new.yaml
  drayman quota diff --config new.yaml --snapshot cluster.yaml -o json
  drayman quota diff --config new.yaml && cp new.yaml kueue.yaml

Exit status: 0 nothing changes, 1 something does, 2 there is no answer.
"""


@click.command(
    short_help="Say which workloads another configuration would charge differently.",
    epilog=_EPILOG,
    options_metavar="--config FILE [OPTIONS]",
)
@click.option(
    "--config", type=files.PATH, required=True, metavar="FILE", help="The new Configuration."
)
@format_option
@snapshot_option
@cluster_options
@click.pass_context
@no_answer()
def diff(
    ctx: click.Context, config: str, output_format: str | None, snapshot: str | None, where: Where
) -> None:
    """Say which workloads of a cluster would cost something else if its queues worked by another Configuration, such as other device
    class mappings.

    Nothing is changed. Workloads that hold quota keep what they hold: their price counts when they are queued again.
    """
    from drayman.questions.kueue_configuration import configuration_in

    name = files.display_name(config)
    given = configuration_in(name, files.read(config))
    world, _ = load_world(snapshot, None, where, queues=True)
    from drayman.questions.quota_changes import changes

    with unobtrusively():
        answer = changes(world, name, given)
    if output_format:
        from drayman.api import codec

        print_data(codec.to_dict(answer), output_format)
    else:
        from drayman.cli.quota.changes import ChangesDrawing

        console().print(ChangesDrawing(answer))
    if not answer.is_empty:
        ctx.exit(SOMETHING_CHANGES)
