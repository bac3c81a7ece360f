"""`drayman plan`: what would become of workloads, before anything is submitted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click

from drayman.cli import files
from drayman.cli.connecting import Where
from drayman.cli.errors import no_answer
from drayman.cli.options import manifests_option, prices_option
from drayman.cli.output import console, format_option, print_data
from drayman.cli.prices import load_prices
from drayman.cli.worlds import load_world, unobtrusively, world_options
from drayman.questions.arguments import MOST_COPIES
from drayman.workloads.queued.names import QUEUE

if TYPE_CHECKING:
    from drayman.questions.plan import PlanAnswer

SOME_WAIT: Final = 1
"""The exit status where not every pod finds its place."""
_AS_PLANNED: Final = (
    "Explained with the planned pods in their places: what one of them is said to use would be taken by it."
    " Claims that do not exist yet have example names."
)
_EPILOG: Final = """\b
Examples:
  drayman plan -f job.yaml
  drayman plan -f job.yaml --times 200   how many copies fit
  drayman plan -f app/ --explain         all about what would wait
  drayman plan -f job.yaml --snapshot cluster.yaml -o json
  helm template chart/ | drayman plan -f - --context staging

Exit status: 0 all pods fit, 1 some do not, 2 there is no answer.
"""


@click.command(
    short_help="Say where the pods of manifests would go, or why they wait.",
    epilog=_EPILOG,
    options_metavar="-f FILE [OPTIONS]",
)
@manifests_option
@click.option(
    "--times",
    type=click.IntRange(1, MOST_COPIES),
    default=1,
    show_default=True,
    metavar="N",
    help="Plan this many copies, each with claims of its own.",
)
@click.option("--explain", "explains", is_flag=True, help="Explain what would wait.")
@click.option("--all", "all_pods", is_flag=True, help="List every pod, however many there are.")
@click.option(
    "--ignore-pending",
    is_flag=True,
    help="Ignore pods that already wait in the cluster. By default they are planned too.",
)
@prices_option
@world_options
@format_option
@click.pass_context
@no_answer()
def plan(
    ctx: click.Context,
    paths: tuple[str, ...],
    times: int,
    explains: bool,
    all_pods: bool,
    ignore_pending: bool,
    output_format: str | None,
    prices: str | None,
    snapshot: str | None,
    namespace: str | None,
    where: Where,
) -> None:
    """Say where the pods of manifests would go and which devices they would get, or why they would wait.

    Nothing is submitted. Manifests are defaulted and checked as the API server does it; Deployments, Jobs and the like count with the pods
    they would have. Nodes, ResourceSlices and DeviceClasses among them join the cluster, to plan with what is not there yet.
    """
    inputs = list(files.read_all(paths))
    table = load_prices(prices, where if snapshot is None else None)
    in_queues = any(QUEUE.encode() in data for _, data in inputs)
    world, namespace = load_world(snapshot, namespace, where, queues=in_queues)
    from drayman.questions.plan import plan as planned

    pending_first = not ignore_pending
    asked = planned(
        world.with_prices(table),
        inputs,
        namespace,
        times=times,
        pending_first=pending_first,
        with_explanations=explains,
    )
    with unobtrusively():
        report = asyncio.run(asked)
    if output_format:
        from drayman.api import codec

        print_data(codec.to_dict(report), output_format)
    else:
        _print(report, world.now, all_pods=all_pods)
    if not report.fits:
        ctx.exit(SOME_WAIT)


def _print(report: PlanAnswer, now: float, *, all_pods: bool) -> None:
    from drayman.cli.explain.drawing import Drawing
    from drayman.cli.planned import PlanDrawing

    out = console()
    out.print(PlanDrawing(report, all_pods))
    if report.explanations:
        out.print(f"\n{_AS_PLANNED}")
    for each in report.explanations:
        out.print()
        out.print(Drawing(each, now))
