"""`drayman capacity`: how often a claim fits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from drayman.cli import files
from drayman.cli.connecting import Where
from drayman.cli.errors import no_answer
from drayman.cli.output import console, format_option, print_data
from drayman.cli.worlds import load_world, unobtrusively, world_options

if TYPE_CHECKING:
    from rich.console import RenderableType

    from drayman.simulate.capacity import Capacity, NodeGroup

_MOST_GROUPS: Final = 12
_EPILOG: Final = """\b
Examples:
  drayman capacity -f claim.yaml
  drayman capacity -f claim.yaml --snapshot cluster.yaml
  drayman capacity -f claim.yaml -o json

Exit status: 0 at least one fits, 1 none fits, 2 there is no answer.
"""


@click.command(
    short_help="Say how many copies of a claim fit, and what runs out first.",
    epilog=_EPILOG,
    options_metavar="-f FILE [OPTIONS]",
)
@click.option(
    "-f",
    "--filename",
    "path",
    type=files.PATH,
    metavar="FILE",
    required=True,
    help="A file with one ResourceClaim or ResourceClaimTemplate, or - for standard input.",
)
@world_options
@format_option
@click.pass_context
@no_answer()
def capacity(
    ctx: click.Context,
    path: str,
    output_format: str | None,
    snapshot: str | None,
    namespace: str | None,
    where: Where,
) -> None:
    """Say how many copies of a claim fit now, how many with nothing in use, and what runs out first.

    Device classes in the file join the cluster. Copies are placed as the scheduler would place them. Only devices count here: for pods with
    all they need, see `drayman plan --times`.
    """
    data = files.read(path)
    world, namespace = load_world(snapshot, namespace, where)
    from drayman.questions.capacity import capacity as capacity_of

    with unobtrusively():
        found = asyncio.run(capacity_of(world, files.display_name(path), data, namespace))
    if output_format:
        from drayman.api import codec

        print_data(codec.to_dict(found), output_format)
    else:
        from drayman.cli.explain.layout import Trimmed

        out = console()
        for part in _drawn(found):
            out.print(Trimmed(part))
    if not found.now:
        ctx.exit(1)


def _drawn(found: Capacity) -> Iterator[RenderableType]:
    from drayman.cli.explain.drawing import headline, unseen
    from drayman.cli.explain.layout import AS_SEEN, plain, prose, section
    from drayman.explain.hidden import hides_use
    from drayman.reasons.wording import counted

    more = "at least " if found.unbounded else ""
    seen = AS_SEEN if hides_use(found.unseen) else ""
    yield prose(
        (f"{more}{found.now:,}", "bold green" if found.now else "bold red"),
        f" of claim {plain(found.claim)} fit now{seen}, ",
        (f"{more}{found.empty:,}", "bold"),
        " with nothing in use.",
    )
    if found.runs_out is not None:
        such = next((group for group in found.groups if group.limit == found.runs_out), None)
        where = "" if such is None else f"on {plain(such.nodes[0])}"
        yield section("what runs out first", where, headline(found.runs_out))
    if found.groups:
        yield section("nodes", "copies on each", _table(found.groups))
    for reason, nodes in found.closed.items():
        yield prose((f"{counted(nodes, 'node')} left out: {plain(reason)}", "dim"))
    for warning in found.warnings:
        yield prose(plain(warning))
    if found.unseen:
        yield unseen(found.unseen)


def _table(groups: Sequence[NodeGroup]) -> RenderableType:
    from rich.padding import Padding
    from rich.table import Table

    from drayman.cli.explain.layout import INDENT, plain

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("nodes", "now", "empty"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("no more because", no_wrap=True)
    table.add_column("such as", overflow="fold")
    for group in groups[:_MOST_GROUPS]:
        why = "" if group.limit is None else group.limit.reason.title
        counts = (f"{len(group.nodes):,}", f"{group.now:,}", f"{group.empty:,}")
        table.add_row(*counts, why, plain(group.nodes[0]))
    if rest := groups[_MOST_GROUPS:]:
        nodes = sum(len(group.nodes) for group in rest)
        table.add_row(f"{nodes:,}", "", "", "", "others; -o json has them all")
    return Padding(table, (0, 0, 0, INDENT))
