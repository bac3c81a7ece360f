"""The command: read the cluster, explain one object, and show by the exit status whether it waits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final, TypeAlias

import click

from drayman.cli.completing import explained_kinds
from drayman.cli.connecting import Where, talk
from drayman.cli.errors import no_answer
from drayman.cli.options import prices_option
from drayman.cli.output import console, format_option, print_data, print_verbatim
from drayman.cli.prices import load_prices
from drayman.cli.worlds import load_world, unobtrusively, world_options
from drayman.printable import printable_yaml
from drayman.questions.errors import NamingError
from drayman.questions.explaining import explanation_of, read_for
from drayman.questions.subjects import Target, everything, parse_subject

if TYPE_CHECKING:
    from drayman.cluster import HttpClient
    from drayman.explain.answer import Explanation

Answer: TypeAlias = "tuple[Explanation, float]"
"""An explanation, and the time at which the cluster was read."""
PENDING: Final = 1
"""The exit status for something that waits, or has failed."""

_EPILOG: Final = """\b
KIND is pod, resourceclaim (claim), job, deployment (deploy), replicaset (rs),
statefulset (sts), daemonset (ds), podgroup, workload (of a queue), node or
namespace (ns).

\b
Examples:
  drayman explain pod/trainer
  drayman explain resourceclaim/gpus --namespace team-a
  drayman explain job/sweep --watch
  drayman explain deploy web            how many run, what the others wait for
  drayman explain podgroup/ring         why pods that start together wait
  drayman explain workload/train        why it has no quota, who is ahead
  drayman explain node/example-0        its devices, and what cannot go there
  drayman explain ns team-a             what waits there, by reason
  drayman explain --all                 everything that waits in the cluster
  drayman explain pod trainer -o json   the same as data
  kubectl drayman explain pod/trainer   on kubectl's cluster

Exit status: 0 it fits, runs or has succeeded, 1 it waits or has failed, 2 there
is no answer.
"""


@click.command(short_help="Say why something waits, and what would help.", epilog=_EPILOG)
@click.argument("words", metavar="[KIND/NAME]", nargs=-1, shell_complete=explained_kinds)
@click.option(
    "--all",
    "all_of_it",
    is_flag=True,
    help="Everything that waits in the cluster, or in one namespace with --namespace, by reason.",
)
@click.option("-w", "--watch", is_flag=True, help="Explain again whenever the answer changes.")
@click.option(
    "--print-rbac",
    is_flag=True,
    help="Print the ClusterRole with all the rights that questions need, for `kubectl apply -f -`.",
)
@format_option
@prices_option
@world_options
@click.pass_context
@no_answer()
def explain(
    ctx: click.Context,
    words: tuple[str, ...],
    all_of_it: bool,
    watch: bool,
    print_rbac: bool,
    output_format: str | None,
    prices: str | None,
    snapshot: str | None,
    namespace: str | None,
    where: Where,
) -> None:
    """Say why a pod, a claim or a workload waits and what would help, the state of a node, or what waits in a namespace.

    The first line has one word for the reason, what to expect from waiting (never, not now, not here, held) and a sentence. Below it: how
    many nodes and devices each test leaves, the node that came closest, who holds what is needed, and what would make it fit, each
    tried by a search before it is printed. For something that runs: why it is where it is.
    """
    if print_rbac:
        from drayman.cluster.rights import reader_role

        if words or all_of_it:
            raise click.UsageError("--print-rbac explains nothing; leave out KIND/NAME and --all.")
        print_verbatim(printable_yaml(reader_role()), nl=False)
        return
    if all_of_it and words:
        raise click.UsageError("--all explains everything; leave out KIND/NAME.")
    subject = everything(namespace) if all_of_it else subject_of(words)
    table = load_prices(prices, where if snapshot is None else None)

    async def work(client: HttpClient) -> Answer:
        scope = subject.scope(namespace or client.default_namespace)
        if watch:
            from drayman.cli.explain.following import show_each

            await show_each(client, subject, scope, output_format, table)  # until it is ended
        world = await read_for(client, subject, scope, table)
        return explanation_of(world, subject, scope), world.now

    if snapshot is None:
        with nullcontext() if watch else unobtrusively():
            found, now = talk(where, work)
    elif watch:
        raise click.UsageError("--watch follows a cluster that runs, not one in a file.")
    else:
        world, scope = load_world(snapshot, namespace, where)
        found, now = explanation_of(world.with_prices(table), subject, scope), world.now
    show(found, now, output_format)
    if not found.headline.reason.is_well:
        ctx.exit(PENDING)


def subject_of(words: Sequence[str]) -> Target:
    """What to explain, from `KIND/NAME` or `KIND NAME`. Raises UsageError."""
    if not words:
        raise click.UsageError("what should be explained? Name it as KIND/NAME, or use --all.")
    if len(words) > 2 or (len(words) == 2 and "/" in words[0] + words[1]):
        raise click.UsageError("one object at a time, as KIND/NAME.")
    try:
        return parse_subject(" ".join(words))
    except NamingError as error:
        raise click.UsageError(str(error)) from error


def show(found: Explanation, now: float, output_format: str | None) -> None:
    """Print it, as text or as data."""
    if output_format:
        from drayman.api import codec

        print_data(codec.to_dict(found), output_format)
        return
    from drayman.cli.explain.drawing import Drawing

    console().print(Drawing(found, now))
