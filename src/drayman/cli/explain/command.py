"""The command: read the cluster, explain one object, say by the exit status whether it waits."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import click

from drayman.cli.completing import explained_kinds
from drayman.cli.connecting import talk
from drayman.cli.errors import UserError, no_answer
from drayman.cli.explain.naming import Subject, parse_subject
from drayman.cli.output import console, format_option, print_data
from drayman.cli.worlds import load_world, unobtrusively, world_options

if TYPE_CHECKING:
    from drayman.cluster import HttpClient
    from drayman.explain.answer import Explanation
    from drayman.simulate.world import World

Answer: TypeAlias = "tuple[Explanation, float]"
"""An explanation, and when the cluster was as it says."""
PENDING: Final = 1
"""The exit status for something that waits."""

_EPILOG: Final = """\b
Examples:
  drayman explain pod/trainer
  drayman explain resourceclaim/gpus --namespace team-a
  drayman explain job/sweep --watch
  drayman explain pod trainer -o json   the same as data
  kubectl drayman explain pod/trainer   on kubectl's cluster

Exit status: 0 it fits or runs, 1 it waits, 2 there is no answer.
"""


@click.command(epilog=_EPILOG)
@click.argument(
    "words", metavar="KIND/NAME", nargs=-1, required=True, shell_complete=explained_kinds
)
@click.option("-w", "--watch", is_flag=True, help="Explain anew whenever the answer changes.")
@format_option
@world_options
@click.pass_context
@no_answer()
def explain(
    ctx: click.Context,
    words: tuple[str, ...],
    watch: bool,
    output_format: str | None,
    snapshot: str | None,
    namespace: str | None,
    kubeconfig: Path | None,
    data_dir: Path | None,
    context: str,
) -> None:
    """Say why a pod, a claim or a job waits, and what would help.

    The first line has one word for the reason, what to expect from waiting (never, not now, not here, held) and a sentence. Below it: how
    many nodes and devices each test leaves, the node that came closest, who holds what is needed, and what would make it fit, each
    tried by a search before it is printed. For something that runs: why it is where it is.
    """
    subject = parse_subject(words)

    async def work(client: HttpClient) -> Answer:
        where = namespace or client.default_namespace
        if watch:
            from drayman.cli.explain.following import follow

            await follow(client, subject, where, output_format)
        return await _ask(client, subject, where)

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


async def _ask(client: HttpClient, subject: Subject, namespace: str) -> Answer:
    from drayman.cli.reading import read_world

    world = await read_world(client, namespace=namespace, engine="drayman.explain.workload")
    return explanation_of(world, subject, namespace), world.now


def explanation_of(world: World, subject: Subject, namespace: str) -> Explanation:
    """What there is to say. Raises UserError where there is no such object."""
    from drayman.cluster.resources import JOBS
    from drayman.explain.claim import explain_claim
    from drayman.explain.pod import explain_pod
    from drayman.explain.workload import explain_job

    if subject.kind == "pod":
        if (pod := world.pod(namespace, subject.name)) is not None:
            return explain_pod(world, pod)
    elif subject.kind == "resourceclaim":
        if (claim := world.claim(namespace, subject.name)) is not None:
            return explain_claim(world, claim)
    else:
        for job in world.objects.jobs:
            if (job.metadata.namespace, job.metadata.name) == (namespace, subject.name):
                return explain_job(world, job)
    if subject.kind == "job" and JOBS.qualified in world.unseen:
        raise UserError(f"this needs the permission to list {JOBS.qualified} in {namespace}")
    raise UserError(
        f"there is no {subject} in namespace {namespace}; name another with --namespace"
    )


def show(found: Explanation, now: float, output_format: str | None) -> None:
    """Print it, as text or as data."""
    if output_format:
        print_data(as_data(found), output_format)
        return
    from drayman.cli.explain.drawing import Drawing

    console().print(Drawing(found, now))


def as_data(found: Explanation) -> dict[str, object]:
    """The content as plain values, empty parts left out."""
    from drayman.api import codec

    return dict(codec.to_dict(found))
