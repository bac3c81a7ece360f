"""The command: read the cluster, explain one object, and show by the exit status whether it waits."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import click

from drayman.cli.completing import explained_kinds
from drayman.cli.connecting import talk
from drayman.cli.errors import no_answer
from drayman.cli.explain.naming import subject_of
from drayman.cli.output import console, format_option, print_data
from drayman.cli.worlds import load_world, unobtrusively, world_options
from drayman.questions.explaining import explanation_of, read_for
from drayman.questions.subjects import everything

if TYPE_CHECKING:
    from drayman.cluster import HttpClient
    from drayman.explain.answer import Explanation

Answer: TypeAlias = "tuple[Explanation, float]"
"""An explanation, and the time at which the cluster was read."""
PENDING: Final = 1
"""The exit status for something that waits."""

_EPILOG: Final = """\b
KIND is pod, resourceclaim (claim), job, deployment (deploy), replicaset (rs),
statefulset (sts), daemonset (ds), node or namespace (ns).

\b
Examples:
  drayman explain pod/trainer
  drayman explain resourceclaim/gpus --namespace team-a
  drayman explain job/sweep --watch
  drayman explain deploy web            how many run, what the others wait for
  drayman explain node/example-0        its devices, and who does not go there
  drayman explain ns team-a             all that waits there, by reason
  drayman explain --all                 all that waits in the cluster
  drayman explain pod trainer -o json   the same as data
  kubectl drayman explain pod/trainer   on kubectl's cluster

Exit status: 0 it fits or runs, 1 it waits, 2 there is no answer.
"""


@click.command(short_help="Say why something waits, and what would help.", epilog=_EPILOG)
@click.argument("words", metavar="[KIND/NAME]", nargs=-1, shell_complete=explained_kinds)
@click.option(
    "--all",
    "all_of_it",
    is_flag=True,
    help="All that waits in the cluster, or with --namespace in that one, by reason.",
)
@click.option("-w", "--watch", is_flag=True, help="Explain anew whenever the answer changes.")
@format_option
@world_options
@click.pass_context
@no_answer()
def explain(
    ctx: click.Context,
    words: tuple[str, ...],
    all_of_it: bool,
    watch: bool,
    output_format: str | None,
    snapshot: str | None,
    namespace: str | None,
    kubeconfig: Path | None,
    data_dir: Path | None,
    context: str,
) -> None:
    """Say why a pod, a claim or what makes pods waits, and what would help; or how a node is, and what waits in a namespace.

    The first line has one word for the reason, what to expect from waiting (never, not now, not here, held) and a sentence. Below it: how
    many nodes and devices each test leaves, the node that came closest, who holds what is needed, and what would make it fit, each
    tried by a search before it is printed. For something that runs: why it is where it is.
    """
    if all_of_it and words:
        raise click.UsageError("--all explains everything; leave out KIND/NAME.")
    subject = everything(namespace) if all_of_it else subject_of(words)

    async def work(client: HttpClient) -> Answer:
        where = subject.scope(namespace or client.default_namespace)
        if watch:
            from drayman.cli.explain.following import show_each

            await show_each(client, subject, where, output_format)  # until it is ended
        world = await read_for(client, subject, where)
        return explanation_of(world, subject, where), world.now

    if snapshot is None:
        with nullcontext() if watch else unobtrusively():
            found, now = talk(kubeconfig, data_dir, work, context=context)
    elif watch:
        raise click.UsageError("--watch follows a cluster that runs, not one in a file.")
    else:
        world, where = load_world(snapshot, namespace, kubeconfig, data_dir, context)
        found, now = explanation_of(world, subject, where), world.now
    show(found, now, output_format)
    if found.headline.reason.kind is not None:
        ctx.exit(PENDING)


def show(found: Explanation, now: float, output_format: str | None) -> None:
    """Print it, as text or as data."""
    if output_format:
        from drayman.api import codec

        print_data(codec.to_dict(found), output_format)
        return
    from drayman.cli.explain.drawing import Drawing

    console().print(Drawing(found, now))
