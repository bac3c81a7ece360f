"""The command: read the cluster, propose moves, and carry them out on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from drayman.cli.completing import explained_kinds
from drayman.cli.connecting import Where, talk
from drayman.cli.errors import no_answer
from drayman.cli.output import console, format_option, print_data
from drayman.cli.worlds import load_world, unobtrusively, world_options
from drayman.questions.errors import NamingError
from drayman.questions.subjects import Target, parse_subject

if TYPE_CHECKING:
    from drayman.cluster import HttpClient
    from drayman.placement.world import World
    from drayman.simulate.moving.report import DefragReport

SOME_WAIT: Final = 1
"""The exit status where not everything gets room."""
_MOST_MOVES: Final = 32

_EPILOG: Final = """\b
KIND is pod, podgroup, job, deployment (deploy), replicaset (rs) or
statefulset (sts).

\b
Examples:
  drayman defrag                        room for everything that waits
  drayman defrag --for pod/trainer      room for one pod
  drayman defrag --for podgroup/ring    room for pods that start together
  drayman defrag --for job/sweep -o json
  drayman defrag --snapshot cluster.yaml

Exit status: 0 everything has room, or would have after the moves; 1 something
has not; 2 there is no answer.
"""


@click.command(short_help="Propose moves of pods that make room for what waits.", epilog=_EPILOG)
@click.option(
    "--for",
    "beneficiary",
    metavar="KIND/NAME",
    shell_complete=explained_kinds,
    help="Make room for this. Default: for everything that waits and asks for devices.",
)
@click.option(
    "--max-moves",
    type=click.IntRange(1, 10_000),
    default=_MOST_MOVES,
    show_default=True,
    metavar="N",
    help="Move at most this many pods for one pod or gang.",
)
@click.option("--all", "all_steps", is_flag=True, help="List every step, however many there are.")
@format_option
@world_options
@click.pass_context
@no_answer()
def defrag(
    ctx: click.Context,
    beneficiary: str | None,
    max_moves: int,
    all_steps: bool,
    output_format: str | None,
    snapshot: str | None,
    namespace: str | None,
    where: Where,
) -> None:
    """Propose the cheapest moves of pods that make room for what waits.

    A pod is moved by evicting it: its controller makes another one, which begins anew. Each of them has a proven place, and the moves
    are listed in an order that works step by step. Pods without a controller, and pods that are protected, stay.
    """
    subject = None if beneficiary is None else subject_of(beneficiary)
    world, scope = _world(subject, snapshot, namespace, where)
    from drayman.questions.defrag import defrag as proposed

    with unobtrusively():
        report = proposed(world, subject, scope, most=max_moves)
    _show(report, subject, output_format, all_steps=all_steps)
    if not report.fits:
        ctx.exit(SOME_WAIT)


def subject_of(text: str) -> Target:
    """What to make room for. Raises UsageError."""
    try:
        return parse_subject(text)
    except NamingError as error:
        raise click.UsageError(str(error)) from error


def _world(
    subject: Target | None, snapshot: str | None, namespace: str | None, where: Where
) -> tuple[World, str]:
    if snapshot is not None:
        return load_world(snapshot, namespace, where)

    async def work(client: HttpClient) -> tuple[World, str]:
        from drayman.questions.defrag import read_for_moves

        scope = namespace or client.default_namespace
        return await read_for_moves(client, subject, scope), scope

    with unobtrusively():
        return talk(where, work)


def _show(
    report: DefragReport, subject: Target | None, output_format: str | None, *, all_steps: bool
) -> None:
    if output_format:
        from drayman.api import codec

        print_data(codec.to_dict(report), output_format)
        return
    from drayman.cli.defrag.drawing import DefragDrawing

    console().print(DefragDrawing(report, "" if subject is None else str(subject), all_steps))
