"""`drayman queues`: all queues with their quota; `drayman queue NAME`: one of them with who holds it and who waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from drayman.cli import files
from drayman.cli.connecting import Where, cluster_options
from drayman.cli.errors import no_answer
from drayman.cli.output import console, format_option, print_data
from drayman.cli.worlds import load_world, snapshot_option, unobtrusively

if TYPE_CHECKING:
    from drayman.placement.world import World

F = TypeVar("F", bound=Callable[..., Any])

WIDE: Final = "wide"
_EPILOG: Final = """\b
Examples:
  drayman queues                        all queues, in their cohorts
  drayman queues -o wide                with limits, strategies, local queues
  drayman queues --snapshot cluster.yaml -o json
  drayman queue team-a                  who holds its quota, and who waits

Exit status: 0 here they are, 2 there is no answer.
"""
_EPILOG_OF_ONE: Final = """\b
Examples:
  drayman queue team-a                  a ClusterQueue
  drayman queue user-queue -n team-a    a LocalQueue
  drayman queue team-a --kai            a Queue of the KAI Scheduler
  drayman queue team-a --all -o yaml
  drayman explain workload/train        all about one workload

Exit status: 0 here it is, 2 there is no answer.
"""


def config_option(function: F) -> F:
    """`--config`, as `config`: the name of a file, or None."""
    return click.option(
        "--config",
        type=files.PATH,
        metavar="FILE",
        help="Kueue's Configuration. Default: the one that the queues of the cluster work by.",
    )(function)


@click.command(short_help="Show queues: quota, who borrows and lends, who waits.", epilog=_EPILOG)
@click.option(
    "-o",
    "--output",
    "output_format",
    type=click.Choice(["json", "yaml", WIDE]),
    help="Print data instead of a table, or a table with more columns.",
)
@config_option
@snapshot_option
@cluster_options
@no_answer()
def queues(
    output_format: str | None, config: str | None, snapshot: str | None, where: Where
) -> None:
    """Show every ClusterQueue in its cohorts, with each flavor and resource.

    \b
    USED      what workloads hold, also beyond the quota of the queue
    QUOTA     its nominal quota; for a cohort, what its members share
    BORROWED  what is used beyond the quota
    LENT      what others use of it: what is borrowed is divided among
              those that have something unused
    RESERVED  what is held by workloads that are not admitted yet
    PENDING   workloads that wait

    Queues of the KAI Scheduler (scheduling.run.ai) follow in a table of their own, in GPUs: quota, limit, the fair share by what all
    queues want now, what is used, and how many pod groups and pods wait.

    Usage is counted from the workloads themselves, as admission counts it, not read from the status of queues.
    """
    world = _world(snapshot, where, config)
    from drayman.questions.queues.overview import overview

    with unobtrusively():
        answer = overview(world)
    if output_format in ("json", "yaml"):
        from drayman.api import codec

        print_data(codec.to_dict(answer), output_format)
        return
    from drayman.cli.queues.drawing import draw_queues

    draw_queues(answer, console(), wide=output_format == WIDE)


@click.command(
    short_help="Show one queue: who holds its quota, who waits and why.", epilog=_EPILOG_OF_ONE
)
@click.argument("name")
@click.option(
    "--kai",
    "of_kai",
    is_flag=True,
    help="The Queue of scheduling.run.ai. Default: that one, where there is no ClusterQueue of the name.",
)
@click.option("--all", "all_of_them", is_flag=True, help="List everybody, however many there are.")
@format_option
@config_option
@snapshot_option
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    help="The namespace of a LocalQueue. Without it, NAME is that of a ClusterQueue.",
)
@cluster_options
@no_answer()
def queue(
    name: str,
    of_kai: bool,
    all_of_them: bool,
    output_format: str | None,
    config: str | None,
    snapshot: str | None,
    namespace: str | None,
    where: Where,
) -> None:
    """Show a ClusterQueue, with --namespace a LocalQueue, or a Queue of the KAI Scheduler.

    Its quota, the workloads that hold it, and those that wait.

    Those that wait are listed in the order in which they are tried, each with the reason that admission would give now and with an
    estimated start. Estimates rest on run times that are declared (drayman.dev/runtime, deadlines, the longest execution of a
    Workload) or were observed; where none are known, there is no estimate.
    """
    world = _world(snapshot, where, config, namespace)
    if of_kai or (namespace is None and _is_of_kai(world, name)):
        _show_share(world, name, output_format, all_of_them=all_of_them)
        return
    from drayman.questions.queues.one import one_queue

    with unobtrusively():
        answer = one_queue(world, name, namespace)
    if output_format:
        from drayman.api import codec

        print_data(codec.to_dict(answer), output_format)
        return
    from drayman.cli.queues.drawing import draw_queue

    draw_queue(answer, world.now, console(), all_of_them=all_of_them)


def _is_of_kai(world: World, name: str) -> bool:
    """Whether only a Queue of KAI has the name."""
    objects = world.objects
    named = {each.metadata.name for each in objects.kai_queues}
    return name in named and all(each.metadata.name != name for each in objects.cluster_queues)


def _show_share(world: World, name: str, output_format: str | None, *, all_of_them: bool) -> None:
    from drayman.questions.queues.shares import one_share

    with unobtrusively():
        answer = one_share(world, name)
    if output_format:
        from drayman.api import codec

        print_data(codec.to_dict(answer), output_format)
        return
    from drayman.cli.queues.drawing import MOST_SHOWN
    from drayman.cli.queues.shares import draw_share

    most = len(answer.pending) + len(answer.holders) if all_of_them else MOST_SHOWN
    draw_share(answer, console(), most=most)


def _world(
    snapshot: str | None, where: Where, config: str | None, namespace: str | None = None
) -> World:
    given = None
    if config is not None:
        from drayman.questions.kueue_configuration import configuration_in

        given = configuration_in(files.display_name(config), files.read(config))
    world, _ = load_world(snapshot, namespace, where, queues=True)
    return world if given is None else world.with_queue_configuration(given)
