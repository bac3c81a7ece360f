"""The cluster that a question is asked about: one that runs, or one in a file."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from drayman.cli import files
from drayman.cli.connecting import cluster_options, namespace_option, talk
from drayman.cli.errors import UserError
from drayman.cli.process import give_way

if TYPE_CHECKING:
    from drayman.api.struct import Json
    from drayman.cluster import Client, HttpClient
    from drayman.placement.world import World

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULT_NAMESPACE: Final = "default"


def world_options(function: F) -> F:
    """`--snapshot`, or which running cluster, all as `where` takes them."""
    named = click.option(
        "--snapshot",
        type=files.PATH,
        metavar="FILE",
        help="A cluster that `drayman snapshot` has saved, in place of one that runs.",
    )
    return named(namespace_option(cluster_options(function)))


def load_world(
    snapshot: str | None,
    namespace: str | None,
    kubeconfig: Path | None,
    data_dir: Path | None,
    context: str,
) -> tuple[World, str]:
    """The cluster, and the namespace of whatever names none. Raises UserError."""
    if snapshot is not None:
        if kubeconfig is not None or context:
            raise UserError("--snapshot is a cluster already: leave out --kubeconfig and --context")
        return read_file(snapshot), namespace or _DEFAULT_NAMESPACE

    async def work(client: HttpClient) -> tuple[World, str]:
        where = namespace or client.default_namespace
        return await read_with_rules(client, where), where

    with unobtrusively():
        return talk(kubeconfig, data_dir, work, context=context)


def read_file(path: str) -> World:
    """The cluster in a snapshot. Raises UserError."""
    from drayman.simulate.snapshot import SnapshotError, read_snapshot

    data = files.read(path)
    try:
        with unobtrusively():
            return read_snapshot(files.display_name(path), data, now=time.time())
    except SnapshotError as error:
        raise UserError(str(error)) from error


async def read_with_rules(
    client: Client, namespace: str | None, *, workloads: bool = False
) -> World:
    """The cluster with what its API server goes by when pods are made. Raises UserError and ClusterError."""
    from drayman.cli.reading import read_world

    world, (rules, unseen) = await asyncio.gather(
        read_world(client, namespace=namespace, workloads=workloads),
        _read_rules(client, namespace),
    )
    world = world.with_objects(replace(world.objects, rules=rules))
    world.unseen = (*world.unseen, *unseen)
    return world


async def _read_rules(
    client: Client, namespace: str | None
) -> tuple[tuple[dict[str, Json], ...], list[str]]:
    from drayman.cli.reading import beyond
    from drayman.cluster.errors import ForbiddenError
    from drayman.cluster.resources import generic
    from drayman.placement.followed import RULES

    found: list[dict[str, Json]] = []
    unseen: list[str] = []
    for rule in RULES:
        resource = generic(rule.api_version, rule.plural, rule.kind, namespaced=rule.namespaced)
        scopes = (None, namespace) if resource.namespaced and namespace else (None,)
        for scope in scopes:
            try:
                found.extend((await client.list_all(resource, scope)).items)
            except ForbiddenError:
                continue
            if scope:
                unseen.append(beyond(resource, scope))
            break
        else:
            unseen.append(resource.qualified)
    return tuple(found), unseen


@contextmanager
def unobtrusively(*, again: bool = False) -> Iterator[None]:
    """Work on a whole cluster that is not in anybody's way.

    It gives way to others, and there is no garbage collection meanwhile, nor later of what was made here: to walk the objects of a large
    cluster again and again, and once more at the end of the process, takes a third of the time of a command, and finds nothing. Where the
    same is done `again` and again, the collector gets to see what is left each time.
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
