"""The cluster that a question is asked about: one that runs, or one in a file."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import click

from drayman.cli import files
from drayman.cli.connecting import Where, cluster_options, namespace_option, talk
from drayman.cli.errors import UserError
from drayman.cli.process import give_way

if TYPE_CHECKING:
    from drayman.cluster import HttpClient
    from drayman.placement.world import World

T = TypeVar("T")


def snapshot_option(function: Callable[..., T]) -> Callable[..., T]:
    """`--snapshot`, as `snapshot`: the name of a file, or None."""
    return click.option(
        "--snapshot",
        type=files.PATH,
        metavar="FILE",
        help="A cluster that `drayman snapshot` has saved, in place of one that runs.",
    )(function)


def world_options(function: Callable[..., T]) -> Callable[..., T]:
    """`--snapshot`, `--namespace`, and which running cluster as `where`."""
    return snapshot_option(namespace_option(cluster_options(function)))


def load_world(
    snapshot: str | None, namespace: str | None, where: Where, *, queues: bool = False
) -> tuple[World, str]:
    """The cluster, and the namespace for anything that names none. Raises UserError and QuestionError."""
    from drayman.questions.worlds import DEFAULT_NAMESPACE, read_file, read_with_rules

    if snapshot is not None:
        if where.kubeconfig is not None or where.context:
            raise UserError(
                "--snapshot already names a cluster: leave out --kubeconfig and --context"
            )
        data = files.read(snapshot)
        with unobtrusively():
            world = read_file(files.display_name(snapshot), data)
        return world, namespace or DEFAULT_NAMESPACE

    async def work(client: HttpClient) -> tuple[World, str]:
        default = namespace or client.default_namespace
        return await read_with_rules(client, default, queues=queues), default

    with unobtrusively():
        return talk(where, work)


@contextmanager
def unobtrusively(*, again: bool = False) -> Iterator[None]:
    """Work on a whole cluster without disturbing other processes.

    It runs at low priority, and there is no garbage collection meanwhile, nor later of what was made here: walking the objects of a large
    cluster repeatedly, and once more at the end of the process, takes a third of the time of a command, and finds nothing. Where the work
    is done `again` and again, the collector sees what is left each time.
    """
    give_way()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not again:
            gc.freeze()
        if was_enabled:
            gc.enable()
